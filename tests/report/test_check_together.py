"""`--check` on what is more than one decision: findings, rulings in the stack's replay, decisions come too late."""

from __future__ import annotations

import json

import pytest

from campaign import __version__, verdicts
from campaign.errors import LedgerDamaged
from campaign.records import RULES, to_json
from campaign.report.check import check
from campaign.report.markdown import page
from campaign.report.reported import gather
from campaign.report.stack import stack_json, stack_text
from tests.reasoning import made
from tests.report import together, written
from tests.report.test_check import lines, number, rewritten


def write_stack(ledger, place):
    stack = ledger.stack()
    body = {"decisions": [one.id for one in stack], "head": [one.hypothesis for one in stack]}
    ledger.append("stack", f"stack-x{place}", body)


def test_findings_of_every_kind_come_out_of_their_rounds_again(ledger):
    together.two_edits(ledger)
    together.leave_one_out(ledger)
    together.factorial(ledger)
    together.headline(ledger)
    together.replay(ledger, ledger.decisions()[0])
    result = check(ledger)
    assert (result.studies, result.findings, result.unfinished) == (4, 4, 0)
    # decisions: 8 rounds of 2 arms, 8 of 4; studies: 4 rounds of 4, 4, 2 and 2 arms; 2 blocks an arm and round
    assert result.rounds == 16 + 16
    assert result.samples == 8 * 4 + 8 * 8 + 4 * (8 + 8 + 4 + 4)
    assert "2 decisions and 4 findings judged again" in result.text()
    assert json.loads(result.as_json())["findings"] == 4


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("finding", "terms", 0, "effect", "ratio"), 1.2),
        (("finding", "terms", 1, "word"), "no longer pays"),
        (("finding", "retire"), ["half"]),
        (("finding", "product"), 1.5),
        (("finding", "blocks"), 9),
        (("stack",), []),
        (("timed_seconds",), 1.0),
    ],
)
def test_an_edited_finding_is_named_with_both_values(ledger, path, value):
    together.two_edits(ledger)
    together.leave_one_out(ledger)

    def change(line):
        if line["kind"] == "finding":
            place = line["body"]
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value

    with pytest.raises(LedgerDamaged, match=r"finding leave_one_out-1-finding: .* is recorded as") as caught:
        check(rewritten(ledger, change))
    assert caught.value.line == number(ledger, "finding")


def told_otherwise(sentence, created_by=__version__, kind="finding", rules=RULES):
    """A change of the newest finding's or decision's sentence, in a ledger that this version began, or another did."""

    def change(line):
        if line["kind"] == kind:
            line["body"]["finding" if kind == "finding" else "verdict"] |= {"sentence": sentence, "warnings": ["more"]}
        if line["kind"] == "campaign":
            line["body"]["created_by"] = created_by
        if line["kind"] in ("registered", "study"):
            line["body"]["rules"] = rules

    return change


@pytest.mark.parametrize("older", [{"created_by": "0.0.9"}, {"rules": RULES + 1}])
def test_words_of_a_finding_may_change_between_versions_and_its_numbers_not(ledger, older):
    together.two_edits(ledger)
    together.headline(ledger)
    assert check(rewritten(ledger, told_otherwise("In other words 1.162x.", **older))).findings == 1
    with pytest.raises(LedgerDamaged, match=r"finding.sentence is recorded as 'In other words 9.990x.'"):
        check(rewritten(ledger, told_otherwise("In other words 9.990x.", **older)))


@pytest.mark.parametrize("kind, field", [("finding", "finding"), ("decision", "verdict")])
def test_a_sentence_that_this_version_wrote_is_checked_to_the_letter(ledger, kind, field):
    together.two_edits(ledger)
    together.headline(ledger)
    with pytest.raises(LedgerDamaged, match=rf"{field}.sentence is recorded as 'In other words.'"):
        check(rewritten(ledger, told_otherwise("In other words.", kind=kind)))


def test_an_edited_headline_is_shown_from_its_numbers_everywhere(ledger):
    together.two_edits(ledger)
    together.headline(ledger)
    wrong = "100 -> 999 tokens/s, 9.990x [9.1, 9.9], 8 matched blocks"
    edited = rewritten(ledger, told_otherwise(wrong))
    reports = gather(edited)
    for text in (stack_text(edited), stack_json(edited), page(reports)):
        assert "9.990x" not in text and "116 tokens/s, 1.162x [1.141, 1.183]" in text.replace("&gt;", ">")


