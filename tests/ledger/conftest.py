from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign.ledger import Stamp, open_ledger
from campaign.records import (
    Arm,
    Block,
    Decision,
    Edit,
    Floor,
    Hypothesis,
    ParityClaim,
    Plan,
    Protocol,
    Round,
    Surroundings,
    Trial,
    Verdict,
    to_json,
)


@pytest.fixture(scope="module", autouse=True)
def quick_disk() -> None:
    """In the place of the one of every other folder: here the disk is asked to keep what is written."""


def _protocol(decisive: bool) -> Protocol:
    return Protocol(
        name="full" if decisive else "quick",
        decisive=decisive,
        clock="wall",
        looks=(4, 6),
        alpha=0.01,
        beta=0.05,
        alpha_split=(0.5, 0.5),
        beta_split=(0.5, 0.5),
        min_effect=0.03,
        pairs=2,
        block_steps=1,
        block_minimum_seconds=0.05,
        warmup_minimum_steps=5,
        warmup_window_steps=5,
        warmup_tolerance=0.1,
        warmup_limit_steps=50,
        confirm_rounds=4,
        confirm_alpha=0.01,
        invalid_share_limit=0.2,
        contention_limit=1.3,
        gate_alpha=0.01,
        memory_min_effect=0.02,
        memory_min_bytes=8 << 20,
        memory_noninferiority=0.02,
        memory_margin=0.1,
        probe_steps=3,
        start_deadline_seconds=60.0,
        reply_deadline_seconds=60.0,
        seed=7,
    )


@pytest.fixture
def make_plan() -> Callable[..., Plan]:
    def make(
        id: str = "fuse-1", name: str = "fuse", *, null: bool = False, decisive: bool = True, width: int = 8
    ) -> Plan:
        hypothesis = Hypothesis(
            name=name,
            claim="one pass over memory instead of three",
            mechanism="fusion",
            acts_on="prenorm",
            edit=Edit(("ops.prenorm=cpu",)),
            predicted_ratio=1.1,
            parity=ParityClaim("bitwise"),
            null=null,
        )
        return Plan(
            id=id,
            campaign="demo",
            workload="tiny",
            device="cpu",
            hypothesis=hypothesis,
            control=Arm("control", "root", "models.build", {"width": 8}),
            treatment=Arm("treatment", f"root+{name}", "models.build", {"width": width, "prenorm": "cpu"}),
            protocol=_protocol(decisive),
            stack=(),
            attempt=1,
            alpha=0.01,
            threshold=0.03,
            floor_id="",
            fingerprint={"cpu": "a"},
            code="c0de",
            source={},
            machine_line="a machine",
            command="campaign hypothesis=fuse",
            registered_at="2026-01-01T00:00:00Z",
        )

    return make


@pytest.fixture
def make_decision() -> Callable[..., Decision]:
    def make(
        id: str = "d1", plan_id: str = "fuse-1", verdict: str = "accept", floor: Floor | None = None, look: int = 1
    ) -> Decision:
        return Decision(
            id=id,
            plan_id=plan_id,
            sequence=99,  # the ledger numbers by place, whatever the writer believed
            hypothesis="fuse",
            claim="one pass over memory instead of three",
            workload="tiny",
            device="cpu",
            predicted_ratio=1.1,
            verdict=Verdict(verdict, "faster", "It is faster.", floor=floor, look=look),
            stack=(),
            overrides=("ops.prenorm=cpu",),
            attempt=1,
            parity="equal",
            engagement="engaged",
            low_precision="no",
            machine_line="a machine",
            command="campaign hypothesis=fuse",
            decided_at="2026-01-01T00:00:00Z",
            wall_seconds=10.0,
            timed_seconds=5.0,
        )

    return make


@pytest.fixture
def make_round() -> Callable[..., tuple[Round, list[Block]]]:
    """A round without its blocks file, and the blocks it streamed: control, treatment, treatment, control."""

    def make(id: str = "r1", index: int = 0) -> tuple[Round, list[Block]]:
        order = ("control", "treatment", "treatment", "control")
        trials = tuple(Trial(f"{id}-{arm}", arm, "ok", loss=2.5) for arm in ("control", "treatment"))
        blocks = [Block(arm, i, i // 2, 1, 64, 0.125 * (i + 1), 0.0625, None, i) for i, arm in enumerate(order)]
        return Round(id, "screen", index, order, trials, Surroundings(load=0.5), "c0de", 3.0, 1.25), blocks

    return make


@pytest.fixture
def blocks_body() -> Callable[[Round, str], dict[str, Any]]:
    """The body of a `blocks` entry, as the run writes it."""

    def body(measured: Round, plan_id: str) -> dict[str, Any]:
        value = {key: v for key, v in to_json(measured).items() if key not in ("trials", "blocks")}
        return {"plan_id": plan_id, **value, "trial_ids": [trial.id for trial in measured.trials]}

    return body


@pytest.fixture
def ledger(tmp_path: Path):
    with open_ledger(tmp_path, "demo", writable=True, stamp=Stamp("host-a", "print-a")) as opened:
        yield opened
