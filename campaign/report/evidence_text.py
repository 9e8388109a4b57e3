"""`campaign show DECISION`: everything that the ledger has about one decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from campaign import units
from campaign.errors import UnknownName
from campaign.machine import fingerprint_hash
from campaign.records import Arm, ArmProbe, Decision, Plan, Probe, Round, Trial, from_json, to_json
from campaign.report.doctor_text import doctor_before, doctor_line
from campaign.report.json_text import as_text
from campaign.report.listing import columns
from campaign.report.plain import plain
from campaign.report.verdict_text import decision_text

if TYPE_CHECKING:
    from campaign.ledger import Entry, Ledger

SCHEMA = 1
ROUNDS = ("round", "stage", "", "ratio", "blocks", "took", "timed", "load", "why not, or what failed")
RIGHT = frozenset({"ratio", "blocks", "took", "timed", "load"})
MOST_COUNTERS = 12


def found(ledger: Ledger, asked: str) -> dict[str, Any]:
    """The decision row that `asked` names: a number, an id, a plan's id, or a hypothesis (its newest decision).
    Raises UnknownName."""
    rows = ledger.decision_rows()
    number = asked.removeprefix("#")
    for row in reversed(rows):
        if asked in (row["id"], row["plan_id"]) or number == str(row["sequence"]):
            return row
    for row in reversed(rows):
        if asked == row["hypothesis"]:
            return row
    known = [*map(str, range(1, len(rows) + 1)), *dict.fromkeys(row["hypothesis"] for row in rows)]
    if number.isdigit():
        known = known[: len(rows)]
    raise UnknownName("decision", asked, known, remedy="campaign ledger")


class Shown:
    """One decision with its plan, probe, rounds, and what was said of it since.

    `judged` has the rounds with their blocks read, so that each has its gates and its ratio; without, only what the
    lines say is known, and no number library is loaded.
    """

    def __init__(self, ledger: Ledger, row: Mapping[str, Any], *, blocks: bool) -> None:
        self.file = ledger.file
        self.row = row
        self.decision = from_json(Decision, row)
        own = list(ledger.store.entries({"registered", "probe", "trial", "blocks"}, verify=False, plan=row["plan_id"]))
        self.plan, self.probe, self.rounds = _lines(own)
        self.judged: list[dict[str, Any]] = []
        if blocks:
            evidence = ledger.evidence(row["plan_id"])
            self.plan, self.probe, self.rounds = evidence.plan, evidence.probe, list(evidence.rounds)
            self.judged = _judged(self.plan, self.rounds)
        self.doctor = doctor_before(ledger, row, fingerprint_hash(self.plan.fingerprint))
        self.rulings = [
            {"kind": one.kind, "verdict": one.body.get("verdict", ""), "why": one.body["why"], "time": one.time}
            for one in ledger.store.entries({"revoked", "ruling"}, verify=False)
            if one.body["decision_id"] == row["id"]
        ]
        studies = {one.id for one in ledger.store.entries({"study"}, verify=False) if one.body["of"] == row["id"]}
        self.findings = [one for one in ledger.finding_rows() if one["study_id"] in studies]

    @property
    def raw(self) -> list[str]:
        """Every file beside the ledger that is named, relative to the campaign's folder."""
        names = [self.decision.log, *(arm.log for arm in (self.probe.arms if self.probe else ()))]
        for one in self.rounds:
            names += [one.blocks_file, *(trial.log for trial in one.trials)]
        patch = self.plan.source.get("patch_sha256")
        names += [f"raw/{patch}.patch"] if patch else []
        return [name for name in dict.fromkeys(names) if name]


def _lines(entries: Sequence[Entry]) -> tuple[Plan, Probe | None, list[Round]]:
    """Plan, newest probe and rounds without blocks, from their lines alone."""
    plan = next(from_json(Plan, one.body) for one in entries if one.kind == "registered")
    probes = [one.body for one in entries if one.kind == "probe"]
    trials = {one.body["id"]: one.body for one in entries if one.kind == "trial"}
    rounds = [
        from_json(Round, {**one.body, "trials": [trials[id] for id in one.body.get("trial_ids", ())], "blocks": []})
        for one in entries
        if one.kind == "blocks"
    ]
    return plan, from_json(Probe, probes[-1]) if probes else None, rounds


