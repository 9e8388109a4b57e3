"""A finding as MLflow sees it: metrics, params, tags. Pure; imports no MLflow.

Its whole (root against everything; control against treatment of a replay) stands where a decision has its ratio, so
that both can be read in the same columns of the runs table.
"""

from __future__ import annotations

import json
from typing import Any

from campaign import units
from campaign.records import FACTORIAL, Contrast, Found, Study, to_json
from campaign.tracking import mapping, words


def finding_tags(found: Found, study: Study) -> dict[str, str]:
    """The tags of a finding's run: what a reviewer filters by."""
    finding = found.finding
    tags = {
        "campaign.kind": "finding",
        "verdict": "finding",
        "reason": words.kind(found),
        "hypothesis": words.about(found),
        "subjects": ", ".join(finding.subjects),
        "workload": found.workload,
        "device": found.device,
        "stack": " + ".join(found.stack) or "root",
        "word": finding.word or "-",
        **mapping.columns(finding.total or finding.effect, finding.memory, study),
        "clock": study.protocol.clock,
        "protocol": study.protocol.name,
        "machine": found.machine_line,
        "retire": ", ".join(finding.retire) or "none",
        "failed": ", ".join(finding.failed) or "none",
        "of": study.of or "-",
        "sequence": f"F{found.sequence:02d}",
        **mapping.source_tags(found.command, study.source),
    }
    return {key: mapping.cut(value, mapping.TAG_LIMIT) for key, value in tags.items()}


def finding_metrics(found: Found) -> dict[str, float]:
    """The scalars of a finding's run: the whole, each term by its name, and what it cost."""
    finding = found.finding
    values: dict[str, float | None] = {}
    if finding.total is not None:
        values |= _three("ratio", finding.total)
        values["gain_pct"] = 100 * (finding.total.ratio - 1)
    values |= {"product_ratio": finding.product, "sum_ratio": finding.sum}
    for term in finding.terms:
        values |= _three(_key(finding.kind, term.name), term.effect)
        if term.memory is not None:
            values[f"memory_mib/{term.name}"] = term.memory.bytes / units.MIB
    for share in finding.shares:
        values |= _three(f"share/{share.name}", share.effect)
    if effect := finding.effect:
        values |= {
            "step_ms/control": 1e3 * effect.control_step_seconds,
            "step_ms/treatment": 1e3 * effect.treatment_step_seconds,
        }
        if effect.clock == "wall":  # tokens over CPU time are no throughput
            values |= {
                "tokens_per_second/control": effect.control_tokens_per_second,
                "tokens_per_second/treatment": effect.treatment_tokens_per_second,
            }
    if memory := finding.memory:
        values |= {
            "peak_memory_mib/control": memory.control_bytes / units.MIB,
            "peak_memory_mib/treatment": memory.treatment_bytes / units.MIB,
            "memory_ratio": memory.ratio,
        }
    values |= {
        "rounds": finding.valid_rounds,
        "rounds_invalid": finding.invalid_rounds,
        "blocks": finding.blocks,
        "drift_pct": 100 * finding.drift,
        "seconds/wall": found.wall_seconds,
        "seconds/timed": found.timed_seconds,
    }
    return {mapping.name(key): value for key, value in mapping.finite(values).items()}


def _three(key: str, effect: Contrast) -> dict[str, float | None]:
    return {key: effect.ratio, f"{key}_low": effect.low, f"{key}_high": effect.high}


def _key(kind: str, term: str) -> str:
    """'term/leave_one_out/prenorm_fusion', 'term/main/a', 'term/interaction/a:b'."""
    if kind == FACTORIAL:
        kind = "interaction" if ":" in term else "main"
    return f"term/{kind}/{term}"


def finding_params(found: Found, study: Study) -> dict[str, str]:
    """The params of a finding's run: what it compared, and the protocol as it was declared."""
    values: dict[str, Any] = {
        "workload": study.workload,
        "study/kind": study.kind,
        "study/arms": " ".join(arm.role for arm in study.arms),
        "study/groups": json.dumps(study.groups),
        "study/rounds": study.rounds,
        "study/generators": " ".join(study.generators),
        "study/threshold": f"{study.threshold:.4g}",
        "study/floor": study.floor_id or "not measured",
        "study/of": study.of,
    }
    for key, value in to_json(study.protocol).items():
        values[f"protocol/{key}"] = value if isinstance(value, str) else json.dumps(value)
    kept = {key: str(value) for key, value in values.items() if str(value) != ""}
    return {mapping.name(key): mapping.cut(value, mapping.PARAM_LIMIT) for key, value in kept.items()}
