"""`campaign ledger --check` must come out clean on a real ledger and stop at anything that was touched."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from campaign.errors import LedgerDamaged
from campaign.report.check import check
from campaign.report.recomputed import differences
from tests.reasoning import made
from tests.report import written


def rewritten(ledger, change):
    """The ledger file with `change(line)` on every line and the chain made good again, as a forger would."""
    prev, lines = "0" * 64, []
    for text in ledger.store.path.read_text().splitlines():
        line = json.loads(text)
        change(line)
        line["line"], line["prev"] = len(lines) + 1, prev
        raw = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        prev = hashlib.sha256(raw).hexdigest()
        lines.append(raw)
    ledger.store.path.write_bytes(b"".join(lines))
    return type(ledger)(ledger.folder, type(ledger.store)(ledger.store.path))


def lines(ledger):
    return [json.loads(text) for text in ledger.store.path.read_text().splitlines()]


def number(ledger, kind):
    return next(place for place, line in enumerate(lines(ledger), 1) if line["kind"] == kind)


def test_a_sound_ledger_is_counted(ledger):
    written.faster(ledger)
    written.slower(ledger, stack=("prenorm_fusion",))
    waiting = written.evidence(written.plan("unfinished"))
    written.measure(ledger, waiting)
    result = check(ledger)
    # 8 rounds (4 screened, 4 confirmed) and 4 rounds, of 2 pairs of 2 blocks each
    assert (result.decisions, result.rounds, result.samples) == (2, 12, 48)
    assert (result.plans, result.unfinished, result.revoked) == (3, 1, 0)
    assert result.verdicts == {"accept": 1, "reject": 1}
    assert result.lines == len(lines(ledger))
    # equal blocks are one file: those at log .14, .16, .09, .11, -.09 and -.11; and 12 rounds have two logs each
    assert result.raw_files == 6 + 2 * 12
    assert "2 decisions judged again from 48 block times in 12 rounds" in result.text()
    assert json.loads(result.as_json())["sound"] is True


def test_an_altered_sample_is_refused_with_its_file(ledger):
    written.faster(ledger)
    body = next(line["body"] for line in lines(ledger) if line["kind"] == "blocks")
    raw = ledger.path(body["blocks_file"])
    raw.write_text(raw.read_text().replace('"wall_seconds": 1.0', '"wall_seconds": 0.9', 1))
    with pytest.raises(LedgerDamaged, match="was altered") as caught:
        check(ledger)
    assert caught.value.line == number(ledger, "blocks")


@pytest.mark.parametrize("kind", ["probe", "trial", "blocks", "note", "registered"])
@pytest.mark.parametrize("harm", ["altered", "gone"])
def test_every_raw_file_is_hashed_also_those_of_plans_without_a_decision(ledger, kind, harm):
    name = ledger.keep(b"the very file", ".patch" if kind == "registered" else ".log")
    source = {"status": "ok", "patch_sha256": name[4:68] if kind == "registered" else ""}
    waiting = written.evidence(written.plan("waiting", source=source), (0.1,))
    if kind == "probe":
        probe = waiting.probe
        waiting = made.replace(waiting, probe=made.replace(probe, arms=(made.replace(probe.arms[0], log=name),)))
    written.measure(ledger, waiting)
    if kind == "note":
        ledger.append("note", "n", {"text": "an interrupted round", "raw": name})
    if kind in ("trial", "blocks"):
        key = {"trial": "log", "blocks": "blocks_file"}[kind]
        name = next(line["body"][key] for line in lines(ledger) if line["kind"] == kind)
    assert check(ledger).decisions == 0
    if harm == "altered":
        ledger.path(name).write_bytes(b"another")
    else:
        ledger.path(name).unlink()
    if (kind, harm) == ("registered", "gone"):
        check(ledger)  # an old plan may have been written without its patch; the page then says so
        return
    with pytest.raises(LedgerDamaged, match="was altered" if harm == "altered" else "is missing") as caught:
        check(ledger)
    assert caught.value.line == number(ledger, kind)
    assert name in caught.value.message


def test_a_raw_name_that_leaves_the_folder_is_refused_with_its_line(ledger):
    ledger.append("note", "n", {"text": "x", "raw": "raw/../../elsewhere"})
    with pytest.raises(LedgerDamaged, match="is not a path inside") as caught:
        check(ledger)
    assert caught.value.line == number(ledger, "note")


def test_what_a_workload_says_of_itself_names_no_raw_file(ledger):
    one = written.evidence(written.plan("own"), (0.1,))
    trials = tuple(made.replace(trial, facts={"log": "raw/train.txt"}) for trial in one.rounds[0].trials)
    written.measure(ledger, made.replace(one, rounds=(made.replace(one.rounds[0], trials=trials),)))
    check(ledger)


def test_an_altered_sample_under_a_new_name_changes_the_verdicts_numbers(ledger):
    """The forger renames the raw file and mends the chain; the numbers still don't come out."""
    written.faster(ledger)
    body = next(line["body"] for line in lines(ledger) if line["kind"] == "blocks")
    data = ledger.path(body["blocks_file"]).read_text().replace('"wall_seconds": 1.0', '"wall_seconds": 0.999')
    forged = ledger.keep(data.encode(), ".jsonl")

    def change(line):
        if line["kind"] == "blocks" and line["id"] == body["id"]:
            line["body"]["blocks_file"] = forged

    with pytest.raises(LedgerDamaged, match=r"verdict\.screening\.") as caught:
        check(rewritten(ledger, change))
    assert caught.value.line == number(ledger, "decision")


