"""What watched commands write: to the other stream, over the same line, twice, too much, into a file that moves."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading

import pytest

from campaign.errors import TrialFailed
from campaign.launch.output import LAST_KEPT, Log, lines
from campaign.secrecy import redact_file
from tests.own.conftest import ask

PATTERN = r"step (?P<step>[\d,.]+) loss (?P<loss>\S+)"
WATCHED = {"target": "campaign.launch.Command", "steps": {"from": "output", "pattern": PATTERN}, "tokens": 10}
COUNT = "import itertools, sys, time\nfor n in itertools.count(1):\n    time.sleep(0.02)\n    "


@pytest.mark.parametrize(
    "told",
    [
        "print(f'step {n} loss {n}', file=sys.stderr)",
        "print(f'\\rstep {n} loss {n}', end='')",
        "print(f'step {n} loss {n}\\r', end='')",
        "sys.stdout.buffer.write(b'\\xff\\xfe step %d loss %d\\r\\n' % (n, n)); sys.stdout.flush()",
        "print(f'step {n} loss {n}'); print(f'step {n} loss {n} again')",
        "print(f'step {n}.0 loss {n}')",
    ],
    ids=["to stderr", "over a line", "over a line, ended", "no UTF-8", "twice", "as a decimal"],
)
def test_a_step_is_one_however_it_is_written(trial, told):
    block = ask(trial(COUNT + told, **WATCHED), "block", steps=10)
    assert (block["steps"], block["loss"]) == (10, 11.0)
    assert block["wall_seconds"] >= 10 * 0.02 * 0.7, "each sleeps 20 ms; the first line may be read late"


def test_a_count_that_begins_anew_goes_on_in_its_strides(trial):
    script = COUNT + "print(f'step {10 * (n % 3)} loss {n}')"  # 10, 20, 0, 10, 20, 0, ...
    assert ask(trial(script, **WATCHED), "block", steps=60)["steps"] == 60
    assert ask(trial(script, **WATCHED), "block", steps=60)["loss"] == 7.0


def test_a_number_of_thousands_is_one(trial):
    script = COUNT + "print(f'step {n + 998:,} loss {n}')"
    assert ask(trial(script, **WATCHED), "block", steps=4)["loss"] == 5.0


def test_what_is_no_number_is_told_with_its_name(trial):
    with pytest.raises(TrialFailed, match="loss is 'low', which is no number") as failed:
        trial(COUNT + "print(f'step {n} loss low')", **WATCHED)
    assert failed.value.reason == "garbage"


def test_steps_that_are_told_at_one_moment_never_take_no_time(trial):
    script = "import os, time\nn = 0\nwhile True:\n"
    script += "    os.write(1, b''.join(b'step %d loss 1.0\\n' % (n + i) for i in range(40)))\n"
    script += "    n += 40\n    time.sleep(0.02)\n"
    process = trial(script, **WATCHED)
    for _ in range(5):
        block = ask(process, "block", steps=3)
        assert block["wall_seconds"] > 0
        assert block["steps"] >= 3


def test_a_command_whose_child_keeps_its_output_open_has_ended(trial):
    script = "import subprocess\nsubprocess.Popen(['sleep', '50'])\nprint('step 1 loss 1', flush=True)\n1 / 0\n"
    process = trial(script, **WATCHED)
    with pytest.raises(TrialFailed, match="exited with 1 before a step"):
        ask(process, "block", steps=5)
    assert "ZeroDivisionError" in process.log.read_text()


def test_times_that_go_back_are_refused(trial):
    script = (
        "import time\n"
        "from tensorboard.compat.proto.event_pb2 import Event\n"
        "from tensorboard.compat.proto.summary_pb2 import Summary\n"
        "from tensorboard.summary.writer.event_file_writer import EventFileWriter\n"
        "writer = EventFileWriter('logs')\n"
        "for step, at in enumerate([0.0, 1.0, -5.0, 3.0]):\n"
        "    summary = Summary(value=[Summary.Value(tag='loss', simple_value=1.0)])\n"
        "    writer.add_event(Event(wall_time=time.time() + at, step=step, summary=summary))\n"
        "writer.flush()\ntime.sleep(60)\n"
    )
    process = trial(script, **{**WATCHED, "steps": {"from": "tensorboard", "folder": "logs", "loss": "loss"}})
    with pytest.raises(TrialFailed, match=r"times of its steps go back by 6\.\d+ s"):
        ask(process, "block", steps=3)


def test_a_file_that_is_rotated_is_read_on_to_the_last_line(trial):
    script = (
        "import json, os, time\n"
        "n = 0\n"
        "while True:\n"
        "    with open('log.jsonl', 'w') as file:\n"
        "        for _ in range(4):\n"
        "            n += 1\n"
        "            said = json.dumps({'n': n, 'loss': n, 'long': 'x' * 9 * (n % 8)}) + '\\n'\n"
        "            file.write(said[:9]); file.flush(); time.sleep(0.01)\n"
        "            file.write(said[9:]); file.flush(); time.sleep(0.01)\n"
        "    os.rename('log.jsonl', f'log.jsonl.{n}')\n"
    )
    process = trial(script, **{**WATCHED, "steps": {"from": "jsonl", "file": "log.jsonl", "loss": "loss"}})
    # Without a count each line is a step: one that was lost or read twice would shift the loss.
    assert [ask(process, "block", steps=1)["loss"] for _ in range(24)] == [float(n) for n in range(2, 26)]


def test_a_log_keeps_its_beginning_and_its_end_and_says_what_is_missing():
    written = io.BytesIO()
    log = Log(written, largest=100, kept=50)
    text = b"".join(b"%07d\n" % n for n in range(1000))
    for begun in range(0, len(text), 33):
        log.write(text[begun : begun + 33])
    log.end()
    begun, _said, end = written.getvalue().partition(b"\n[campaign: ")
    dropped, _, end = end.partition(b" bytes left out]\n")
    assert begun == text[:100]
    assert text.endswith(end) and 50 <= len(end) <= 100 + 33
    assert int(dropped) == len(text) - 100 - len(end)


def test_a_line_without_an_end_is_cut_and_what_follows_is_read():
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as file:  # which goes on where a signal cuts a write short
            file.write(b"x" * 300_000 + b"\nlast")

    thread = threading.Thread(target=write)
    thread.start()
    found = [line for _, line in lines(reading, lambda: True, Log(io.BytesIO(), largest=0, kept=LAST_KEPT))]
    thread.join()
    os.close(reading)
    assert b"".join(found[:-1]) == b"x" * 300_000
    assert max(map(len, found)) <= 2 << 16
    assert found[-1] == b"last"


def test_a_log_that_is_larger_than_what_is_kept_loses_its_middle_and_no_half_of_a_secret_stays(tmp_path):
    log = tmp_path / "trial.log"
    log.write_bytes(b"".join(b"%04d hunter2-hunter2\n" % n for n in range(1000)))
    redact_file(log, {"MY_TOKEN": "hunter2-hunter2"}, kept=1000)
    text = log.read_bytes()
    assert b"hunter2" not in text
    assert text.startswith(b"0000 [MY_TOKEN]\n") and text.endswith(b"0999 [MY_TOKEN]\n")
    assert b" bytes left out]" in text and len(text) < 2100


def test_another_python_imports_its_own_packages(trial, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    home = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    script = "try:\n    import hydra\nexcept ImportError:\n    kind = 1\nelse:\n    kind = 2\n"
    harness = "import sys\nprint(sys.path, flush=True)\n"
    script = harness + script + COUNT + "print(f'step {n} loss {kind}')"
    process = trial(script, **{**WATCHED, "command": [str(home / "bin" / "python"), "train.py"]})
    assert process.built["ok"]
    from campaign.launch.command import HARNESS

    assert f"'{HARNESS}'" not in process.log.read_text().splitlines()[0]


def test_a_file_that_is_written_anew_is_read_from_its_beginning(trial):
    script = (
        "import json, time\n"
        "n = 0\n"
        "while True:\n"
        "    with open('log.jsonl', 'w') as file:\n"  # the same file, cut to nothing
        "        for _ in range(50):\n"
        "            n += 1\n"
        "            print(json.dumps({'loss': n}), file=file, flush=True); time.sleep(0.01)\n"
        "    time.sleep(0.3)\n"
    )
    process = trial(script, **{**WATCHED, "steps": {"from": "jsonl", "file": "log.jsonl", "loss": "loss"}})
    assert ask(process, "block", steps=120)["loss"] == 121.0
