"""The examples of docs/own.md, each run as a trial runs it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from campaign.config import jobs
from campaign.executor.process import TrialProcess, build_request
from campaign.records import Arm
from tests.own.conftest import ask

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/own.md").read_text()
TOLD = """
import sys, time
width = int(sys.argv[1].removeprefix("--width="))
for step in range(10_000):
    time.sleep(0.01)
    print(f"step {step} loss {width / (step + 1):.4f}", flush=True)
"""


def examples(way: int, kind: str) -> list[str]:
    """The blocks of a language in the section of a way."""
    section = PAGE.split(f"\n### {way}. ")[1].split("\n## ")[0].split("\n### ")[0]
    return re.findall(rf"```{kind}\n(.*?)```", section, re.DOTALL)


def example(way: int, kind: str) -> str:
    return examples(way, kind)[-1]


def test_way_1_reads_the_steps_that_a_command_prints(trial):
    node = OmegaConf.to_container(OmegaConf.create(example(1, "yaml")))["workload"]
    process = trial(TOLD, target=node.pop("_target_"), **node)
    block = ask(process, "block", steps=3)
    assert block["steps"] == 3
    assert block["loss"] == pytest.approx(64 / 4), "the first step is told before the clock starts"


def test_way_2_stops_where_a_step_begins_and_tells_what_it_computed(trial):
    process = trial(example(2, "python"))
    block = ask(process, "block", steps=2)
    assert (block["steps"], block["tokens"]) == (2, 2 * 32)
    # Two steps on batches of 0.5 and 1.5: the weight is 1, then 1 - 0.2 * 0.25 = 0.95; (0.95 * 1.5)^2 = 2.030625.
    assert block["loss"] == pytest.approx(2.030625)


@pytest.mark.parametrize(
    ("place", "library", "tokens"), [(0, "transformers", 4 * 8), (1, "lightning", 4), (2, "accelerate", 4 * 4)]
)
def test_way_3_takes_a_step_of_the_librarys_own_loop(trial, place, library, tokens):
    pytest.importorskip(library)
    process = trial(examples(3, "python")[place])
    block = ask(process, "block", steps=2)
    assert (block["steps"], block["tokens"]) == (2, 2 * tokens)
    assert 0 < block["loss"] < 100


def test_way_4_is_a_class_of_the_projects_own(tmp_path):
    (tmp_path / "mine.py").write_text(example(4, "python"))
    config = {"name": "own", "device": "cpu", "threads": 1, "width": 3, "pause": 0.0}
    arm = Arm("control", "root", "mine.Step", config)
    with TrialProcess(arm, tmp_path / "trial.log") as process:
        assert ask(process, "build", **build_request(arm, tmp_path, "", {}))["tokens_per_step"] == 32
        block = ask(process, "block", steps=2)
    # Three weights of 1 shrink by a factor of 0.8 a step: the second step's loss is 3 * 0.8^2.
    assert block["loss"] == pytest.approx(3 * 0.8**2)


def test_the_hypothesis_of_the_page_fits_the_workload_of_the_page(tmp_path):
    for group, name, way in (("workload", "own", 1), ("hypothesis", "fused_optimizer", None)):
        text = example(way, "yaml") if way else re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[-1]
        (tmp_path / "conf" / group).mkdir(parents=True)
        (tmp_path / "conf" / group / f"{name}.yaml").write_text(text)
    shutil.copy(ROOT / "campaign/starting/files/config.yaml", tmp_path / "conf/config.yaml")
    (job,) = jobs(tmp_path, ["hypothesis=fused_optimizer"])
    assert job.arm("treatment", "x", [("fused_optimizer", job.hypothesis.edit)]).config["flags"]["fused"] is True


def test_the_page_names_every_member_that_the_harness_asks_of_a_workload():
    asked = set()
    for name in ("worker.py", "timing.py", "probe/__init__.py", "memory/__init__.py", "probe/operators.py"):
        text = (ROOT / "campaign" / name).read_text()
        asked |= set(re.findall(r"(?<![\w.])(?:self\.)?workload\.([a-z_]+)", text))
        asked |= set(re.findall(r'getattr\((?:self\.)?workload(?:_class)?, "([a-z_]+)"', text))
    asked -= {"launch", "last"}  # the class of ways 1 to 3 has `launch`
    section = PAGE.split("\n### 4. ")[1].split("\n## ")[0]
    assert len(asked) > 10
    assert sorted(name for name in asked if f"`{name}" not in section) == []
