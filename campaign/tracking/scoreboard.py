"""The campaign's note in MLflow: the newest headline, the accepted stack, what its parts come to, and everything else
that was tried. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from campaign import units
from campaign.destination import again
from campaign.interactions.departure import product_of
from campaign.interactions.words import headline_of, stack_word
from campaign.reading import EMULATED, is_test, label, outcome, outcomes_text
from campaign.records import FACTORIAL, HEADLINE, LEAVE_ONE_OUT, Contrast, Decision, Found, Plan, Study, to_json
from campaign.stack import parts_line
from campaign.tracking.decided import AS_DECIDED, Decided, Standing, standings
from campaign.tracking.finding_note import numbers
from campaign.tracking.note import table
from campaign.tracking.words import finding_name, verdict_word

LIMIT = 19_000  # MLflow refuses longer values of an experiment's tag than 20,000
ROWS = 80


@dataclass(frozen=True)
class Board:
    """What the note is made of. `stack` has the ids of the decisions in the stack, in order; `plans` and `studies` are
    those of the decisions and findings, by id."""

    campaign: str
    decisions: Sequence[Decision]
    plans: Mapping[str, Plan]
    stack: Sequence[str]
    standings: Mapping[str, Standing] = field(default_factory=dict)
    findings: Sequence[Found] = ()
    studies: Mapping[str, Study] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: Decided) -> Board:
        return cls(
            campaign=ledger.folder.name,
            decisions=ledger.decisions(),
            plans={plan.id: plan for plan in ledger.plans()},
            stack=[str(row["id"]) for row in ledger.stack_rows()],
            standings=standings(ledger),
            findings=ledger.findings(),
            studies={study.id: study for study in ledger.studies()},
        )

    def accepted(self) -> list[Decision]:
        by_id = {decision.id: decision for decision in self.decisions}
        return [by_id[id] for id in self.stack]

    def newest(self, kind: str) -> Found | None:
        """The newest finding of a kind that has numbers."""
        found = [one for one in self.findings if one.finding.kind == kind and (one.finding.total or one.finding.terms)]
        return found[-1] if found else None


def scoreboard(board: Board) -> str:
    """The experiment's note: the newest headline on top, then the accepted stack, what it does together, and
    everything else that was tried, best ratio first."""
    accepted = board.accepted()
    others = sorted((d for d in board.decisions if d.id not in board.stack), key=_by_ratio)
    names = " + ".join(d.hypothesis for d in accepted) or "none"
    counted = f"{units.counted(len(board.decisions), 'decision')}, accepted: {names}"
    headline = board.newest(HEADLINE)
    if headline is None:
        parts = [f"**{board.campaign}: {counted}**"]
    else:
        parts = [
            f"**{board.campaign}: {headline_of(to_json(headline.finding))}**",
            _measured(headline, names, accepted),
            counted,
        ]
    if accepted:
        parts += [*_stack_lines(board, accepted, headline), _table(accepted, board.standings, together=True)]
    parts += _findings(board)
    if others:
        shown = others[:ROWS]
        parts += ["Not in the stack:", _table(shown, board.standings)]
        if len(others) > len(shown):
            parts.append(f"{len(others) - len(shown)} more: `campaign ledger`.")
    parts += _counts(board)
    text = "\n\n".join(parts)
    return text if len(text) <= LIMIT else text[:LIMIT] + "\n\n(cut; see `campaign ledger`)"


def _measured(headline: Found, names: str, accepted: Sequence[Decision]) -> str:
    """When and of what the headline was measured, and whether that is still the stack."""
    said = f"Root against root + {' + '.join(headline.stack)}, matched, on {headline.decided_at[:10]}"
    if tuple(d.hypothesis for d in accepted) == headline.stack:
        return said + "."
    return f"{said}. The stack moved since, to {names}: `campaign revalidate` measures it."


def _stack_lines(board: Board, accepted: Sequence[Decision], headline: Found | None) -> list[str]:
    """The accepted edits' own ratios, multiplied and added, beside the measured whole where it is of this stack."""
    effects = [d.verdict.effect for d in accepted]
    ratios = [effect.ratio for effect in effects if effect is not None]
    product = math.prod(ratios)
    of_this = headline is not None and headline.stack == tuple(d.hypothesis for d in accepted)
    total: Contrast | None = headline.finding.total if headline is not None and of_this else None
    if total is None or headline is None or len(ratios) < len(accepted):
        return [
            f"Accepted stack, in order. The product of the single ratios is {units.ratio(product)}, which is no "
            "measurement of the stack."
        ]
    d = board.studies[headline.study_id].threshold
    word = stack_word(total, product_of(one for one in effects if one), "marginal", d)
    added = 1 + sum(ratio - 1 for ratio in ratios)
    return ["Accepted stack, in order. " + parts_line(product, added, total.ratio, word, "marginal")]


