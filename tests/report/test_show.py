"""All evidence of one decision, with its blocks judged again and without."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.errors import UnknownName
from campaign.records import to_json
from campaign.report.evidence_text import Shown, found, shown_json, shown_text
from tests.reasoning import made
from tests.report import together, written

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    with written.opened(tmp_path_factory.mktemp("shown")) as ledger:
        first = written.faster(ledger)
        together.on_stack(ledger, "half", ("prenorm_fusion",), below=0.1, alone=0.1, marginal=0.08, edit=together.HALF)
        stolen = (*written.rounds(written.plan("cap"), (0.3,), surroundings=made.STOLEN),)
        again = written.evidence(written.plan("cap"), written.SLOWER)
        shifted = tuple(
            made.replace(one, id=f"{one.id}b", index=one.index + 1,
                         trials=tuple(made.replace(t, id=f"{t.id}b") for t in one.trials))
            for one in again.rounds
        )  # fmt: skip
        written.record(ledger, made.replace(again, rounds=(*stolen, *shifted)))
        written.faster(ledger, "late", stack=("prenorm_fusion", "half"), edit=made.HYPOTHESIS.edit)
        ledger.rule("late-1-decision", "reject", "start-up takes too long")
        ledger.revoke("prenorm_fusion-1-decision", "breaks resume")
        together.replay(ledger, first)
        yield ledger


def shown(ledger, asked, *, blocks=True):
    return Shown(ledger, found(ledger, asked), blocks=blocks)


def test_a_decision_is_found_by_number_id_plan_and_hypothesis(ledger):
    for asked in ("2", "#2", "half-1-decision", "half-1", "half"):
        assert found(ledger, asked)["sequence"] == 2


def test_a_decision_that_is_not_there_names_those_that_are(ledger):
    with pytest.raises(UnknownName, match="did you mean 'half'"):
        found(ledger, "hal")
    with pytest.raises(UnknownName, match=r"there is no decision '9' .*\(there is: 1, 2, 3, 4\)"):
        found(ledger, "9")


def test_the_text_has_plan_arms_probe_rounds_and_files(ledger):
    text = shown_text(shown(ledger, "half"))
    assert text.startswith("#2 half: ACCEPTED (faster)")
    # alone .10, with the stack .18, interaction .08 - .10
    assert "together   alone 1.105x [1.105, 1.106], 0 B; with the stack against root 1.197x [1.175, 1.219]" in text
    for said in (
        "plan half-1, registered",
        "edit        workload.half=true",
        "control    root+prenorm_fusion, models.Workload",
        "  role: control -> treatment",
        "solo       root+half",
        "op:kernels::prenorm_cpu 9",
        "rounds (8):",
        "blocks raw/",
    ):
        assert said in text, said


def test_each_round_has_its_ratio_and_an_invalid_one_its_gate(ledger):
    lines = shown_text(shown(ledger, "cap")).splitlines()
    rounds = [line.split() for line in lines if line.strip().startswith("screen-0") and "raw/" not in line]
    assert [line[2] for line in rounds] == ["invalid", "valid", "valid", "valid", "valid"]
    # planted logs .3 (with half of the time stolen), then -.09, -.11, -.09, -.11
    assert [line[3] for line in rounds] == [f"{math.exp(log):.3f}x" for log in (0.3, -0.09, -0.11, -0.09, -0.11)]
    assert "steal:" in next(line for line in lines if "screen-01 " in line and "invalid" in line)


def test_what_was_decided_and_measured_since_is_told(ledger):
    text = shown_text(shown(ledger, "1"))
    assert "REVOKED later" in text
    assert "revoked: breaks resume" in text
    assert "finding 1 (replay): measured again: 1.105x [1.085, 1.126] over 4 rounds" in text
    assert "ruled reject by a person: start-up takes too long" in shown_text(shown(ledger, "late"))


def test_json_has_the_records_and_the_judged_rounds(ledger):
    document = json.loads(shown_json(shown(ledger, "cap")))
    evidence = ledger.evidence("cap-1")
    assert document["decision"] == to_json(ledger.decisions()[2])
    assert document["plan"] == to_json(evidence.plan)
    assert document["probe"] == to_json(evidence.probe)
    first, second = document["rounds"][:2]
    assert [fault["code"] for fault in first["faults"]] == ["steal"]
    assert (second["faults"], second["block_count"]) == ([], 4)
    assert second["ratios"]["treatment"] == pytest.approx(math.exp(-0.09), rel=1e-12)
    assert set(document["raw"]) >= {first["blocks_file"], *(trial["log"] for trial in first["trials"])}


def test_without_blocks_the_lines_alone_are_told(ledger):
    text = shown_text(shown(ledger, "cap", blocks=False))
    assert "Gates and ratios are found from the blocks: leave --no-blocks out." in text
    rounds = json.loads(shown_json(shown(ledger, "cap", blocks=False)))["rounds"]
    assert [one["faults"] for one in rounds] == [None] * 5
    assert rounds[0]["block_count"] == 4


def test_without_blocks_no_number_library_is_loaded(ledger):
    script = f"""
import sys
from pathlib import Path
from campaign.ledger import open_ledger
from campaign.report.evidence_text import Shown, found, shown_text
with open_ledger(Path({str(ledger.folder.parents[1])!r}), "demo", writable=False) as ledger:
    assert "half" in shown_text(Shown(ledger, found(ledger, "half"), blocks=False))
print(*sorted(set("torch numpy scipy pandas mlflow hydra omegaconf matplotlib git rich".split()) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
