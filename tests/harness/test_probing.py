"""What a probe and a timed trial look at beside the clock, in the order in which they look."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import types

import numpy
import pytest
import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from campaign.parity import measure, parameter_errors
from campaign.probe import PARAMETER_SAMPLE, probe_workload, restarted_step, unmoved_parameters
from campaign.probe.operators import counted
from campaign.records import ArmProbe, ParityClaim
from campaign.timing import descendants_cpu_seconds
from campaign.worker import Worker


class Watched:
    """A workload that notes whether each of its steps ran under a dispatch mode, and trains one number."""

    device, low_precision, tokens_per_step = "cpu", "none", 1

    def __init__(self):
        self.seen = []
        self.weight = torch.zeros(1)

    def step(self):
        self.seen.append(bool(_get_current_dispatch_mode_stack()))
        self.weight += 1

    def restart(self):
        self.weight.zero_()

    def synchronize(self):
        pass

    def last_step(self):
        return {"loss": float(self.weight), "gradient_norm": 2 * float(self.weight)}

    def gradients(self):
        return {"weight": self.weight}

    def parameters(self):
        return {"weight": self.weight}

    def facts(self):
        return {}


def test_nothing_watches_the_steps_that_are_compared_and_one_later_step_is_counted(tmp_path):
    workload = Watched()
    reply = probe_workload(workload, 4, tmp_path / "g.npz", graphs=lambda: 3)
    assert workload.seen == [False, False, False, False, True]
    assert (reply["losses"], reply["gradient_norms"]) == ([1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0])
    assert reply["counters"]["compile:graphs"] == 3
    with numpy.load(tmp_path / "g.npz") as saved:
        assert saved["weight"].tolist() == [1.0], "the gradients are those of step 1"


def test_matrix_products_are_counted_by_the_dtype_of_their_first_matrix():
    single, half = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.bfloat16)

    def act():
        single @ single
        torch.bmm(half[None], half[None])
        torch.addmm(single, single, single)
        torch.baddbmm(half[None], half[None], half[None])

    found = counted(act)[1]
    assert {name: value for name, value in found.items() if name.startswith("gemm:")} == {
        "gemm:float32": 2.0,
        "gemm:bfloat16": 2.0,
    }


def test_a_restarted_step_is_the_first_one_again(tmp_path):
    workload = Watched()
    probed = probe_workload(workload, 2, tmp_path / "g.npz")
    again = restarted_step(workload)
    assert again["loss"] == probed["losses"][0]
    assert again["gradients_sha256"] == probed["gradients_sha256"]
    assert not workload.seen[-1]


def test_a_workload_without_a_restart_takes_no_step_and_says_nothing():
    reply = restarted_step(types.SimpleNamespace(step=lambda: pytest.fail("it stepped")))
    assert reply == {"loss": None, "gradient_norm": None, "gradients_sha256": ""}


def test_a_parameter_that_a_step_leaves_alone_is_named():
    values = {"trained": torch.zeros(3), "frozen": torch.ones(3 * PARAMETER_SAMPLE), "numpy": numpy.zeros((2, 2))}

    def step():
        values["trained"] += 1
        values["numpy"] += 1

    workload = types.SimpleNamespace(parameters=lambda: values, step=step, synchronize=lambda: None)
    assert unmoved_parameters(workload) == ["frozen"]
    assert unmoved_parameters(types.SimpleNamespace()) == []


def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


@pytest.mark.slow
def test_cpu_time_between_two_blocks_is_counted_wherever_it_is_spent():
    worker = Worker()
    worker.workload = Watched()
    worker.block({"steps": 1})
    burn(0.05)  # as a thread would, while the other arm has its turn
    assert worker.block({"steps": 1})["idle_cpu_seconds"] >= 0.05
    worker.workload.synchronize = lambda: burn(0.05)  # before the clock starts; at the block's end it is timed
    assert worker.block({"steps": 1})["idle_cpu_seconds"] >= 0.05
    worker.workload.synchronize = lambda: None
    worker.block({"steps": 1})
    burn(0.05)
    worker.settle({})  # warm-up is over: what came before it is not the timed blocks'
    gc.unfreeze()
    assert 0 <= worker.block({"steps": 1})["idle_cpu_seconds"] < 0.05


def test_a_thread_that_computes_while_the_clock_looks_at_other_processes_is_counted(monkeypatch):
    looking, burnt = threading.Event(), threading.Event()

    def serve():
        while looking.wait():
            looking.clear()
            until = time.thread_time() + 0.05
            while time.thread_time() < until:
                pass
            burnt.set()

    def looked():
        looking.set()
        assert burnt.wait(10)  # the interpreter's lock is free meanwhile, as it is while a file is read
        burnt.clear()
        return 0.0

    threading.Thread(target=serve, daemon=True).start()
    monkeypatch.setattr("campaign.timing.descendants_cpu_seconds", looked)
    worker = Worker()
    worker.workload = Watched()
    worker.settle({})  # collecting this process's garbage takes longer than the thread burns
    try:
        assert worker.block({"steps": 1})["idle_cpu_seconds"] >= 0.05  # before the clock
        assert worker.block({"steps": 1})["idle_cpu_seconds"] >= 0.1  # after the last one as well
    finally:
        gc.unfreeze()


def test_the_cpu_time_of_children_counts_while_they_live_and_after():
    before = descendants_cpu_seconds()
    code = "import time\nwhile time.process_time() < 0.2: pass\nprint('burnt', flush=True)\ninput()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "burnt\n"
    alive = descendants_cpu_seconds() - before
    child.communicate("\n")
    after = descendants_cpu_seconds() - before
    assert alive >= 0.15  # in ticks of 10 ms, user and system time apart
    assert after >= 0.15


def test_static_rows_are_those_of_the_config_that_was_built():
    class Reported(Watched):
        @classmethod
        def static(cls, config):
            return [{"kernel": config["kernel"], "target": "cpu", "status": "ok"}]

    worker = Worker()
    worker.workload, worker.config = Reported(), {"kernel": "backward"}
    reply = worker.static({})
    assert (reply["rows"], reply["runs_on"]) == ([{"kernel": "backward", "target": "cpu", "status": "ok"}], "cpu")
    worker.workload = Watched()
    assert worker.static({})["rows"] == []


def test_the_error_of_a_parameter_its_share_and_the_noise_that_control_gives_it():
    reference = {"a": numpy.array([3.0, 0.0, 0.0]), "b": numpy.array([4.0])}
    control = {"a": numpy.array([3.0, 0.3, 0.4]), "b": numpy.array([4.0])}
    found = {"a": numpy.array([3.0, 4.0, 0.0]), "b": numpy.array([-4.0])}
    a, b = parameter_errors(found, control, reference)
    # |(0, 4, 0)| / 3, cosine 9 / (3 * 5); control's |(0, .3, .4)| / 3; the whole reference has norm 5
    assert (a.name, a.error, a.cosine) == ("a", pytest.approx(4 / 3), pytest.approx(0.6))
    assert (a.share, a.control_error) == (pytest.approx(0.6), pytest.approx(0.5 / 3))
    # control's distance is .5 / 5; of 4 elements a has 3
    assert a.noise == pytest.approx(0.1 * (3 / 4) ** 0.5 * (1 + 6 / 3**0.5) / 0.6)
    assert (b.error, b.cosine, b.control_error) == (2.0, -1.0, 0.0)
    assert b.noise == pytest.approx(0.1 * (1 / 4) ** 0.5 * 7 / 0.8)


def test_parity_names_the_parameter_nearest_to_its_limit_and_those_without_a_gradient(tmp_path):
    def save(role, **arrays):
        with (tmp_path / role).open("wb") as file:
            numpy.savez(file, **arrays)
        return tmp_path / role

    ones = numpy.ones(100)
    files = {
        "reference": save("reference", a=ones, b=ones, c=ones),
        "control": save("control", a=1.1 * ones, b=1.1 * ones, c=1.1 * ones),
        "treatment": save("treatment", a=1.1 * ones, b=1.3 * ones, c=0 * ones),
    }
    losses = {"reference": (2.0, 1.0), "control": (2.0, 1.1), "treatment": (2.2, 1.0)}
    probes = {
        role: ArmProbe(role, "ok", losses=values, gradient_norms=(1.0, 1.0), gradients_sha256=role)
        for role, values in losses.items()
    }
    found = measure(probes, files, ParityClaim("precision"))
    assert found.treatment.silent == ("c",) and found.control.silent == ()
    assert found.treatment.worst.name == "c", "an error of 1 against one of .3"
    assert found.treatment.losses == pytest.approx((0.1, 0.0))
    assert found.control.losses == pytest.approx((0.0, 0.1))
    assert found.exact is None
