"""A decision as MLflow sees it: metrics, params, tags. Pure; imports no MLflow.

Metrics are rounded and finite, and each is logged once: MLflow stores infinity as 1.8e308, one NaN breaks a chart, the
table prints every digit, and a metric logged twice is drawn as a line. Params and tags are cut before MLflow cuts them
silently (6,000 and 8,000 characters), and say so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from campaign import units
from campaign.reading import counts, counts_text, label, outcome, wall_effect
from campaign.records import Combined, Contrast, Decision, Effect, MemoryChange, Plan, Study, to_json
from campaign.tracking.decided import AS_DECIDED, Standing
from campaign.tracking.words import verdict_word

PARAM_LIMIT = 5900
TAG_LIMIT = 7900
_ILLEGAL_IN_NAME = re.compile(r"[^\w\-. :/]")


def decision_tags(decision: Decision, plan: Plan, standing: Standing = AS_DECIDED) -> dict[str, str]:
    """The tags of the parent run: what a reviewer filters by."""
    verdict = decision.verdict
    tags = standing_tags(decision, standing) | {
        "reason": verdict.reason,
        "hypothesis": decision.hypothesis,
        "workload": decision.workload,
        "stack": " + ".join(decision.stack) or "root",
        "word": _word(decision),
        **columns(verdict.effect, verdict.memory, plan),
        "clock": plan.protocol.clock,
        "parity": decision.parity,
        "engagement": decision.engagement,
        "device": decision.device,
        "low_precision": decision.low_precision,
        "label": label(decision.hypothesis, decision.command),
        "prediction": outcome(verdict, decision.predicted_ratio) or "not scored",
        "counts": counts_text(decision.engagement, decision.stack) or "none predicted",
        "suspect": verdict.suspect or "no",
        "protocol": plan.protocol.name,
        "machine": decision.machine_line,
        "campaign.kind": "decision",
        "sequence": str(decision.sequence),
        **source_tags(decision.command, plan.source),
    }
    return {key: cut(value, TAG_LIMIT) for key, value in tags.items()}


def columns(effect: Effect | Contrast | None, memory: MemoryChange | None, plan: Plan | Study) -> dict[str, str]:
    """What the runs table shows beside the verdict, as text: the ratio with its interval, treatment's peak memory with
    the change, and the least gain that counts here: measured by an A/A null, or only declared by the protocol."""
    speed = f"{units.ratio(effect.ratio)} {units.interval(effect.low, effect.high)}" if _measured(effect) else "-"
    held = "-"
    if memory is not None:
        change = units.signed_size(memory.treatment_bytes - memory.control_bytes)
        held = f"{units.size(memory.treatment_bytes)} ({change})"
    floor = f"{100 * plan.threshold:.1f} %, " + ("measured" if plan.floor_id else "declared")
    return {"speed": speed, "memory": held, "floor": floor}


def _measured(effect: Effect | Contrast | None) -> TypeGuard[Effect | Contrast]:
    return effect is not None and math.isfinite(effect.ratio)


def standing_tags(decision: Decision, standing: Standing) -> dict[str, str]:
    """The tags that change with what becomes of a decision later."""
    return {
        "verdict": verdict_word(decision, standing),
        "campaign.revoked": "yes" if standing.revoked else "no",
        "ruling": cut(f"{standing.ruling}: {standing.why}" if standing.ruling else "none", TAG_LIMIT),
    }


def source_tags(command: str, source: Mapping[str, Any]) -> dict[str, str]:
    """What MLflow shows as a run's source: the command, the commit, the branch."""
    tags = {"mlflow.source.type": "LOCAL", "mlflow.source.name": command}
    for key in ("commit", "branch"):
        if source.get(key):
            tags[f"mlflow.source.git.{key}"] = str(source[key])
    return tags


def _word(decision: Decision) -> str:
    """What the interaction with the stack earned, or why none was measured."""
    if decision.verdict.combined is not None:
        return decision.verdict.combined.word
    return "not measured" if decision.stack else "first on root"