def test_an_altered_sample_of_a_study_is_found(ledger):
    written.faster(ledger)
    together.factorial(ledger)
    body = next(line["body"] for line in lines(ledger) if line["kind"] == "blocks" and "factorial" in line["id"])
    raw = ledger.path(body["blocks_file"])
    raw.write_text(raw.read_text().replace('"wall_seconds": 1.0', '"wall_seconds": 0.9', 1))
    with pytest.raises(LedgerDamaged, match="was altered"):
        check(ledger)


def test_a_study_declared_after_its_rounds_and_a_finding_of_nothing_are_refused(ledger):
    written.faster(ledger)
    found = together.factorial(ledger)
    ledger.append("finding", "f-x", to_json(made.replace(found, id="f-x", sequence=2)))
    with pytest.raises(LedgerDamaged, match="which was decided before it in line"):
        check(ledger)
    path = ledger.store.path
    text = path.read_text().splitlines(keepends=True)
    study = number(ledger, "study") - 1
    path.write_text("".join([*text[:study], *text[study + 1 :]]))
    with pytest.raises(LedgerDamaged, match="stands before its plan factorial-1"):
        check(rewritten(ledger, lambda line: None))


def test_rulings_and_revocations_make_up_the_stack_in_the_order_of_their_lines(ledger):
    first = written.faster(ledger)
    second = written.slower(ledger, stack=("prenorm_fusion",))
    ledger.rule(second.id, "accept", "pays on the production shape")
    write_stack(ledger, 1)
    ledger.revoke(first.id, "breaks resume")
    write_stack(ledger, 2)
    ledger.rule(first.id, "accept", "mended")
    write_stack(ledger, 3)
    assert [one.hypothesis for one in ledger.stack()] == ["register_cap", "prenorm_fusion"]
    result = check(ledger)
    assert (result.ruled, result.revoked) == (2, 0)
    assert "2 ruled on by a person" in result.text()
    ledger.rule(first.id, "reject", "not after all")
    ledger.append("stack", "stack-x4", {"decisions": [second.id, first.id], "head": []})
    with pytest.raises(LedgerDamaged, match="stack is recorded as"):
        check(ledger)


def test_a_ruling_on_nothing_is_refused(ledger):
    written.slower(ledger)
    ledger.append("ruling", "ruling-x", {"decision_id": "another", "verdict": "accept", "why": "x"})
    with pytest.raises(LedgerDamaged, match="rules on another, which no line before it decided"):
        check(ledger)


def late(ledger, *, called_stale):
    """A plan on root, then prenorm_fusion joins the stack, then the plan's decision."""
    plan = written.plan("late", edit=together.HALF)
    measured = written.evidence(plan, written.SCREEN, written.CONFIRM)
    written.measure(ledger, measured)
    written.faster(ledger)
    decision = written.decide(ledger, measured)
    if called_stale:
        verdict = verdicts.stale(decision.verdict, plan, [one.hypothesis for one in ledger.stack()])
        decision = made.replace(decision, verdict=verdict)
    ledger.append("decision", decision.id, to_json(decision))
    return decision


def test_a_decision_on_a_stack_that_moved_is_stale_and_comes_out_so(ledger):
    decision = late(ledger, called_stale=True)
    assert (decision.verdict.verdict, decision.verdict.reason) == ("invalid", "stale")
    result = check(ledger)
    assert (result.stale, result.verdicts) == (1, {"accept": 1, "invalid": 1})
    assert "1 stale" in result.text()


def test_a_decision_whose_arms_were_composed_before_an_edit_joined_is_stale_too(ledger):
    written.faster(ledger)
    plan = written.plan("late", edit=together.HALF)  # registered after the accept, composed on root before it
    measured = written.evidence(plan, written.SCREEN, written.CONFIRM)
    written.measure(ledger, measured)
    assert ledger.moved_since(plan)
    decision = written.decide(ledger, measured)
    decision = made.replace(decision, verdict=verdicts.stale(decision.verdict, plan, ["prenorm_fusion"]))
    ledger.append("decision", decision.id, to_json(decision))
    assert check(ledger).stale == 1


def test_a_decision_that_hides_that_the_stack_moved_is_refused(ledger):
    late(ledger, called_stale=False)
    with pytest.raises(
        LedgerDamaged, match=r"verdict\.verdict is recorded as 'accept', and its evidence gives 'invalid'"
    ):
        check(ledger)


def test_a_decision_called_stale_on_a_stack_that_stood_is_refused(ledger):
    written.slower(ledger)

    def change(line):
        if line["kind"] == "decision":
            line["body"]["verdict"] |= {"verdict": "invalid", "reason": "stale"}

    with pytest.raises(
        LedgerDamaged, match=r"verdict\.verdict is recorded as 'invalid', and its evidence gives 'reject'"
    ):
        check(rewritten(ledger, change))
