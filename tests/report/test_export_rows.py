"""What a row of the page says besides its verdict: edits, needs, suspicion, the machine it was made on."""

from __future__ import annotations

import json
from dataclasses import replace

from campaign.records import Edit
from campaign.report.export import export
from campaign.verdicts import judge
from tests.reasoning import made
from tests.report import written


def test_a_suspect_gain_is_marked_in_its_row_and_in_the_limits(ledger):
    measured = written.evidence(written.plan("magic"), written.SCREEN, written.CONFIRM)
    written.record(ledger, measured, verdict=replace(judge(measured), suspect="1.9x is above 1.5x"))
    page = export(ledger, "md")
    assert "`magic`: one pass less (**suspect**: 1.9x is above 1.5x) |" in page
    assert "That nothing is wrong with decision 1: a gain so large" in page
    written.faster(ledger, "plain")
    assert export(ledger, "md").count("**suspect**") == 1


def test_environment_edits_are_shown_like_overrides(ledger):
    edit = Edit(overrides=("ops.prenorm=cpu",), environment={"OMP_WAIT_POLICY": "passive"})
    written.record(ledger, written.evidence(written.plan("env", edit=edit), written.SLOWER))
    assert "edit: `ops.prenorm=cpu`, `OMP_WAIT_POLICY=passive`; on root" in export(ledger, "md")


def test_what_a_hypothesis_needs_stands_in_its_details(ledger):
    plan = written.plan("needy")
    plan = replace(plan, hypothesis=replace(plan.hypothesis, needs=("compiler",)))
    written.record(ledger, written.evidence(plan, written.SLOWER))
    written.slower(ledger)
    assert export(ledger, "md").count("  - needs: compiler\n") == 1
    needs = [row["plan"]["needs"] for row in json.loads(export(ledger, "json"))["decisions"]]
    assert needs == [["compiler"], []]


def test_several_machines_are_not_called_one(ledger):
    written.faster(ledger)
    written.faster(
        ledger, "b", fingerprint=replace(made.PLAN, fingerprint={"torch": "2.13.0", "host": "b"}).fingerprint
    )
    assert "A comparison between machines: there are 2" in export(ledger, "md")