def _judged(plan: Plan, rounds: Sequence[Round]) -> list[dict[str, Any]]:
    """For each round its faults, and control against treatment as a ratio of its own where it has whole blocks."""
    import math

    from campaign.effects import round_logs
    from campaign.stability import round_faults

    judged = []
    for one in rounds:
        ratios = {}
        held = {block.arm for block in one.blocks}
        if {"control", "treatment"} <= held and all(trial.status == "ok" for trial in one.trials):
            logs = round_logs([one], plan.protocol.clock, plan.base)
            ratios = {role: math.exp(float(values[0])) for role, values in logs.items() if role != plan.base}
        faults = [{"code": fault.code, "sentence": fault.sentence} for fault in round_faults(one, plan)]
        judged.append({"faults": faults, "ratios": ratios})
    return judged


def shown_json(shown: Shown) -> str:
    """`{"schema": 1, "decision", "revoked", "ruling"..., "plan", "probe", "rounds": [{...the round without blocks,
    "block_count", "faults": [{"code", "sentence"}], "ratios": {role: base / role}}], "rulings": [{"kind", "verdict",
    "why", "time"}], "findings", "doctor", "raw": [...]}`. Faults and ratios are null where no blocks were read."""
    rounds = []
    for place, one in enumerate(shown.rounds):
        value = to_json(one)
        blocks = value.pop("blocks")
        judged = shown.judged[place] if shown.judged else {"faults": None, "ratios": None}
        rounds.append({**value, "block_count": len(blocks) or len(one.order), **judged})
    return as_text(
        {
            "schema": SCHEMA,
            "decision": to_json(shown.decision),
            "revoked": shown.row["revoked"],
            "ruling": shown.row["ruling"],
            "ruled_why": shown.row["ruled_why"],
            "line": shown.row["line"],
            "plan": to_json(shown.plan),
            "probe": to_json(shown.probe) if shown.probe else None,
            "rounds": rounds,
            "rulings": shown.rulings,
            "findings": shown.findings,
            "doctor": shown.doctor,
            "raw": shown.raw,
        }
    )


def shown_text(shown: Shown) -> str:
    """The same for a person: the decision first, then what it rests on."""
    parts = [
        decision_text(shown.decision, shown.file, revoked=shown.row["revoked"]),
        doctor_line(shown.doctor),
        _titled("ruled since", [_ruling(one) for one in shown.rulings]),
        _titled("measured since", [_finding(one) for one in shown.findings]),
        _titled(f"plan {shown.plan.id}, registered {shown.plan.registered_at}", _plan(shown.plan)),
        _titled("arms", _arms(shown.plan)),
        _titled("probe, untimed", _probe(shown.probe)),
        _titled(f"rounds ({len(shown.rounds)})", _rounds(shown)),
        _titled(f"files in {shown.file.parent}, named by their content (--json has whole names)", _files(shown)),
    ]
    return plain("\n\n".join(part for part in parts if part))


def _titled(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *(f"  {line}" for line in lines)]) if lines else ""


def _ruling(one: Mapping[str, Any]) -> str:
    word = "revoked" if one["kind"] == "revoked" else f"ruled {one['verdict']} by a person"
    return f"{one['time']}  {word}: {_flat(one['why'])}"


def _finding(row: Mapping[str, Any]) -> str:
    return (
        f"finding {row['sequence']} ({row['finding']['kind'].replace('_', ' ')}): {_flat(row['finding']['sentence'])}"
    )


def _plan(plan: Plan) -> list[str]:
    claim, protocol, source = plan.hypothesis, plan.protocol, plan.source
    commit = f"commit {str(source['commit'])[:12]}" if source.get("commit") else ""
    commit += ", dirty" if commit and source.get("dirty") else ""
    looks = "/".join(map(str, protocol.looks))
    floor = f"floor {plan.floor_id}" if plan.floor_id else "floor not measured"
    return [
        f"mechanism   {_flat(claim.mechanism)}; acts on {_flat(claim.acts_on)}",
        f"edit        {', '.join(claim.edit.words) or 'none'}",
        *(f"part        {part.name}: {', '.join(part.edit.overrides)}" for part in claim.parts),
        f"predicted   {units.ratio(claim.predicted_ratio)}"
        + (f", ceiling {units.ratio(claim.ceiling_ratio)}" if claim.ceiling_ratio else "")
        + "".join(f"; {change.counter} {change.change}" for change in claim.predicted_evidence),
        f"guardrails  parity {claim.parity.kind}; memory at most {units.percent(claim.memory_growth_limit)}",
        f"protocol    {protocol.name}: looks {looks}, {protocol.pairs} pairs, {protocol.clock} clock, alpha "
        f"{plan.alpha:g}, d = {100 * plan.threshold:.3g} % ({floor})",
        f"source      {commit or source.get('reason') or source.get('status') or 'unknown'}; code {plan.code[:12]}",
        *([f"two arms    {_flat(plan.two_arms)}"] if plan.two_arms else []),
        f"command     {plan.command}",
    ]


