"""A decision and its trials as MLflow sees them: metrics, params, tags. Pure; imports no MLflow.

Metrics are rounded and finite, and each is logged once: MLflow stores infinity as 1.8e308, one NaN breaks a chart, the
table prints every digit, and a metric logged twice is drawn as a line. Params and tags are cut before MLflow cuts them
silently (6,000 and 8,000 characters), and say so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from campaign import units
from campaign.reading import counts, counts_text, label, outcome, wall_effect
from campaign.records import Block, Decision, Evidence, Plan, Round, Trial, to_json
from campaign.tracking.words import verdict_word

PARAM_LIMIT = 5900
TAG_LIMIT = 7900
SERIES_LIMIT = 1000
_ILLEGAL_IN_NAME = re.compile(r"[^\w\-. :/]")


def decision_tags(decision: Decision, plan: Plan, revoked: bool = False) -> dict[str, str]:
    """The tags of the parent run: what a reviewer filters by."""
    verdict = decision.verdict
    source = plan.source
    tags = {
        "verdict": verdict_word(decision, revoked),
        "reason": verdict.reason,
        "hypothesis": decision.hypothesis,
        "workload": decision.workload,
        "stack": " + ".join(decision.stack) or "root",
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
        "campaign.revoked": "yes" if revoked else "no",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.name": decision.command,
    }
    if source.get("commit"):
        tags["mlflow.source.git.commit"] = str(source["commit"])
    if source.get("branch"):
        tags["mlflow.source.git.branch"] = str(source["branch"])
    return {key: cut(value, TAG_LIMIT) for key, value in tags.items()}


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


def finite(values: Mapping[str, float | None]) -> dict[str, float]:
    """The values that MLflow can store and draw: ratios and percents to four decimals, the rest to five digits."""
    return {
        key: round(value, 4) if "ratio" in key or key == "gain_pct" else float(f"{value:.5g}")
        for key, value in values.items()
        if value is not None and math.isfinite(value)
    }


def decision_params(decision: Decision, plan: Plan) -> dict[str, str]:
    """The params of the parent run: what differs between the arms, and the protocol as it was declared."""
    found: dict[str, Any] = {
        "workload": plan.workload,
        "edit/overrides": " ".join(plan.hypothesis.edit.overrides),
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


def trial_name(round_: Round, arm: str) -> str:
    """'screen 03 treatment', counting rounds from 1."""
    return f"{round_.stage} {round_.index + 1:02d} {arm}"


def trial_tags(round_: Round, trial: Trial) -> dict[str, str]:
    """The tags of a nested run."""
    tags = {
        "campaign.kind": "trial",
        "campaign.trial_id": trial.id,
        "arm": trial.arm,
        "stage": round_.stage,
        "round": str(round_.index + 1),
        "status": trial.status,
        "mlflow.note.content": trial_note(round_, trial),
    }
    return {key: cut(value, TAG_LIMIT) for key, value in tags.items()}


def trial_note(round_: Round, trial: Trial) -> str:
    """What the nested run is, in a sentence or two."""
    text = f"One fresh process that ran {trial.arm} in round {round_.index + 1} ({round_.stage})."
    if trial.status != "ok":
        text += f" It ended as {trial.status}: {trial.message or 'no message'}."
        text += f" Try: {trial.remedy}." if trial.remedy else ""
    return text + (f" Its output is in the parent's artifacts under {log_path(round_, trial)}." if trial.log else "")


def log_path(round_: Round, trial: Trial) -> str:
    """Where a trial's log is kept among the parent's artifacts. MLflow previews .txt files."""
    return f"logs/{round_.stage}-{round_.index + 1:02d}-{trial.arm}.txt"


def trial_metrics(round_: Round, trial: Trial) -> dict[str, float]:
    """The scalars of a nested run."""
    found: dict[str, float | None] = {
        "start_seconds": trial.start_seconds,
        "warmup_steps": len(trial.warmup_seconds),
        "recompiled": trial.recompiled,
        "loss": trial.loss,
        "gradient_norm": trial.gradient_norm,
        "load": round_.surroundings.load,
    }
    if trial.memory:
        found["peak_memory_mib"] = trial.memory.live_peak_bytes / units.MIB
        if trial.memory.process_peak_bytes is not None:
            found["process_peak_memory_mib"] = trial.memory.process_peak_bytes / units.MIB
    own = [block for block in round_.blocks if block.arm == trial.arm]
    seconds = sum(block.wall_seconds for block in own)
    if seconds > 0:
        found["tokens_per_second"] = sum(block.tokens for block in own) / seconds
        found["involuntary_switches"] = sum(block.involuntary_switches for block in own)
    return finite(found)


def trial_series(round_: Round, trial: Trial) -> dict[str, list[tuple[int, float]]]:
    """Step times in ms, by clock, as (block's turn in the round, value); evenly thinned to SERIES_LIMIT points."""
    own = [block for block in round_.blocks if block.arm == trial.arm]
    kept = own[:: math.ceil(len(own) / SERIES_LIMIT)] if own else []
    clocks = {
        "block_step_ms/wall": lambda block: block.wall_seconds,
        "block_step_ms/cpu": lambda block: block.cpu_seconds,
        "block_step_ms/device": lambda block: block.device_seconds,
    }
    found = {}
    for key, read in clocks.items():
        points = [(block.position, value) for block in kept if (value := _step_ms(block, read(block))) is not None]
        if points:
            found[key] = points
    return found


def _step_ms(block: Block, seconds: float | None) -> float | None:
    if seconds is None or not math.isfinite(seconds) or block.steps < 1:
        return None
    return float(f"{1e3 * seconds / block.steps:.6g}")


def trial_windows(evidence: Evidence, end_ms: int) -> dict[str, tuple[int, int]]:
    """Start and end of each round in ms, by round id. Only durations are recorded, so rounds are laid end to end
    backwards from `end_ms`, the decision's time; order and lengths are true, the instants are near."""
    windows = {}
    for round_ in reversed(evidence.rounds):
        start = end_ms - round(1e3 * round_.wall_seconds)
        windows[round_.id] = (start, end_ms)
        end_ms = start
    return windows
