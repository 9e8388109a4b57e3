"""What `campaign.measure` gives back: the decision on two callables, with the evidence that it follows from."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from campaign.errors import BadInput
from campaign.records import Decision, Evidence, MemoryChange, Need, Verdict, from_json, to_json
from campaign.records.plan import NOT_COMPARED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = 1


@dataclass(frozen=True, repr=False)
class Comparison:
    """What came of `campaign.measure`: the decision, and the evidence that it is a pure function of.

    `decision.verdict` has everything that a run's verdict has. `log` is the end of what a failed trial printed.
    """

    decision: Decision
    evidence: Evidence
    log: str = field(default="", compare=False)

    @property
    def control(self) -> str:
        """The name of the control."""
        return self.evidence.plan.workload

    @property
    def treatment(self) -> str:
        """The name of the treatment."""
        return self.decision.hypothesis

    @property
    def verdict(self) -> str:
        """'accept', 'reject', 'inconclusive', 'invalid' or 'unavailable'."""
        return self.decision.verdict.verdict

    @property
    def reason(self) -> str:
        """The verdict's reason code: 'faster', 'slowdown', 'too_small', 'promising', 'parity', ..."""
        return self.decision.verdict.reason

    @property
    def ratio(self) -> float | None:
        """Control seconds / treatment seconds, above 1 is faster; None where no round counted."""
        effect = self.decision.verdict.effect
        return effect.ratio if effect else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ratio's two-sided 95 % interval over rounds; None without a ratio."""
        effect = self.decision.verdict.effect
        return (effect.low, effect.high) if effect else None

    @property
    def memory(self) -> MemoryChange | None:
        """Peak memory of a step, treatment against control; None where it was not compared."""
        return self.decision.verdict.memory

    @property
    def compared(self) -> bool:
        """Whether what the two steps compute was compared: False where they return nothing."""
        return self.evidence.plan.hypothesis.parity.kind != NOT_COMPARED

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know although it decides nothing."""
        from campaign.report.compared import warnings

        return warnings(self)

    def __repr__(self) -> str:
        from campaign.report.compared import line

        return f"<Comparison {line(self)}>"

    def __str__(self) -> str:
        from campaign.report.compared import text

        return text(self)

    def _repr_html_(self) -> str:
        from campaign.report.compared import html

        return html(self)

    def figure(self) -> Figure:
        """Per-round ratios with the interval and the thresholds, and the step times by turn. Raises BadInput where no
        round counted."""
        from campaign.tracking.figure import draw

        if self.decision.verdict.effect is None:
            raise BadInput(f"there is no ratio to draw: {self.decision.verdict.sentence}", remedy="print(comparison)")
        return draw(self.decision, self.evidence)

    def judged_again(self) -> Verdict | Need:
        """The verdict as the evidence gives it now: a pure function of it."""
        from campaign.verdicts import judge

        return judge(self.evidence)

    def to_json(self) -> str:
        """Everything as one JSON text, with every raw block time: `from_json` takes it back."""
        body = {"schema": SCHEMA, "decision": to_json(self.decision), "evidence": to_json(self.evidence)}
        return json.dumps(body, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """The comparison that `to_json` wrote, judged again from its evidence. Raises BadInput where it is not one, and
        where the decision is not what its evidence gives."""
        from campaign.report.recomputed import differences

        try:
            body = json.loads(text)
            found = cls(from_json(Decision, body["decision"]), from_json(Evidence, body["evidence"]))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(
                f"this is no comparison: {error}", remedy="the text that Comparison.to_json() gave"
            ) from None
        for path, recorded, again in differences(found.decision, found.evidence, same_words=False):
            raise BadInput(
                f"{path} is recorded as {recorded!r}, and the evidence gives {again!r}",
                remedy="the text that Comparison.to_json() gave, unchanged, with the campaign that wrote it",
            )
        return found