def test_a_plainly_edited_line_breaks_the_chain(ledger):
    written.faster(ledger)
    path = ledger.store.path
    path.write_text(path.read_text().replace('"verdict":"accept"', '"verdict":"reject"'))
    with pytest.raises(LedgerDamaged, match="changed after it was written") as caught:
        check(type(ledger)(ledger.folder, type(ledger.store)(path)))
    assert caught.value.line == number(ledger, "decision")


@pytest.mark.parametrize(
    ("path", "value", "recomputed"),
    [
        (("verdict", "verdict"), "reject", "'accept'"),
        (("verdict", "reason"), "memory", "'faster'"),
        (("verdict", "effect", "ratio"), 1.2, r"1\.10517"),
        (("verdict", "effect", "low"), 1.0850501, r"1\.085050"),
        (("verdict", "alpha_spent"), 0.0, r"0\.002"),
        (("verdict", "valid_rounds"), 9, "8"),
        (("verdict", "memory", "treatment_bytes"), 1, "419430400"),
        (("verdict", "beside"), None, "'clock': 'cpu'"),
        (("claim",), "It is great.", "'one pass less'"),
        (("parity",), "bitwise: ok", "'rounding: ok; exact 2e-07"),
        (("engagement",), "seen", "'op:kernels::prenorm_cpu appears: 0 -> 9"),
        (("low_precision",), "hardware", "'emulated'"),
        (("predicted_ratio",), 1.2, r"1\.1"),
        (("stack",), ["nothing"], r"\[\]"),
        (("wall_seconds",), 1.0, r"80\.0"),
    ],
)
def test_an_edited_field_is_named_with_both_values(ledger, path, value, recomputed):
    written.faster(ledger)

    def change(line):
        if line["kind"] == "decision":
            place = line["body"]
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value

    with pytest.raises(LedgerDamaged) as caught:
        check(rewritten(ledger, change))
    said = caught.value.message
    assert caught.value.line == number(ledger, "decision")
    assert f"decision prenorm_fusion-1-decision: {'.'.join(path)} is recorded as {value!r}" in said
    assert re.search(f"its evidence gives .*{recomputed}", said)


def test_numbers_may_differ_in_their_last_bit(ledger):
    decision = written.faster(ledger)
    evidence = ledger.evidence(decision.plan_id)
    effect = decision.verdict.effect
    for factor, found in ((1 + 1e-12, []), (1 + 1e-8, ["verdict.effect.ratio"])):
        near = made.replace(effect, ratio=effect.ratio * factor)
        moved = made.replace(decision, verdict=made.replace(decision.verdict, effect=near))
        assert [path for path, _, _ in differences(moved, evidence)] == found


def test_the_words_of_a_verdict_may_change_between_versions(ledger):
    decision = written.faster(ledger)
    verdict = made.replace(decision.verdict, sentence="In other words.", remedy="", warnings=("another",))
    changed, evidence = made.replace(decision, verdict=verdict), ledger.evidence(decision.plan_id)
    assert not list(differences(changed, evidence, same_words=False))
    assert [one[0] for one in differences(changed, evidence)] == ["verdict.sentence"]


def test_a_decision_on_too_few_rounds_is_refused(ledger):
    decision = written.faster(ledger)
    evidence = ledger.evidence(decision.plan_id)
    short = made.replace(evidence, rounds=evidence.rounds[:6])
    path, recorded, again = next(iter(differences(decision, short)))
    assert (path, recorded, again) == ("verdict", "accept", "not decided: needs 4 valid confirm rounds")


def test_a_plan_registered_after_its_rounds_is_refused(ledger):
    measured = written.evidence(written.plan("late"), written.SLOWER)
    written.measure(ledger, measured)
    path = ledger.store.path
    text = path.read_text().splitlines(keepends=True)
    path.write_text("".join([text[0], *text[2:], text[1]]))
    with pytest.raises(LedgerDamaged, match="stands before its plan late-1") as caught:
        check(rewritten(ledger, lambda line: None))
    assert caught.value.line == 2


def test_rounds_added_after_the_decision_are_refused(ledger):
    written.slower(ledger)
    extra = written.rounds(written.plan("register_cap"), (0.1,) * 5)[4:]
    ledger.append("blocks", extra[0].id, {"plan_id": "register_cap-1", "id": extra[0].id, "trial_ids": []})
    with pytest.raises(LedgerDamaged, match="which was decided before it in line"):
        check(ledger)


def test_a_stack_that_the_decisions_do_not_make_up_is_refused(ledger):
    decision = written.faster(ledger)
    ledger.append("stack", "stack-x", {"decisions": [decision.id, "another"], "head": []})
    with pytest.raises(LedgerDamaged, match="stack is recorded as"):
        check(ledger)


def test_a_revocation_of_nothing_is_refused(ledger):
    written.slower(ledger)
    ledger.append("revoked", "r-1", {"decision_id": "another", "why": "x"})
    with pytest.raises(LedgerDamaged, match="revokes another, which no line before it decided"):
        check(ledger)


def test_a_wrong_sequence_number_is_refused(ledger):
    written.record(ledger, written.evidence(written.plan("cap"), written.SLOWER), sequence=3)
    with pytest.raises(LedgerDamaged, match="sequence is recorded as 3, and it is 1"):
        check(ledger)
