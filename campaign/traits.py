"""What a workload says of itself that rules go by: its threads, its ranks, and whether it is only watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from campaign.records import Trial

IN_TURN = "processes in turn"  # the fact `protocol` of a command that is only watched


def threads(trial: Trial) -> int:
    """The threads that the workload says it uses; 1 where it does not say."""
    value = trial.facts.get("threads", 1)
    return value if isinstance(value, int) else 1


def ranks(facts: Mapping[str, Any]) -> int:
    """The processes that take a step together; 1 where the workload does not say."""
    value = facts.get("ranks", 1)
    return value if isinstance(value, int) else 1


def watched(trial: Trial) -> bool:
    """Whether the trial runs a command that nothing holds at a gate, so that its steps go on whoever's turn it is."""
    return trial.facts.get("protocol") == IN_TURN


def uncounted(facts: Mapping[str, Any]) -> bool:
    """Whether nobody can count what runs in the probed arm: a command that is only watched."""
    return facts.get("way") == "command"


def not_looked_at(untold: Sequence[str]) -> str:
    """'gradient norms and gradients were not looked at: the workload does not tell them'."""
    words = [{"loss": "losses", "gradient norm": "gradient norms"}.get(what, what) for what in untold]
    several = f"{', '.join(words[:-1])} and {words[-1]}" if words[1:] else words[0]
    return f"{several} were not looked at: the workload does not tell them"