def decision_metrics(decision: Decision) -> dict[str, float]:
    """The scalars of the parent run. Tokens/s of wall time, ratios control/treatment seconds, memory in MiB."""
    verdict = decision.verdict
    found: dict[str, float | None] = {}
    if effect := verdict.effect:
        found |= {
            "ratio": effect.ratio,
            "ratio_low": effect.low,
            "ratio_high": effect.high,
            "gain_pct": 100 * (effect.ratio - 1),
        }
    if wall := wall_effect(verdict):
        found |= {
            "tokens_per_second/control": wall.control_tokens_per_second,
            "tokens_per_second/treatment": wall.treatment_tokens_per_second,
        }
    if memory := verdict.memory:
        found |= {
            "peak_memory_mib/control": memory.control_bytes / units.MIB,
            "peak_memory_mib/treatment": memory.treatment_bytes / units.MIB,
            "memory_ratio": memory.ratio,
        }
    if verdict.combined:
        found |= combined_metrics(verdict.combined)
    found |= {
        "rounds": verdict.valid_rounds,
        "rounds_invalid": verdict.invalid_rounds,
        "alpha_spent": verdict.alpha_spent,
        "predicted_ratio": decision.predicted_ratio,
    }
    held, predicted = counts(decision.engagement)
    if predicted:
        found |= {"counts_predicted": predicted, "counts_as_predicted": held}
    if effect := verdict.effect:
        found |= {
            "ratio_total_time": effect.total_ratio,
            "step_ms/control": 1e3 * effect.control_step_seconds,
            "step_ms/treatment": 1e3 * effect.treatment_step_seconds,
            "step_ms_p99/control": 1e3 * effect.control_p99_seconds,
            "step_ms_p99/treatment": 1e3 * effect.treatment_p99_seconds,
        }
    if beside := verdict.beside:
        found[f"ratio_{beside.clock}_clock"] = beside.ratio
    found |= {
        "sequence": decision.sequence,
        "attempt": decision.attempt,
        "seconds/wall": decision.wall_seconds,
        "seconds/timed": decision.timed_seconds,
    }
    return finite(found)


def combined_metrics(combined: Combined) -> dict[str, float | None]:
    """The edit alone and with the stack, as ratios with their intervals and in MiB. Marginal is the decision's own."""
    found: dict[str, float | None] = {}
    for part in ("isolated", "cumulative", "interaction"):
        contrast, change = getattr(combined, part), getattr(combined, f"{part}_bytes")
        found |= {part: contrast.ratio, f"{part}_low": contrast.low, f"{part}_high": contrast.high}
        if change is not None:
            found[f"memory_mib/{part}"] = change.bytes / units.MIB
    if combined.marginal_bytes is not None:
        found["memory_mib/marginal"] = combined.marginal_bytes.bytes / units.MIB
    return found


_TO_FOUR_DECIMALS = re.compile(r"ratio|gain_pct|^(isolated|cumulative|interaction)|^term/|^share/")


def finite(values: Mapping[str, float | None]) -> dict[str, float]:
    """The values that MLflow can store and draw: ratios and percents to four decimals, the rest to five digits."""
    return {
        key: round(value, 4) if _TO_FOUR_DECIMALS.search(key) else float(f"{value:.5g}")
        for key, value in values.items()
        if value is not None and math.isfinite(value)
    }


def decision_params(decision: Decision, plan: Plan) -> dict[str, str]:
    """The params of the parent run: what differs between the arms, and the protocol as it was declared."""
    found: dict[str, Any] = {
        "workload": plan.workload,
        "edit/overrides": " ".join(plan.hypothesis.edit.overrides),
        "edit/code": plan.hypothesis.edit.code,
        "edit/acts_on": plan.hypothesis.acts_on,
        "plan/threshold": f"{plan.threshold:.4g}",
        "plan/alpha": f"{plan.alpha:.4g}",
        "plan/attempt": plan.attempt,
        "plan/floor": plan.floor_id or "not measured",
    }
    for key, (control, treatment) in config_changes(plan).items():
        found[f"changes/{key}"] = f"{_shown(control)} -> {_shown(treatment)}"
    for key, value in to_json(plan.protocol).items():
        found[f"protocol/{key}"] = value if isinstance(value, str) else json.dumps(value)
    return {name(key): cut(str(value), PARAM_LIMIT) for key, value in found.items() if str(value) != ""}


_ABSENT = object()


def config_changes(plan: Plan) -> dict[str, tuple[Any, Any]]:
    """Every setting in which treatment's resolved configuration departs from control's, by dotted path.

    A setting that one arm lacks reads '(absent)' there. The target and the environment count as settings.
    """
    sides = []
    for arm in (plan.control, plan.treatment):
        settings = {"target": arm.target, **dict(_leaves(arm.config))}
        settings |= {f"env.{key}": value for key, value in arm.environment.items()}
        settings |= {"code": str(arm.code)} if arm.code else {}
        sides.append(settings)
    control, treatment = sides
    return {
        key: (control.get(key, "(absent)"), treatment.get(key, "(absent)"))
        for key in sorted(control.keys() | treatment.keys())
        if control.get(key, _ABSENT) != treatment.get(key, _ABSENT)
    }


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def name(text: str) -> str:
    """`text` as a legal MLflow key: letters, digits, `_ - . space : /`, at most 250 characters, no doubled slash."""
    legal = re.sub(r"/{2,}", "/", _ILLEGAL_IN_NAME.sub("_", text)).strip("/")
    return re.sub(r"\.{2,}", "_", legal)[:250]


def cut(text: str, limit: int) -> str:
    """`text`, or its beginning and how long it was: MLflow itself would cut without a word."""
    if len(text) <= limit:
        return text
    return text[:limit] + f" ... (cut at {limit} of {len(text)} characters; whole in evidence.json)"