def _findings(board: Board) -> list[str]:
    """The newest leave-one-out and the newest factorial, with their numbers."""
    found = [one for kind in (LEAVE_ONE_OUT, FACTORIAL) if (one := board.newest(kind)) is not None]
    return [f"{finding_name(one)}, {_when(one, board)}.\n\n{numbers(one.finding)}" for one in found]


def _when(one: Found, board: Board) -> str:
    """Its day, and on which stack where that is no longer the present one."""
    if one.stack == tuple(d.hypothesis for d in board.accepted()):
        return one.decided_at[:10]
    return f"{one.decided_at[:10]}, when the stack was {' + '.join(one.stack) or 'empty'}"


def _counts(board: Board) -> list[str]:
    decisions = board.decisions
    said = []
    if turned_out := outcomes_text(outcome(d.verdict, d.predicted_ratio) for d in decisions):
        said.append(turned_out)
    emulated = sum(d.low_precision == EMULATED for d in decisions)
    if emulated:
        said.append(f"Low precision is emulated in {emulated} of {units.counted(len(decisions), 'decision')}.")
    alpha = sum(d.verdict.alpha_spent for d in decisions)
    tests = sum(is_test(d.verdict, board.plans[d.plan_id]) for d in decisions)
    said.append(f"Tests run: {tests}, alpha spent in all: {alpha:.4g}. Rebuild this view: `{again(board.campaign)}`.")
    return said


def _by_ratio(decision: Decision) -> tuple[float, int]:
    effect = decision.verdict.effect
    return (-effect.ratio if effect and math.isfinite(effect.ratio) else math.inf, decision.sequence)


def _table(decisions: Sequence[Decision], standings: Mapping[str, Standing], together: bool = False) -> str:
    """One line a decision; `together`, with what each does alone and with the stack, where any was measured so."""
    together = together and any(d.verdict.combined for d in decisions)
    head = ["#", "verdict", "hypothesis", "speed", "95 %"]
    head += ["isolated", "cumulative", "interaction", "word"] if together else ["reason"]
    rows = []
    for d in decisions:
        effect, memory, combined = d.verdict.effect, d.verdict.memory, d.verdict.combined
        row = [
            f"{d.sequence:02d}",
            verdict_word(d, standings.get(d.id, AS_DECIDED)),
            label(d.hypothesis, d.command),
            units.ratio(effect.ratio) if effect else "-",
            units.interval(effect.low, effect.high) if effect else "-",
        ]
        if together and combined:
            row += [_contrast(one) for one in (combined.isolated, combined.cumulative, combined.interaction)]
            row.append(combined.word)
        else:
            row += ["-"] * 4 if together else [d.verdict.reason]
        row += [
            f"{units.ratio(d.predicted_ratio)} {outcome(d.verdict, d.predicted_ratio)}".rstrip(),
            units.signed_size(memory.treatment_bytes - memory.control_bytes) if memory else "-",
        ]
        rows.append(row)
    return table([*head, "predicted", "memory"], rows)


def _contrast(effect: Contrast) -> str:
    return f"{units.ratio(effect.ratio)} {units.interval(effect.low, effect.high)}"
