"""How a decision is read, wherever it is shown: which effect may say tokens a second, what counts as a test, how a
prediction turned out, and which parameters a swept edit had.

MLflow's view and the reports show the same decision; what a word means is said here once for both. Nothing heavy is
imported: a listing reads with this too.
"""

from __future__ import annotations

import math
import re

TYPE_CHECKING = False  # the name that type checkers know, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Iterable

    from campaign.records import Effect, Plan, Verdict

HELD, OPTIMISTIC, PESSIMISTIC = "held", "optimistic", "pessimistic"
EMULATED = "emulated"
NULL_REASONS = ("floor", "biased")  # the reasons of A/A nulls, which predict 1 by what they are
# As `report.describe` writes an engagement: 'op:a::b falls: 96 -> 16 (predicted 96 -> ?)'.
_COUNTS = re.compile(r": (\S+) -> (\S+) \(predicted (\S+) -> (\S+?)\)")


def wall_effect(verdict: Verdict) -> Effect | None:
    """The effect whose seconds passed on the wall, the only one that gives tokens a second.

    The published effect where wall decides, the one beside it where process CPU time decides, None where there is
    neither: tokens over CPU time are no throughput.
    """
    for effect in (verdict.effect, verdict.beside):
        if effect is not None and effect.clock == "wall":
            return effect
    return None


def is_test(verdict: Verdict, plan: Plan) -> bool:
    """Whether a decisive look was taken at an edit: A/A nulls and first looks can't accept and aren't tests."""
    return verdict.look > 0 and plan.protocol.decisive and not plan.hypothesis.null


def prediction(predicted: float, low: float | None, high: float | None) -> str:
    """How a predicted ratio turned out against the measured 95 % interval: `held` inside it, `optimistic` above it,
    `pessimistic` below it; empty where no interval was measured."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    if predicted > high:
        return OPTIMISTIC
    return PESSIMISTIC if predicted < low else HELD


def outcome(verdict: Verdict, predicted: float) -> str:
    """The `prediction` of a decision's ratio; empty for an A/A null, which tests no prediction."""
    if verdict.effect is None or verdict.reason in NULL_REASONS:
        return ""
    return prediction(predicted, verdict.effect.low, verdict.effect.high)


def counts(engagement: str) -> tuple[int, int]:
    """Of the counts a step that a hypothesis predicted, how many the probe counted so, and how many there were.

    Read from the decision's own line about engagement, which every ledger has.
    """
    held = predicted = 0
    for before, after, *said in _COUNTS.findall(engagement):
        for counted, expected in zip((before, after), said, strict=True):
            if expected != "?":
                held, predicted = held + (counted == expected), predicted + 1
    return held, predicted


def counts_text(engagement: str, stack: Iterable[str]) -> str:
    """'2 of 3'; '2 of 3 (of root)' where control held more than root, for which counts are predicted. Empty without a
    predicted count."""
    held, predicted = counts(engagement)
    if not predicted:
        return ""
    return f"{held} of {predicted}" + (" (of root)" if tuple(stack) else "")


def outcomes_text(outcomes: Iterable[str]) -> str:
    """'Predicted ratios: 1 of 3 held, 2 optimistic, 0 pessimistic.' Empty where nothing was measured."""
    known = [word for word in outcomes if word]
    if not known:
        return ""
    told = ", ".join(f"{known.count(word)} {word}" for word in (OPTIMISTIC, PESSIMISTIC))
    return f"Predicted ratios: {known.count(HELD)} of {len(known)} inside the measured 95 % interval, {told}."


def parameters(hypothesis: str, command: str) -> str:
    """What sets this row apart from others of its hypothesis: its own parameters in the command that asked for it, and
    settings of the workload, for both arms: 'registers=8', 'keep=[head] workload.seed=1'."""
    own, both = f"{hypothesis}.", "workload."
    if own not in command and both not in command:
        return ""
    import shlex  # only a swept row waits for it

    words = [word for word in shlex.split(command) if word.startswith((own, both))]
    return " ".join(word.removeprefix(own) for word in words)


def label(hypothesis: str, command: str) -> str:
    """What a row is called: the hypothesis and its `parameters`, 'register_cap registers=8'."""
    return f"{hypothesis} {parameters(hypothesis, command)}".rstrip()
