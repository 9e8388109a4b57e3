"""What `campaign.measure` refuses, and in which words: most of it before any process is started."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading

import pytest

import campaign
from campaign.callables import CallableStep
from campaign.errors import BadInput
from campaign.parcel import pack
from tests.own.quick import QUICK


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    leases = tmp_path / "leases"
    leases.mkdir()
    monkeypatch.setenv("TMPDIR", str(leases))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def step():
    return 1.0


@pytest.mark.parametrize(
    ("given", "said", "remedy"),
    [
        ({"tokens": 0}, "tokens=0: a whole number, at least 1", "tokens=1"),
        ({"threads": True}, "threads=True: a whole number", "threads=1"),
        ({"device": "gpu"}, "device='gpu': 'cpu' or 'cuda'", "device='cpu'"),
        ({"name": ("a", "a")}, "two different names", "name=('eager', 'fused')"),
        ({"name": ("a", "../b")}, "name='../b': letters", "name=('eager', 'fused')"),
        ({"name": "ab"}, "name='ab': two different names", "name=('eager', 'fused')"),
        ({"protocol": "standrad"}, "did you mean 'standard'", "protocol='standard'"),
        ({"pairs": 3}, "protocol.pairs = 3: even and at least 2", "pairs=VALUE"),
        ({"min_effect": 3}, "protocol.min_effect = 3.0: a fraction", "min_effect=VALUE"),
        ({"settings": {"piars": 3}}, "there is no protocol field 'piars'; did you mean 'pairs'", ""),
        ({"settings": {"looks": [4, 2]}}, "rounds in rising order", "looks=[4,6,8,12]"),
        (
            {"settings": {"clock": "cpu"}, "threads": 2},
            "clock='cpu': CPU time may decide",
            "settings={'clock': 'wall'}",
        ),
        ({"parity": "precision"}, "parity='precision': 'loss', 'bitwise' or 'none'", "parity='loss'"),
        ({"loss_bound": 0}, "loss_bound=0: a share of control's loss", "loss_bound=0.02"),
        ({"ledger": "steps"}, "ledger='steps': a ledger is a folder in runs/", "ledger='runs/steps'"),
        ({"ledger": "runs/.hidden"}, "campaign name '.hidden'", ""),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_an_argument_that_cannot_be_used_is_named_with_the_rule_and_what_to_write(given, said, remedy, here):
    with pytest.raises(BadInput) as refused:
        campaign.measure(step, step, **given)
    assert said in refused.value.message
    if remedy:
        assert refused.value.remedy == f"campaign.measure(..., {remedy})"
    assert not (here / "runs").exists()


class Trainer:
    def __init__(self, place):
        self.log = open(place, "w")  # held by an attribute two levels down

    def step(self):
        return 1.0


class Holder:
    def __init__(self, place):
        self.trainer = Trainer(place)

    def __call__(self):
        return self.trainer.step()


LOCK = threading.Lock()


def with_a_global():
    with LOCK:
        return 1.0


def unpicklable(place):
    batches = (batch for batch in range(3))
    lock = threading.Lock()
    trainer = Trainer(place)
    return {
        "a generator that it closes over": (lambda: next(batches), "its variable batches is a generator (<genexpr>)"),
        "a lock that it closes over": (lambda: lock, "its variable lock is a lock (lock)"),
        "a global lock in a closure": (lambda: LOCK, "its variable LOCK is a lock (lock)"),
        "an open file of a bound method": (
            trainer.step,
            "its Trainer object.log is an open file",
        ),
        "an open file two attributes down": (Holder(place), f"its trainer.log is an open file or connection ({place})"),
        "an argument of a partial": (functools.partial(print, batches), "its argument 1 is a generator"),
        "an item of a list": (lambda held=[1, lock]: held, "its variable default 1[1] is a lock (lock)"),
    }


@pytest.mark.parametrize("case", sorted(unpicklable(os.devnull)))
def test_what_cannot_travel_is_named_by_the_way_to_it_with_the_remedy(case):
    given, said = unpicklable(os.devnull)[case]
    with pytest.raises(BadInput) as refused:
        campaign.measure(step, given)
    assert refused.value.message.startswith("treatment cannot travel to a fresh process: ")
    assert said in refused.value.message
    assert refused.value.remedy.startswith("campaign.Setup(make): make() builds what the step needs in the trial's")


async def later():
    return 1.0


def yielding():
    yield 1.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "treatment is of type int: it must be a callable that takes nothing"),
        (lambda batch: batch, "treatment is called without arguments, and it wants some (missing a required argument"),
        (campaign.Setup(lambda model: model), "the make of treatment is called without arguments"),
        (later, "treatment is a coroutine function: calling it does no work yet"),
        (yielding, "treatment is a generator function: calling it does no work yet"),
    ],
    ids=["no callable", "an argument", "a make with an argument", "a coroutine", "a generator"],
)
def test_what_is_no_step_is_refused(given, said):
    with pytest.raises(BadInput) as refused:
        campaign.measure(step, given)
    assert said in refused.value.message
    assert refused.value.remedy


def test_more_than_a_process_should_be_given_is_refused(monkeypatch):
    monkeypatch.setattr("campaign.parcel.LARGEST_BYTES", 1 << 20)
    data = bytes(2 << 20)
    with pytest.raises(BadInput, match=r"treatment takes 2\.0 MiB with it to each fresh process; the most is 1\.0 MiB"):
        campaign.measure(step, lambda: data)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: (batch for batch in [1]), "treatment returned a generator, which has done no work yet"),
        (lambda: {"loss": 1.0}, "treatment returned a dict, which is not one number"),
        (lambda: sys.modules["numpy"].zeros(3), "treatment returned a ndarray of shape [3], which is not one number"),
        (lambda: "1.0", "treatment returned a str, which is not one number"),
        (campaign.Setup(lambda: 3), "the make() of treatment returned an int, and the step is what it must return"),
    ],
    ids=["a generator", "a dict", "several numbers", "a text", "a make without a step"],
)
def test_what_a_trial_finds_to_be_no_step_is_refused_before_anything_is_timed(given, said, here):
    with pytest.raises(BadInput) as refused:
        campaign.measure(lambda: 1.0, given, ledger="runs/refused", **QUICK)
    assert said in refused.value.message
    assert refused.value.remedy
    written = (here / "runs/refused/ledger.jsonl").exists()
    assert not written, "no plan was registered"


def test_a_module_that_no_fresh_process_finds_travels_by_value_and_one_that_is_gone_is_refused(here, monkeypatch):
    (here / "vanishing.py").write_text("def step():\n    return 2.0\n\ndef make():\n    return step\n")
    monkeypatch.syspath_prepend(str(here))
    module = importlib.import_module("vanishing")
    assert pack(module.step, "one").sources.keys() == {"vanishing"}
    caller = lambda: module.step()  # noqa: E731  it names the module, which is then imported by its name
    (here / "vanishing.py").unlink()
    importlib.invalidate_caches()
    from campaign.parcel import _importable

    _importable.cache_clear()
    by_value = campaign.measure(module.step, module.step, **QUICK)
    assert by_value.evidence.probe.arm("control").losses[0] == 2.0
    assert by_value.evidence.plan.control.config["sources"] == {}
    with pytest.raises(BadInput, match="control cannot be rebuilt in a fresh process: ModuleNotFoundError") as refused:
        campaign.measure(caller, caller, **QUICK)
    assert refused.value.remedy == "campaign.Setup(make): import and build what it needs inside make()"


def test_a_module_of_the_callers_that_changes_meanwhile_ends_the_trial(here, monkeypatch):
    (here / "edited.py").write_text("def step():\n    return 2.0\n")
    monkeypatch.syspath_prepend(str(here))
    module = importlib.import_module("edited")
    parcel = pack(module.step, "one")
    config = {"device": "cpu", "tokens": 1, "threads": 1, "name": "one", "sha256": parcel.sha256, "setup": False}
    import base64

    config |= {"sources": parcel.sources, "pickled": base64.b64encode(parcel.pickled).decode(), "path": sys.path}
    before = list(sys.path)
    assert not hasattr(CallableStep(**config), "restart"), "a module keeps its state"
    (here / "edited.py").write_text("def step():\n    return 3.0\n")
    with pytest.raises(Exception, match="is not what it was") as ended:
        CallableStep(**config)
    assert ended.value.kind == "crashed"
    sys.path[:] = before


def test_a_callable_of_a_ledger_cannot_be_measured_again():
    with pytest.raises(Exception, match="a ledger keeps the digest of one and never the callable itself") as refused:
        CallableStep(device="cpu", tokens=1, threads=1, name="one", sha256="00", setup=False, sources={})
    assert refused.value.remedy == "call campaign.measure again, from where it was called"


def test_a_comparison_inside_a_trial_is_refused(monkeypatch):
    class Worker:
        name = "campaign.worker"

    monkeypatch.setattr(sys.modules["__main__"], "__spec__", Worker())
    with pytest.raises(BadInput, match="reached inside a trial") as refused:
        campaign.measure(step, step)
    assert refused.value.remedy == "put the call under if __name__ == '__main__':"


def test_the_shipped_protocols_are_what_a_run_composes():
    from hydra import compose, initialize_config_dir

    from campaign.config.compose import plain
    from campaign.config.packaged import _node, packaged_root

    folder = packaged_root() / "conf" / "protocol"
    names = [path.stem for path in folder.glob("*.yaml")]
    assert {"standard", "quick"} <= set(names)
    for name in names:
        with initialize_config_dir(config_dir=str(folder), version_base="1.3"):
            assert plain(compose(name)) == _node(folder, name)
