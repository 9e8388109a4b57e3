"""A decision in prose: the first line of the run's description, decision.md, and the campaign's scoreboard. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from campaign import units
from campaign.reading import EMULATED, counts_text, is_test, label, outcome, outcomes_text, wall_effect
from campaign.records import ACCEPT, INVALID, REJECT, UNAVAILABLE, Decision, Effect, Evidence, Plan, Verdict
from campaign.tracking.mapping import config_changes, cut, log_path, trial_name
from campaign.tracking.words import verdict_word

# MLflow refuses longer values of an experiment tag (20,000) and silently cuts those of a run tag (8,000).
SCOREBOARD_LIMIT = 19_000
SCOREBOARD_ROWS = 80
NOTE_LIMIT = 7_900


def first_line(decision: Decision, revoked: bool = False) -> str:
    """The verdict in plain words, without markup: the runs table shows this line raw."""
    verdict = decision.verdict
    said = {
        ACCEPT: "Accepted",
        REJECT: "Rejected",
        INVALID: "Invalid, so nothing is decided",
        UNAVAILABLE: "Not run on this machine",
    }.get(verdict.verdict, "Inconclusive")
    text = f"{said}: {label(decision.hypothesis, decision.command)}"
    if verdict.effect is not None and math.isfinite(verdict.effect.ratio):
        text += f", {speed_words(verdict.effect)}"
    if verdict.memory is not None and (verdict.memory.saved or verdict.memory.grown):
        change = verdict.memory.treatment_bytes - verdict.memory.control_bytes
        text += f", peak memory {units.signed_size(change)}"
    text += f". {verdict.sentence}" if verdict.sentence else "."
    return ("Revoked later, no longer in the stack. " if revoked else "") + " ".join(text.split())


def speed_words(effect: Effect) -> str:
    """'1.042x whole-step speed (95 % interval [1.031, 1.053], 4 rounds, cpu clock)'."""
    sure = f"95 % interval {units.interval(effect.low, effect.high)}, " if math.isfinite(effect.low) else ""
    return f"{units.ratio(effect.ratio)} whole-step speed ({sure}{effect.rounds} rounds, {effect.clock} clock)"


def run_note(decision: Decision, revoked: bool = False) -> str:
    """The run's description: the verdict first, then the numbers; the whole is in decision.md."""
    text = f"{first_line(decision, revoked)}\n\n{_numbers(decision)}\n\n{predicted(decision)}"
    text += f"\n\n{_warnings(decision.verdict)}"
    return cut(text.strip() + "\n\nWhole note: artifacts, decision.md.", NOTE_LIMIT)