def _arms(plan: Plan) -> list[str]:
    """Each arm, and where its configuration differs from control's."""
    lines = []
    for arm in plan.arms:
        code = f", code {arm.code}" if arm.code else ""
        lines.append(f"{arm.role:<10} {arm.name}, {arm.target}, {arm.hash[:12]}{code}")
        if arm.role != plan.base:
            lines += [f"  {line}" for line in _differences(plan.control, arm)]
    return lines


def _differences(one: Arm, other: Arm) -> list[str]:
    def leaves(value: Any, path: str = "") -> dict[str, Any]:
        if not isinstance(value, dict) or not value:
            return {path: value}
        return {
            key: leaf
            for name, inner in value.items()
            for key, leaf in leaves(inner, f"{path}.{name}".lstrip(".")).items()
        }

    before = leaves(one.config) | {f"${name}": value for name, value in one.environment.items()}
    after = leaves(other.config) | {f"${name}": value for name, value in other.environment.items()}
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return [f"{key}: {before.get(key, 'unset')} -> {after.get(key, 'unset')}" for key in keys]


def _probe(probe: Probe | None) -> list[str]:
    return ["none was taken"] if probe is None else [_probed(arm) for arm in probe.arms]


def _probed(arm: ArmProbe) -> str:
    said = f"{arm.arm:<10} {arm.status}" + (f": {_flat(arm.message)}" if arm.message else "")
    if arm.status != "ok":
        return said
    counters = [f"{name} {value:g}" for name, value in list(arm.counters.items())[:MOST_COUNTERS]]
    more = f" and {len(arm.counters) - MOST_COUNTERS} more" if len(arm.counters) > MOST_COUNTERS else ""
    losses = ", ".join(f"{loss:.6g}" for loss in arm.losses) or "not told"
    return f"{said}; losses {losses}" + (f"; {', '.join(counters)}{more}" if counters else "")


def _rounds(shown: Shown) -> list[str]:
    lines = []
    for place, one in enumerate(shown.rounds):
        judged = shown.judged[place] if shown.judged else None
        ratio = judged["ratios"].get("treatment") if judged else None
        lines.append(
            (
                one.id.removeprefix(f"{shown.plan.id}-"),
                one.stage,
                _valid(one, judged),
                "-" if ratio is None else units.ratio(ratio),
                str(len(one.blocks) or len(one.order)),
                units.seconds(one.wall_seconds),
                units.seconds(one.timed_seconds),
                "-" if one.surroundings.load is None else f"{one.surroundings.load:.1f}",
                "; ".join(_troubles(one, judged)) or "-",
            )
        )
    if not lines:
        return ["none was measured"]
    if shown.judged:
        return columns(ROUNDS, lines, RIGHT)
    return [*columns(ROUNDS, lines, RIGHT), "Gates and ratios are found from the blocks: leave --no-blocks out."]


def _files(shown: Shown) -> list[str]:
    """One line a round; enough of each name to complete it by."""
    lines = [("log", _short(shown.decision.log))] if shown.decision.log else []
    lines += [("probe", ", ".join(_short(arm.log) for arm in shown.probe.arms if arm.log))] if shown.probe else []
    for one in shown.rounds:
        blocks = [f"blocks {_short(one.blocks_file)}"] if one.blocks_file else []
        logs = [f"{trial.arm} {_short(trial.log)}" for trial in one.trials if trial.log]
        lines.append((one.id.removeprefix(f"{shown.plan.id}-"), ", ".join([*blocks, *logs])))
    patch = shown.plan.source.get("patch_sha256")
    lines += [("patch", _short(f"raw/{patch}.patch"))] if patch else []
    return [f"{name:<12} {said}" for name, said in lines if said]


def _short(name: str) -> str:
    """'raw/d3c5122598ac*.jsonl'."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem[:16]}*{dot}{suffix}" if len(stem) > 16 else name


def _valid(one: Round, judged: Mapping[str, Any] | None) -> str:
    if judged is None:
        return "" if all(trial.status == "ok" for trial in one.trials) else "failed"
    return "invalid" if judged["faults"] else "valid"


def _troubles(one: Round, judged: Mapping[str, Any] | None) -> list[str]:
    if judged and judged["faults"]:
        return [f"{fault['code']}: {_flat(fault['sentence'])}" for fault in judged["faults"]]
    return [_failed(trial) for trial in one.trials if trial.status != "ok"]


def _failed(trial: Trial) -> str:
    return f"{trial.arm} {trial.status}" + (f": {_flat(trial.message)}" if trial.message else "")


def _flat(text: str) -> str:
    return " ".join(text.split())
