"""What a run was measured on, as MLflow's dataset input: the workload's name and a digest. Pure; imports no MLflow.

A step's batches come from the workload's own code (its target) under its own configuration, so those two are the data's
identity. The digest is the hash of the root's recorded arm, the same for every decision on that workload; where no root
was timed (two arms on a stack) it is control's, and the source says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from campaign.records import Arm, Plan, Round, Study
from campaign.tracking import mapping

DIGEST_CHARACTERS = 16  # MLflow takes 36
NAME_LIMIT = 500
TEXT_LIMIT = 60_000
CONTEXT = {"mlflow.data.context": "timed steps"}


def dataset(plan: Plan | Study, rounds: Sequence[Round]) -> dict[str, str]:
    """The fields of an MLflow Dataset, all from what was recorded."""
    arm = _root(plan)
    source = {
        "tags": {
            "mlflow.source.type": "LOCAL",
            "mlflow.source.name": arm.target,
            **_git(plan.source),
            "campaign.arm": arm.role if isinstance(plan, Study) or arm.role != "control" else _control(plan),
            "campaign.arm_sha256": arm.hash,
        }
    }
    return {
        "name": mapping.cut(plan.workload, NAME_LIMIT - 100),
        "digest": arm.hash[:DIGEST_CHARACTERS],
        "source_type": "code",
        "source": json.dumps(source),
        "profile": mapping.cut(json.dumps(_profile(arm, rounds)), TEXT_LIMIT),
    }


def _root(plan: Plan | Study) -> Arm:
    """The arm without any edit, where it was timed; else the base."""
    if isinstance(plan, Plan):
        return plan.root or plan.control
    bare = [arm for arm in plan.arms if plan.members.get(arm.role) == ()]
    return next(iter(bare), None) or next(arm for arm in plan.arms if arm.role == plan.base)


def _control(plan: Plan) -> str:
    return f"control: root + [{', '.join(plan.stack)}]" if plan.stack else "root"


def _git(source: Mapping[str, Any]) -> dict[str, str]:
    keys = {"commit": "mlflow.source.git.commit", "branch": "mlflow.source.git.branch"}
    return {name: str(source[key]) for key, name in keys.items() if source.get(key)}


def _profile(arm: Arm, rounds: Sequence[Round]) -> dict[str, Any]:
    """How large a step is, as its blocks counted it, and what the configuration says of batches and their seed."""
    found: dict[str, Any] = {}
    steps = [block for one in rounds for block in one.blocks if block.steps]
    if steps:
        found["tokens_per_step"] = round(steps[0].tokens / steps[0].steps)
    return found | {key: arm.config[key] for key in ("batch", "seed") if key in arm.config}