def decision_markdown(decision: Decision, evidence: Evidence, revoked: bool = False) -> str:
    """decision.md: everything a reviewer asks first, in the order in which it is asked."""
    plan, verdict = evidence.plan, decision.verdict
    claim = plan.hypothesis
    parts = [
        f"# {decision.sequence:02d} {verdict.verdict}: {label(decision.hypothesis, decision.command)}",
        first_line(decision, revoked),
        f"Try next: `{verdict.remedy}`" if verdict.remedy else "",
        "## The claim",
        f"{claim.claim} Mechanism: {claim.mechanism} Predicted: {units.ratio(claim.predicted_ratio)}."
        + (f" Needs: {', '.join(claim.needs)}." if claim.needs else ""),
        "## What was measured",
        _numbers(decision),
        predicted(decision),
        _warnings(verdict),
        "Figure, beside this note: `figures/decision.png`." if verdict.effect else "",
        _failures(evidence),
        "## What differs between the arms",
        _changes(evidence),
        "## Why it may be believed",
        _trust(decision, evidence),
        "## Do it again",
        f"```\n{decision.command}\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def predicted(decision: Decision) -> str:
    """The predictions against what was measured and counted, and whether low precision was emulated."""
    said = f"Predicted {units.ratio(decision.predicted_ratio)}"
    if word := outcome(decision.verdict, decision.predicted_ratio):
        said += f": {word}"
    if counted := counts_text(decision.engagement, decision.stack):
        said += f"; counts as predicted: {counted}"
    said += "."
    if decision.verdict.suspect:
        said += f" Suspect: {decision.verdict.suspect}."
    if decision.low_precision == EMULATED:
        said += " Low precision is emulated: its numerics are real, its speed is not a device's."
    return said


def _numbers(decision: Decision) -> str:
    verdict = decision.verdict
    rows = []
    if effect := verdict.effect:
        rows += [
            (
                f"step, {effect.clock} clock",
                units.seconds(effect.control_step_seconds),
                units.seconds(effect.treatment_step_seconds),
                f"**{units.ratio(effect.ratio)}** {units.interval(effect.low, effect.high)}",
            ),
            ("step, p99", units.seconds(effect.control_p99_seconds), units.seconds(effect.treatment_p99_seconds), ""),
        ]
    if wall := wall_effect(verdict):
        rates = (units.rate(wall.control_tokens_per_second), units.rate(wall.treatment_tokens_per_second))
        rows.append(("throughput, wall clock", *rates, "" if wall is verdict.effect else units.ratio(wall.ratio)))
    if memory := verdict.memory:
        surely = "exact in every round" if memory.exact else units.interval(memory.low, memory.high)
        change = units.signed_size(memory.treatment_bytes - memory.control_bytes)
        sizes = (units.size(memory.control_bytes), units.size(memory.treatment_bytes))
        rows.append(("peak memory", *sizes, f"{change} ({surely})"))
    if not rows:
        return "No round counted, so there is no number."
    text = _table(("", "control", "treatment", "treatment against control"), rows)
    for effect, what in ((verdict.beside, "On the clock that does not decide"), (verdict.screening, "While screening")):
        if effect is not None:
            text += f"\n\n{what}: {speed_words(effect)}."
    return text


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table. Cells end in a no-break space: MLflow's page sets columns without any gap."""
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    lines = ["|" + "|".join(f" {cell}\u00a0 " for cell in row) + "|" for row in escaped]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def _warnings(verdict: Verdict) -> str:
    return "\n".join(f"- Warning: {' '.join(warning.split())}" for warning in verdict.warnings)


def _changes(evidence: Evidence) -> str:
    changes = config_changes(evidence.plan)
    if not changes:
        return "Nothing in the resolved configurations (a null edit, or a change of the code only)."
    rows = [(f"`{key}`", f"`{control}`", f"`{treatment}`") for key, (control, treatment) in changes.items()]
    return _table(("setting", "control", "treatment"), [[cell.replace("\n", " ") for cell in row] for row in rows])


def _failures(evidence: Evidence) -> str:
    """The trials that ended without their answer, and where their output is."""
    lines = [
        f"- {trial_name(round_, trial.arm)} ended as {trial.status}: {' '.join(trial.message.split()) or 'no message'}"
        + (f" (`{log_path(round_, trial)}`)" if trial.log else "")
        for round_ in evidence.rounds
        for trial in round_.trials
        if trial.status != "ok"
    ]
    return "\n".join(lines)


def _trust(decision: Decision, evidence: Evidence) -> str:
    plan, verdict = evidence.plan, decision.verdict
    source = plan.source
    facts = [
        f"Rounds: {verdict.valid_rounds} counted, {verdict.invalid_rounds} invalid and kept. "
        f"Alpha spent {verdict.alpha_spent:.4g} of {plan.alpha:.4g}, attempt {decision.attempt}.",
        f"Thresholds: above 1 and at least {1 + plan.threshold:.4f} "
        f"({'floor ' + plan.floor_id if plan.floor_id else 'the floor was not measured here'}).",
        f"Clock: {plan.protocol.clock}. Protocol: {plan.protocol.name}"
        + ("." if plan.protocol.decisive else ", a first look that cannot accept."),
        f"Parity: {decision.parity or 'not probed'}. Engagement: {decision.engagement or 'not probed'}.",
        f"Low precision: {decision.low_precision}." if decision.low_precision else "",
        f"Control is root + [{', '.join(decision.stack)}]." if decision.stack else "Control is the root.",
        f"Commit {source.get('commit') or 'unknown'}, "
        + (f"with a patch ({source['patch_sha256'][:12]})." if source.get("patch_sha256") else "no patch recorded."),
        f"Machine: {decision.machine_line}.",
        f"It took {units.seconds(decision.wall_seconds)}, of which {units.seconds(decision.timed_seconds)} were timed.",
    ]
    return "\n".join(f"- {fact}" for fact in facts if fact)


def scoreboard(
    campaign: str, decisions: Sequence[Decision], plans: Mapping[str, Plan], revoked: Collection[str]
) -> str:
    """The experiment's note: the accepted stack on top, then everything else that was tried, best ratio first.

    `plans` holds each decision's plan by its id.
    """
    stack = [d for d in decisions if d.verdict.verdict == ACCEPT and d.id not in revoked]
    others = sorted((d for d in decisions if d not in stack), key=_by_ratio)
    names = " + ".join(d.hypothesis for d in stack) or "none"
    parts = [f"## {campaign}: {units.counted(len(decisions), 'decision')}, accepted: {names}"]
    if stack:
        product = math.prod(d.verdict.effect.ratio for d in stack if d.verdict.effect)
        parts.append(
            f"Accepted stack, in order. The product of the single ratios is {units.ratio(product)}, which is no "
            "measurement of the stack."
        )
        parts.append(_board(stack, revoked))
    if others:
        shown = others[:SCOREBOARD_ROWS]
        parts += ["Not in the stack:", _board(shown, revoked)]
        if len(others) > len(shown):
            parts.append(f"{len(others) - len(shown)} more: `campaign ledger`.")
    alpha = sum(d.verdict.alpha_spent for d in decisions)
    tests = sum(is_test(d.verdict, plans[d.plan_id]) for d in decisions)
    if turned_out := outcomes_text(outcome(d.verdict, d.predicted_ratio) for d in decisions):
        parts.append(turned_out)
    emulated = sum(d.low_precision == EMULATED for d in decisions)
    if emulated:
        parts.append(f"Low precision is emulated in {emulated} of {units.counted(len(decisions), 'decision')}.")
    parts.append(f"Tests run: {tests}, alpha spent in all: {alpha:.4g}. Rebuild this view: `campaign sync`.")
    text = "\n\n".join(parts)
    return text if len(text) <= SCOREBOARD_LIMIT else text[:SCOREBOARD_LIMIT] + "\n\n(cut; see `campaign ledger`)"


def _by_ratio(decision: Decision) -> tuple[float, int]:
    effect = decision.verdict.effect
    return (-effect.ratio if effect and math.isfinite(effect.ratio) else math.inf, decision.sequence)


def _board(decisions: Sequence[Decision], revoked: Collection[str]) -> str:
    rows = []
    for d in decisions:
        effect, memory = d.verdict.effect, d.verdict.memory
        rows.append(
            (
                f"{d.sequence:02d}",
                verdict_word(d, d.id in revoked),
                label(d.hypothesis, d.command),
                units.ratio(effect.ratio) if effect else "-",
                units.interval(effect.low, effect.high) if effect else "-",
                f"{units.ratio(d.predicted_ratio)} {outcome(d.verdict, d.predicted_ratio)}".rstrip(),
                units.signed_size(memory.treatment_bytes - memory.control_bytes) if memory else "-",
                d.verdict.reason,
            )
        )
    return _table(("#", "verdict", "hypothesis", "speed", "95 %", "predicted", "memory", "reason"), rows)
