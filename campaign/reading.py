"""How a decision is read, wherever it is shown: which effect may say tokens a second, and what counts as a test.

MLflow's view and the reports show the same decision; what a word means is said here once for both.
"""

from __future__ import annotations

from campaign.records import Effect, Plan, Verdict


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
