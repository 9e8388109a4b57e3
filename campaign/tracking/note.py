"""A decision in prose: the first line of the run's description, and decision.md. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from campaign import units
from campaign.interactions.words import EXPLAINED
from campaign.reading import EMULATED, counts_text, label, outcome, wall_effect
from campaign.records import (
    ACCEPT,
    INVALID,
    REJECT,
    UNAVAILABLE,
    ByteChange,
    Combined,
    Decision,
    Effect,
    Evidence,
    Verdict,
)
from campaign.tracking.decided import AS_DECIDED, Standing
from campaign.tracking.mapping import config_changes, cut
from campaign.tracking.trials import log_path, trial_name

NOTE_LIMIT = 7_900  # MLflow silently cuts a run's tag at 8,000


def first_line(decision: Decision, standing: Standing = AS_DECIDED) -> str:
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
    return _since(standing) + " ".join(text.split())


def _since(standing: Standing) -> str:
    """What became of the decision later, before what was measured."""
    if standing.revoked:
        return "Revoked later, no longer in the stack. "
    if not standing.ruling:
        return ""
    why = " ".join(standing.why.split()).rstrip(".")
    return f"A person ruled {standing.ruling}: {why}. As measured: "


def speed_words(effect: Effect) -> str:
    """'1.042x whole-step speed (95 % interval [1.031, 1.053], 4 rounds, cpu clock)'."""
    sure = f"95 % interval {units.interval(effect.low, effect.high)}, " if math.isfinite(effect.low) else ""
    return f"{units.ratio(effect.ratio)} whole-step speed ({sure}{effect.rounds} rounds, {effect.clock} clock)"


def run_note(decision: Decision, standing: Standing = AS_DECIDED) -> str:
    """The run's description: the verdict first, then the numbers; the whole is in decision.md."""
    text = f"{first_line(decision, standing)}\n\n{_numbers(decision)}\n\n{predicted(decision)}"
    text += f"\n\n{together(decision.verdict.combined)}" if decision.verdict.combined else ""
    text += f"\n\n{_warnings(decision.verdict)}"
    picture = " and its figure" if decision.verdict.effect else ""
    return cut(text.strip() + f"\n\nThe whole note{picture}: artifacts, decision.md.", NOTE_LIMIT)


def decision_markdown(decision: Decision, evidence: Evidence, standing: Standing = AS_DECIDED) -> str:
    """decision.md: everything a reviewer asks first, in the order in which it is asked."""
    plan, verdict = evidence.plan, decision.verdict
    claim = plan.hypothesis
    parts = [
        f"# {decision.sequence:02d} {verdict.verdict}: {label(decision.hypothesis, decision.command)}",
        first_line(decision, standing),
        f"Try next: `{verdict.remedy}`" if verdict.remedy else "",
        "## The claim",
        f"{claim.claim} Mechanism: {claim.mechanism} Predicted: {units.ratio(claim.predicted_ratio)}."
        + (f" Needs: {', '.join(claim.needs)}." if claim.needs else ""),
        "## What was measured",
        _numbers(decision),
        predicted(decision),
        together(verdict.combined) if verdict.combined else "",
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
    text = table(("", "control", "treatment", "treatment against control"), rows)
    for effect, what in ((verdict.beside, "On the clock that does not decide"), (verdict.screening, "While screening")):
        if effect is not None:
            text += f"\n\n{what}: {speed_words(effect)}."
    return text


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table. Cells end in a no-break space: MLflow's page sets columns without any gap."""
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    lines = ["|" + "|".join(f" {cell}\u00a0 " for cell in row) + "|" for row in escaped]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def together(combined: Combined) -> str:
    """The edit alone and with the stack, from the same rounds: a table and what the word means."""
    rows = [
        (what, f"{units.ratio(one.ratio)} {units.interval(one.low, one.high)}", bytes_text(change))
        for what, one, change in (
            ("marginal: on the stack", combined.marginal, combined.marginal_bytes),
            ("isolated: on root", combined.isolated, combined.isolated_bytes),
            ("cumulative: with the stack, against root", combined.cumulative, combined.cumulative_bytes),
            ("interaction: marginal over isolated", combined.interaction, combined.interaction_bytes),
        )
    ]
    said = table(("", "speed", "peak memory"), rows)
    meant = EXPLAINED.get(combined.word)
    return f"{said}\n\n**{combined.word}**" + (f": {meant}." if meant else "")


def bytes_text(change: ByteChange | None) -> str:
    """'-32.0 MiB' where it is exact, else with its interval; '-' for none."""
    if change is None:
        return "-"
    said = units.signed_size(change.bytes)
    return said if change.exact else f"{said} [{units.signed_size(change.low)}, {units.signed_size(change.high)}]"


def _warnings(verdict: Verdict) -> str:
    return "\n".join(f"- Warning: {' '.join(warning.split())}" for warning in verdict.warnings)


def _changes(evidence: Evidence) -> str:
    changes = config_changes(evidence.plan)
    if not changes:
        return "Nothing in the resolved configurations (a null edit, or a change of the code only)."
    rows = [(f"`{key}`", f"`{control}`", f"`{treatment}`") for key, (control, treatment) in changes.items()]
    return table(("setting", "control", "treatment"), [[cell.replace("\n", " ") for cell in row] for row in rows])


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
