"""Other people's training loops in a trial: the real libraries, on networks of a few thousand parameters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from campaign.errors import TrialFailed
from tests.own.conftest import ask

LOOPS = Path(__file__).parent / "loops"
STEPS = 6
BATCH_TOKENS = 4 * 16
LIBRARIES = {"hugging_face_trainer": "transformers", "lightning_trainer": "lightning", "accelerate_loop": "accelerate"}


def outside(name: str, folder: Path, *words: str):
    """What a loop tells of itself where there is no campaign."""
    pytest.importorskip(LIBRARIES[name])
    told = folder / "told.json"
    root = str(LOOPS.parents[2])
    command = [sys.executable, str(LOOPS / f"{name}.py"), "--told", str(told), *words]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return json.loads(told.read_text())


@pytest.fixture(scope="module")
def hugging_face(tmp_path_factory):
    return outside("hugging_face_trainer", tmp_path_factory.mktemp("hugging_face"))


@pytest.fixture(scope="module")
def lightning(tmp_path_factory):
    return outside("lightning_trainer", tmp_path_factory.mktemp("lightning"))


@pytest.fixture
def looped(trial):
    """Starts a trial of a loop."""

    def start(name: str, **node):
        return trial((LOOPS / f"{name}.py").read_text(), **node)

    return start


def probed(process, steps: int):
    file = process.log.parent / "gradients.npz"
    found = ask(process, "probe", steps=steps, gradients=str(file))
    with numpy.load(file) as gradients:
        return found, {name: gradients[name] for name in gradients}


def near(found, expected):
    """Whether gradients are those that were computed in plain torch, in another order of summation, clipped to 0.1."""
    assert set(found) == set(expected) and len(found) > 2
    assert sum((values**2).sum() for values in found.values()) == pytest.approx(0.1**2, rel=1e-4)
    for name, values in expected.items():
        numpy.testing.assert_allclose(found[name], values, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("library", ["hugging_face", "lightning"])
def test_outside_a_trial_a_callback_changes_nothing(library, request):
    told = request.getfixturevalue(library)
    assert len(told["without"]["losses"]) >= STEPS
    assert told["with"] == told["without"]


def test_a_step_of_the_trainer_is_an_optimizer_step_with_its_loss_and_gradients(hugging_face, looped):
    process = looped("hugging_face_trainer")
    found, gradients = probed(process, 3)
    assert found["losses"] == hugging_face["without"]["losses"][:3], "to the bit, though logged only every 4 steps"
    near(gradients, hugging_face["gradients"])
    assert found["facts"]["parameters"] == sum(map(len, hugging_face["gradients"].values()))
    block = ask(process, "block", steps=1)  # the probe counted operators in step 4
    assert (block["steps"], block["tokens"]) == (1, 2 * BATCH_TOKENS)
    assert block["loss"] == hugging_face["without"]["losses"][4]
    with pytest.raises(TrialFailed, match="came to its end after 6 steps") as failed:
        ask(process, "block", steps=100)
    assert "raise its own limit of steps" in failed.value.remedy


def test_a_step_of_lightning_is_an_optimizer_step_with_its_loss_and_gradients(lightning, looped):
    process = looped("lightning_trainer")
    found, gradients = probed(process, 3)
    batches = lightning["without"]["losses"]
    losses = [(batches[at] + batches[at + 1]) / 2 for at in range(0, len(batches), 2)]
    assert found["losses"] == pytest.approx(losses[:3], rel=1e-6)
    near(gradients, lightning["gradients"])
    block = ask(process, "block", steps=1)
    assert (block["steps"], block["tokens"]) == (1, 2 * BATCH_TOKENS)
    assert block["loss"] == pytest.approx(losses[4], rel=1e-6)
    with pytest.raises(TrialFailed, match="came to its end after 6 steps"):
        ask(process, "block", steps=100)


@pytest.mark.slow
def test_the_older_package_of_lightning_has_the_same_steps(lightning, looped):
    pytest.importorskip("pytorch_lightning")
    process = looped("lightning_trainer", flags={"package": "pytorch_lightning"})
    batches = lightning["without"]["losses"]
    block = ask(process, "block", steps=2)
    assert (block["tokens"], block["loss"]) == (
        4 * BATCH_TOKENS,
        pytest.approx((batches[2] + batches[3]) / 2, rel=1e-6),
    )


def test_a_step_of_an_accelerate_loop_is_as_many_batches_as_it_accumulates(tmp_path, looped):
    losses = outside("accelerate_loop", tmp_path)
    process = looped("accelerate_loop")
    found = [ask(process, "block", steps=1) for _ in range(5)]
    assert [block["tokens"] for block in found] == [BATCH_TOKENS * batches for batches in (3, 3, 2, 3, 3)]
    assert [block["loss"] for block in found] == losses[:5]
    assert len(losses) == 6


def test_asking_for_the_callbacks_imports_no_library():
    libraries = ("transformers", "lightning", "pytorch_lightning", "accelerate", "torch")
    code = f"import sys, campaign.callbacks; print([name for name in {libraries} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name, library", [("HuggingFace", "transformers"), ("Lightning", "lightning")])
def test_a_library_that_is_missing_is_named_with_how_to_get_it(name, library):
    hidden = "import sys; sys.modules.update(transformers=None, lightning=None, pytorch_lightning=None)"
    code = f"{hidden}\nfrom campaign.callbacks import {name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"campaign.callbacks.{name} needs {library}" in done.stderr
    assert f"pip install {library}" in done.stderr
