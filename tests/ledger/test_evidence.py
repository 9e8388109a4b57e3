from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign.errors import BadInput, LedgerDamaged, UnknownName
from campaign.ledger import Ledger, RawDamaged, open_ledger
from campaign.records import Probe, to_json
from tests.ledger.writing import Make, register, stream, write_round


def test_evidence_is_the_plan_the_newest_probe_and_the_rounds_with_their_blocks(
    ledger: Ledger, make_plan: Make, make_round: Make, blocks_body: Make
) -> None:
    register(ledger, make_plan("p1"))
    register(ledger, make_plan("p2"))
    assert ledger.evidence("p1").probe is None and ledger.evidence("p1").rounds == ()
    for number, seconds in ((1, 1.0), (2, 2.0)):
        ledger.append("probe", f"p1-{number}", {"plan_id": "p1", **to_json(Probe((), None, seconds))})
    first, second, foreign = make_round("r1", 0), make_round("r2", 1), make_round("r3", 0)
    raw = write_round(ledger, "p1", first, blocks_body)
    write_round(ledger, "p2", foreign, blocks_body)
    write_round(ledger, "p1", second, blocks_body)
    evidence = ledger.evidence("p1")
    assert evidence.plan == make_plan("p1") and evidence.probe == Probe((), None, 2.0)
    assert [one.id for one in evidence.rounds] == ["r1", "r2"]
    assert evidence.rounds[0].blocks == tuple(first[1]) and evidence.rounds[0].trials == first[0].trials
    assert evidence.rounds[0].blocks_file == raw and evidence.rounds[0].surroundings.load == 0.5
    assert sum(block.wall_seconds for block in evidence.rounds[0].blocks) == 1.25
    with pytest.raises(UnknownName):
        ledger.evidence("p3")


def test_a_round_whose_trial_died_before_the_first_block_has_no_blocks(
    ledger: Ledger, make_plan: Make, make_round: Make, blocks_body: Make
) -> None:
    register(ledger, make_plan("p1"))
    measured, _ = make_round("r1")
    ledger.inflight("r1")
    for trial in measured.trials:
        ledger.append("trial", trial.id, {"plan_id": "p1", "round_id": "r1", **to_json(trial)})
    ledger.append("blocks", "r1", blocks_body(measured, "p1"))
    assert ledger.evidence("p1").rounds[0].blocks == ()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda raw: raw.unlink(), "is missing"),
        (lambda raw: raw.write_bytes(raw.read_bytes().replace(b"0.125", b"0.115")), "was altered"),
        (lambda raw: raw.write_bytes(raw.read_bytes()[:-1]), "was altered"),
    ],
)
def test_a_raw_file_that_is_gone_or_altered_is_refused_naming_the_line_and_the_file(
    ledger: Ledger, make_plan: Make, make_round: Make, blocks_body: Make, harm: Callable[[Path], object], said: str
) -> None:
    register(ledger, make_plan("p1"))
    raw = ledger.path(write_round(ledger, "p1", make_round("r1"), blocks_body))
    harm(raw)
    with pytest.raises(RawDamaged, match=said) as caught:
        ledger.evidence("p1")
    assert caught.value.line == 5  # campaign, registered, two trials, blocks
    assert str(ledger.file) in str(caught.value) and str(raw) in str(caught.value)
    assert "head -n" not in caught.value.remedy


def test_a_round_that_names_an_unknown_trial_is_refused_with_its_line(
    ledger: Ledger, make_plan: Make, make_round: Make, blocks_body: Make
) -> None:
    register(ledger, make_plan("p1"))
    ledger.append("blocks", "r1", blocks_body(make_round("r1")[0], "p1"))
    with pytest.raises(LedgerDamaged, match="r1-control, r1-treatment") as caught:
        ledger.evidence("p1")
    assert caught.value.line == 3


def test_raw_data_is_named_by_its_hash_and_kept_once(ledger: Ledger) -> None:
    name = hashlib.sha256(b"a patch\n").hexdigest()
    assert ledger.keep(b"a patch\n", ".patch") == ledger.keep(b"a patch\n", ".patch") == f"raw/{name}.patch"
    assert [path.name for path in (ledger.folder / "raw").iterdir()] == [f"{name}.patch"]
    ledger.path(f"raw/{name}.patch").write_bytes(b"spoilt")
    ledger.keep(b"a patch\n", ".patch")
    assert ledger.path(f"raw/{name}.patch").read_bytes() == b"a patch\n"


