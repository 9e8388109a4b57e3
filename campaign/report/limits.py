"""What a page about a campaign does not show, derived from the records: the part that the person pasting it would
rather leave out."""

from __future__ import annotations

from campaign.interactions.words import UNRESOLVED
from campaign.records import ACCEPT, INCONCLUSIVE, INVALID, REJECT, UNAVAILABLE
from campaign.records.study import FACTORIAL, HEADLINE, LEAVE_ONE_OUT
from campaign.report.reported import Reported, Reports, numbered

NOT_TOLD = "not looked at: the workload does not tell"
WEAKER = "the weaker protocol"


def not_shown(reports: Reports) -> list[str]:
    """One sentence or two a limit, plain text."""
    rows = list(reports.rows)
    if not rows:
        if reports.every:
            return ["Anything: the filter leaves no decision."]
        return ["Anything: no decision has been made yet."]
    found = [
        *_numbers(rows),
        *_stack(reports),
        *_together(reports),
        *_verdicts(rows),
        *_places(rows),
        *_bookkeeping(reports),
    ]
    return [line for line in found if line]


def _numbers(rows: list[Reported]) -> list[str]:
    measured = [row for row in rows if row.decision.verdict.effect]
    cpu = [row for row in measured if row.clock == "cpu"]
    screened = [row for row in measured if not row.decision.verdict.screening and not row.plan.hypothesis.null]
    confirmed = [row for row in measured if row.decision.verdict.screening]
    emulated = [row for row in measured if row.emulated]
    unknown = [row for row in measured if row.decision.low_precision == "unknown"]
    quick = [row for row in rows if not row.plan.protocol.decisive]
    no_floor = [row for row in measured if not row.plan.floor_id and not row.plan.hypothesis.null]
    lines = []
    if cpu:
        lines.append(
            f"Tokens per second on the wall: {numbered(cpu)} decided on CPU time, declared beforehand. "
            f"{_wall_beside(cpu)}"
        )
    if emulated:
        lines.append(
            f"The speed of low precision in hardware: it is emulated in {numbered(emulated)}, which shows its numerics "
            "and the cost of the passes around it, not the speed of a device that has it."
        )
    if unknown:
        lines.append(f"Whether low precision ran in hardware or was emulated: not recorded for {numbered(unknown)}.")
    untold = [row for row in rows if NOT_TOLD in row.decision.parity]
    if untold:
        lines.append(
            f"That every gradient, norm and loss of {numbered(untold)} is as it was: the workload does not tell all of "
            "them, and the decision's parity line names those that were not looked at."
        )
    in_turn = [row for row in rows if any(one.startswith(WEAKER) for one in row.decision.verdict.warnings)]
    if in_turn:
        lines.append(
            f"Drift of the machine cancelled block by block in {numbered(in_turn)}: a command that is only watched "
            "runs as whole processes in turn, and its interval is the wider for it."
        )
    if screened:
        lines.append(
            f"The exact size of the effect in {numbered(screened)}: those ratios come from the rounds at which the "
            "test was free to stop, which flatters in the direction of the stop. Only accepts get fresh rounds."
        )
    if confirmed:
        lines.append(
            f"Another day: the ratio of {numbered(confirmed)} comes from fresh rounds, but taken right after the "
            "screening on the same machine."
        )
    if quick:
        lines.append(f"A decision in {numbered(quick)}: a first look can say promising or not, never accept.")
    elsewhere = [row for row in rows if row.counts.endswith("(of root)")]
    if elsewhere:
        lines.append(
            f"How well counts were predicted in {numbered(elsewhere)}: they are predicted for root, and control held "
            "other edits already."
        )
    suspect = [row for row in rows if row.decision.verdict.suspect]
    if suspect:
        lines.append(
            f"That nothing is wrong with {numbered(suspect)}: a gain so large is confirmed twice and still marked "
            "suspect; read what the edit skips."
        )
    if no_floor:
        lines.append(
            f"What this machine can resolve: the floor was not measured before {numbered(no_floor)}, so d is the "
            "protocol's smallest effect alone (try: campaign hypothesis=aa_null)."
        )
    return lines


def _wall_beside(rows: list[Reported]) -> str:
    """How far the wall clock beside the decisions is from them; one by one it stands in their details."""
    apart = [
        (abs(beside.ratio / effect.ratio - 1), row)
        for row in rows
        if (effect := row.decision.verdict.effect) and (beside := row.decision.verdict.beside)
        and beside.clock == "wall"
    ]  # fmt: skip
    if not apart:
        return "No wall time was kept."
    most, row = max(apart, key=lambda pair: pair[0])
    return (
        f"Wall time beside it, which did not decide, differs by at most {100 * most:.2g} % of the ratio "
        f"({numbered([row])})."
    )


def _stack(reports: Reports) -> list[str]:
    if not reports.stack:
        return []
    lines = []
    headline = reports.newest(HEADLINE)
    if headline is None or not headline.present:
        since = "" if headline is None else " since the stack moved"
        lines.append(f"The whole stack: root against head has not been measured{since} (try: campaign revalidate).")
    else:
        lines.append(
            f"The whole stack on another day: root against head is one set of {headline.found.finding.valid_rounds} "
            f"rounds ({numbered([headline])})."
        )
    if len(reports.stack) > 1:
        left_out = reports.newest(LEAVE_ONE_OUT)
        if left_out is None or not left_out.present:
            lines.append("That every edit still pays on the whole stack: leave-one-out has not been measured on it.")
        elif unsure := [term.name for term in left_out.found.finding.terms if term.word == UNRESOLVED]:
            lines.append(
                f"Whether {', '.join(unsure)} still pays: leave-one-out left it open ({numbered([left_out])})."
            )
    ruled = [row for row in reports.stack if row.ruling == ACCEPT]
    if ruled:
        lines.append(f"That the evidence accepts {numbered(ruled)}: a person ruled so, whatever the verdict was.")
    return lines


