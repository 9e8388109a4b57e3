"""Several processes write one campaign at once: whose turn it is, whose round, whose plan."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import campaign
from campaign.errors import BadInput, LedgerUnwritable
from campaign.ledger import Ledger, disk, open_ledger
from tests.ledger.writing import Make, decide, write_round

ROOT = Path(campaign.__file__).parent.parent
OPENED = """
import os, pathlib, sys, time
from campaign.ledger import open_ledger
ledger = open_ledger(pathlib.Path(sys.argv[1]), "demo", writable=True)
def done(*words):
    print(*words, flush=True)
    sys.stdin.readline()
"""

Other = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Other]:
    """Starts another process that has the ledger `demo` open for writing; `done(...)` in it says something and waits
    for a line. It is killed at the end."""
    started = []

    def start(code: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", OPENED + code, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_two_processes_have_a_campaign_open_for_writing_and_take_turns_line_by_line(
    ledger: Ledger, other: Other
) -> None:
    process = other("for n in (1, 2): done(ledger.append('note', f'theirs-{n}', {}).line)")
    assert heard(process) == "2"  # line 1 opens the campaign
    assert ledger.append("note", "ours-1", {}).line == 3
    go_on(process)
    assert heard(process) == "4"
    assert ledger.append("note", "ours-2", {}).line == 5
    assert [entry.id for entry in ledger.store.entries()] == ["demo", "theirs-1", "ours-1", "theirs-2", "ours-2"]


def test_inside_a_transaction_nobody_else_appends_and_everybody_reads(
    ledger: Ledger, other: Other, make_decision: Make
) -> None:
    process = other("done('open'); ledger.append('note', 'theirs', {}); done('written')")
    assert heard(process) == "open"
    with ledger.transaction():
        assert ledger.next_sequence() == 1
        go_on(process)
        with ledger.transaction():  # again inside itself
            decide(ledger, make_decision("d1"))
        time.sleep(0.3)  # the other one would have written by then
        reading = open_ledger(ledger.folder.parent.parent, "demo", writable=False)
        assert [entry.id for entry in reading.store.entries()] == ["demo", "d1"]
    assert heard(process) == "written"
    assert [entry.id for entry in ledger.store.entries()] == ["demo", "d1", "theirs"]


def test_a_process_killed_in_its_transaction_leaves_the_turn_free(ledger: Ledger, other: Other) -> None:
    process = other("with ledger.transaction(): done('inside')")
    assert heard(process) == "inside"
    kill(process)
    assert ledger.append("note", "n", {}).id == "n"


def test_opening_a_ledger_for_writing_waits_for_a_line_that_is_being_written(tmp_path: Path, ledger: Ledger) -> None:
    ledger.append("note", "whole", {"text": "x" * 100})
    whole = ledger.file.read_bytes()
    opened: list[list[str]] = []
    with ledger.file.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.ftruncate(file.fileno(), len(whole) - 30)  # as if the last line were half written

        def open_it() -> None:
            with open_ledger(tmp_path, "demo", writable=True) as second:
                opened.append(second.notices)

        waiting = threading.Thread(target=open_it)
        waiting.start()
        waiting.join(0.3)
        assert opened == []
        file.seek(0, os.SEEK_END)
        file.write(whole[-30:])
    waiting.join()
    assert opened == [[]] and ledger.file.read_bytes() == whole


def test_a_round_that_a_live_process_streams_is_not_taken_for_a_dead_ones(
    ledger: Ledger, other: Other, make_round: Make, blocks_body: Make
) -> None:
    process = other("p = ledger.inflight('r1'); p.write_text('{}\\n'); done(p)")
    path = Path(heard(process))
    assert ledger.recover_inflight() == [] and path.read_text() == "{}\n"
    with pytest.raises(BadInput, match="r1 is being measured by another process"):
        ledger.inflight("r1")
    write_round(ledger, "p1", make_round("r2"), blocks_body)  # its own round beside
    assert path.read_text() == "{}\n"
    kill(process)
    (sentence,) = ledger.recover_inflight()
    assert "r1" in sentence and "1 blocks" in sentence and not path.exists()


def test_two_processes_that_find_a_dead_ones_round_keep_it_once(ledger: Ledger, other: Other, make_round: Make) -> None:
    dead = other("ledger.inflight('r1').write_text('{}\\n' * 3); done('streamed')")
    assert heard(dead) == "streamed"
    kill(dead)
    finders = [other("done('ready'); done(len(ledger.recover_inflight()))") for _ in range(4)]
    assert [heard(process) for process in finders] == ["ready"] * 4
    for process in finders:
        go_on(process)
    assert sorted(heard(process) for process in finders) == ["0", "0", "0", "1"]
    assert len(list(ledger.store.entries({"note"}))) == 1


def test_a_plan_is_claimed_by_one_live_process(ledger: Ledger, tmp_path: Path, other: Other) -> None:
    process = other("done(ledger.claim('p/1'), ledger.claim('p/1'))")
    assert heard(process) == "True True"
    assert not ledger.claim("p/1") and ledger.claim("p2")
    kill(process)
    assert ledger.claim("p/1")
    with open_ledger(tmp_path, "demo", writable=True) as second:
        assert not second.claim("p2")
        ledger.close()
        assert second.claim("p2") and second.claim("p/1")
    assert list((tmp_path / "runs" / "demo" / "claims").iterdir()) == []


def test_a_file_whose_owner_removed_it_meanwhile_is_not_owned(tmp_path: Path) -> None:
    path = tmp_path / "claim"
    first = disk.owned(path)
    found: list[int] = []
    waiting = threading.Thread(target=lambda: found.append(disk.owned(path, disk.WAIT)))
    waiting.start()
    waiting.join(0.2)  # it has the file open by then, and waits for its lock
    path.unlink()
    os.close(first)
    waiting.join()
    assert disk.is_at(found[0], path) and disk.owned(path) == -1
    os.close(found[0])


def test_a_round_that_ends_while_another_process_looks_at_it_is_not_kept_as_interrupted(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ledger.inflight("r1")
    path.write_text("{}\n")

    def lock(*given: object) -> bool:
        ledger.append("blocks", "r1", {"plan_id": "p1", "blocks_file": ledger.seal("r1")})
        return disk.lock(*given)  # type: ignore[arg-type]

    with open_ledger(tmp_path, "demo", writable=True) as second:
        monkeypatch.setattr("campaign.ledger.streams.lock", lock)
        assert second.recover_inflight() == []
    assert not path.exists() and list(ledger.store.entries({"note"})) == []


def test_what_dead_processes_left_half_written_under_passing_names_goes_after_an_hour(ledger: Ledger) -> None:
    kept = ledger.path(ledger.keep(b"whole", ".log"))
    ledger.inflight("r1")
    old, young = kept.with_name(".x.log.123"), kept.with_name(".y.log.124")
    for path, age in ((old, 3601), (young, 3500), (kept, 7200)):
        path.write_bytes(b"whole")
        os.utime(path, (time.time() - age,) * 2)
    ledger.recover_inflight()
    assert sorted(path.name for path in kept.parent.iterdir()) == sorted([young.name, kept.name])


def test_where_the_file_system_has_no_locks_the_ledger_says_so(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.append("note", "n", {})

    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr("campaign.ledger.disk.fcntl.flock", refuse)
    for use in (
        lambda: ledger.append("note", "m", {}),
        lambda: ledger.claim("p"),
        lambda: ledger.inflight("r"),
        lambda: ledger.decision_rows(),
        lambda: open_ledger(tmp_path, "demo", writable=True),
    ):
        with pytest.raises(LedgerUnwritable, match=r"cannot lock .*Operation not supported.*without locks") as caught:
            use()
        assert "flock" in caught.value.remedy
    monkeypatch.undo()
    assert [json.loads(line)["id"] for line in ledger.file.read_text().splitlines()] == ["demo", "n"]


def test_a_second_journal_follows_what_others_wrote_without_reading_it_all_again(
    tmp_path: Path, ledger: Ledger
) -> None:
    with open_ledger(tmp_path, "demo", writable=True) as second:
        for number in range(3):
            ledger.append("note", f"ours-{number}", {"text": "x" * 1000})
            line = second.append("note", f"theirs-{number}", {}).line
            assert line == 3 + 2 * number
        # As written by a process that died half-way; either one cuts it.
        with ledger.file.open("ab") as file:
            file.write(b'{"kind":"note","half')
        assert second.append("note", "after", {}).line == 8 and "20 bytes" in second.store.torn
        assert ledger.append("note", "last", {}).line == 9