@pytest.mark.parametrize("relative", ["../other/raw/x", "/etc/passwd", "", "raw/../../x"])
def test_a_path_that_leaves_the_campaign_is_refused(ledger: Ledger, relative: str) -> None:
    with pytest.raises(BadInput):
        ledger.path(relative)


@pytest.mark.parametrize("suffix", ["patch", "./x", "..", ".PATCH"])
def test_a_suffix_that_is_none_is_refused(ledger: Ledger, suffix: str) -> None:
    with pytest.raises(BadInput):
        ledger.keep(b"", suffix)


def test_the_inflight_file_goes_when_its_round_is_in_the_ledger(
    ledger: Ledger, make_plan: Make, make_round: Make, blocks_body: Make
) -> None:
    register(ledger, make_plan("p1"))
    write_round(ledger, "p1", make_round("r1"), blocks_body)
    assert list((ledger.folder / "inflight").iterdir()) == []
    with pytest.raises(BadInput, match="r2"):
        ledger.seal("r2")


def test_what_a_dead_run_streamed_is_kept_with_a_note(tmp_path: Path, make_round: Make) -> None:
    _, blocks = make_round("r1")
    with open_ledger(tmp_path, "demo", writable=True) as ledger:
        streamed = stream(ledger, "r1", blocks[:3]).read_bytes() + b'{"arm":"treatm'
        (ledger.folder / "inflight" / "r1.jsonl").write_bytes(streamed)
        ledger.inflight("r0").touch()  # opened, and nothing measured
        assert ledger.recover_inflight() == []  # both are being streamed by this very run
    with open_ledger(tmp_path, "demo", writable=True) as ledger:
        (sentence,) = ledger.recover_inflight()
        raw = f"raw/{hashlib.sha256(streamed).hexdigest()}.jsonl"
        assert "r1" in sentence and "3 blocks" in sentence and raw in sentence and sentence in ledger.notices
        assert ledger.path(raw).read_bytes() == streamed
        (note,) = ledger.store.entries({"note"})
        assert note.body == {"text": sentence, "round_id": "r1", "raw": raw}
        assert list((ledger.folder / "inflight").iterdir()) == [] and ledger.recover_inflight() == []


def test_a_crash_between_sealing_and_writing_the_round_loses_nothing(
    tmp_path: Path, make_plan: Make, make_round: Make, blocks_body: Make
) -> None:
    measured, blocks = make_round("r1")
    with open_ledger(tmp_path, "demo", writable=True) as ledger:
        register(ledger, make_plan("p1"))
        stream(ledger, "r1", blocks)
        raw = ledger.seal("r1")
    with open_ledger(tmp_path, "demo", writable=True) as ledger:
        assert ledger.unfinished() == ["p1"]
        assert len(ledger.recover_inflight()) == 1
        assert next(ledger.store.entries({"note"})).body["raw"] == raw
        # ... and a crash between writing the round and dropping the inflight file is no loss to report.
        write_round(ledger, "p1", (measured, blocks), blocks_body)
        (ledger.folder / "inflight" / "r1.jsonl").write_bytes(ledger.path(raw).read_bytes())
    with open_ledger(tmp_path, "demo", writable=True) as ledger:
        assert ledger.recover_inflight() == [] and list((ledger.folder / "inflight").iterdir()) == []
        assert len(list(ledger.store.entries({"note"}))) == 1


def test_streaming_a_round_again_keeps_what_the_dead_run_left_first(tmp_path: Path, make_round: Make) -> None:
    _, blocks = make_round("r1")
    with open_ledger(tmp_path, "demo", writable=True) as ledger:
        stream(ledger, "r1", blocks[:2])
    with open_ledger(tmp_path, "demo", writable=True) as ledger:
        assert ledger.inflight("r1").read_bytes() == b""
        assert "2 blocks" in next(ledger.store.entries({"note"})).body["text"]