def _together(reports: Reports) -> list[str]:
    """What was not learnt of edits together."""
    lines = []
    two = [
        row for row in reports.rows
        if row.decision.stack and row.decision.verdict.effect and not row.combined and not row.null
    ]  # fmt: skip
    if two:
        lines.append(f"How the edits of {numbered(two)} do alone: root was not timed in their rounds.")
    open_ = [row for row in reports.rows if row.combined and row.combined.word == UNRESOLVED]
    if open_:
        lines.append(f"Whether the edits of {numbered(open_)} help or hinder the stack: the interval says neither.")
    fractions = [one for one in reports.of_kind(FACTORIAL) if one.study.generators]
    if fractions:
        lines.append(
            f"Interactions of three edits in {numbered(fractions)}: a fraction takes them to be nothing, and cannot "
            "tell some pairs apart."
        )
    failed = [one for one in reports.findings if one.found.finding.failed]
    if failed:
        lines.append(f"Arms that could not run in {numbered(failed)}: their edits have no number there.")
    return lines


def _verdicts(rows: list[Reported]) -> list[str]:
    def of(*verdicts: str) -> list[Reported]:
        return [
            row for row in rows if row.decision.verdict.verdict in verdicts and row.plan.protocol.decisive
            and not row.plan.hypothesis.null
        ]  # fmt: skip

    open_, rejected = of(INCONCLUSIVE), of(REJECT)
    lines = []
    if open_:
        lines.append(
            f"That the arms are equal in {numbered(open_)}: inconclusive means that the rounds did not decide."
        )
    if rejected:
        lines.append(
            f"That {numbered(rejected)} would lose elsewhere: rejected means no gain worth having on this workload, "
            "device and stack."
        )
    invalid = [row for row in rows if row.decision.verdict.verdict == INVALID]
    if invalid:
        lines.append(
            f"Anything about the edits of {numbered(invalid)}: the comparison was invalid, which is no verdict on them."
        )
    unavailable = [row for row in rows if row.decision.verdict.verdict == UNAVAILABLE]
    if unavailable:
        lines.append(f"Anything about the edits of {numbered(unavailable)}: this machine cannot run them.")
    retried = [row for row in rows if row.plan.attempt > 1]
    if retried:
        lines.append(
            f"A first attempt in {numbered(retried)}: the same candidate had been tested before, and alpha was halved "
            "with each attempt."
        )
    out = [row for row in rows if row.taken_out]
    if out:
        lines.append(f"The stack as it is in {numbered(out)}: taken out after the decision, not in the stack.")
    warned = [row for row in rows if row.decision.verdict.verdict == ACCEPT and row.decision.verdict.warnings]
    if warned:
        lines.append(f"An accept free of warnings in {numbered(warned)}: they stand below the tables.")
    return lines


def _places(rows: list[Reported]) -> list[str]:
    hosts = {str(row.plan.fingerprint.get("host", row.plan.machine_line)) for row in rows}
    workloads = sorted({row.plan.workload for row in rows})
    steps = sorted({row.plan.protocol.probe_steps for row in rows})
    probed = " or ".join(map(str, steps))
    lines = [
        "Any other machine: every number comes from one machine."
        if len(hosts) == 1
        else f"A comparison between machines: there are {len(hosts)}, and ratios of different machines are history "
        "to each other, not control.",
        f"Any other shape, batch or model than {', '.join(workloads)}.",
        f"What happens to a whole training run: parity was probed over {probed} steps of each arm, not to convergence.",
    ]
    if any(row.plan.device == "cpu" and row.decision.verdict.memory for row in rows):
        lines.append(
            "The memory of the whole process on CPU: the live tensors' peak of one untimed step decides; the process's "
            "own peak stands in the trials."
        )
    return lines


def _bookkeeping(reports: Reports) -> list[str]:
    rows = reports.rows
    lines = []
    lost = [row for row in rows if not row.plan.source.get("commit")]
    if lost:
        lines.append(f"The commit that was measured in {numbered(lost)}: none was recorded.")
    unkept = [row for row in rows if row.plan.source.get("dirty") and not row.plan.source.get("patch_sha256")]
    if unkept:
        lines.append(
            f"The exact source of {numbered(unkept)}: the tree had uncommitted changes and no patch of them was kept."
        )
    partial = [row for row in rows if row.plan.source.get("left_out")]
    if partial:
        lines.append(f"Every file that was there in {numbered(partial)}: some were left out of the kept patch.")
    if len({row.plan.code for row in rows}) > 1:
        lines.append("One version of the code: decisions were made on different versions of it.")
    if reports.unfinished:
        count = len(reports.unfinished)
        said = "1 registered plan or study has" if count == 1 else f"{count} registered plans and studies have"
        lines.append(
            f"What became of everything declared: {said} come to no end ({', '.join(reports.unfinished[:5])})."
        )
    return lines
