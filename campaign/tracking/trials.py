"""The trials of a decision as nested runs: names, tags, notes, metrics and series of step times. Pure."""

from __future__ import annotations

import math

from campaign import units
from campaign.records import Block, Evidence, Round, Trial
from campaign.tracking import mapping

SERIES_LIMIT = 1000


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
    return {key: mapping.cut(value, mapping.TAG_LIMIT) for key, value in tags.items()}


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
    return mapping.finite(found)


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
