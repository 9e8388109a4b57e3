"""`campaign doctor` from the command line: what it answers, what it writes, and which decision names it."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.cli import main
from campaign.cli.doctor import CODES
from campaign.ledger import open_ledger
from campaign.machine import Host
from campaign.machine.checks import gather
from campaign.records import to_json
from tests.builders import PROJECT, REPOSITORY, laid_down, plan
from tests.machine.answers import write

BASE = ["workload=tiny", "tracking=none"]
ASK = ["doctor", *BASE]
GOVERNOR = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A project with the tiny workload, committed to a repository of its own, made the working directory."""
    root = laid_down(PROJECT, tmp_path, monkeypatch)
    (root / ".gitignore").write_text("runs/\n__pycache__/\nonly_one\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(root)]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "begin"]):
        subprocess.run([*git, *words], check=True)
    return root


@pytest.fixture
def machine_of(tmp_path, monkeypatch):
    """Puts a machine of files in the place of this one, whose load would be of the tests themselves."""

    def put(files: dict[str, str]) -> None:
        for name in ("proc", "sys"):
            (tmp_path / "machine" / name).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write(tmp_path / "machine" / name, text)
        host = Host(tmp_path / "machine" / "proc", tmp_path / "machine" / "sys", "no-nvidia-smi")

        def of_files(*args, **named):
            look = gather(*args, **named, host=host, window_seconds=0)
            return dataclasses.replace(look, cores=(0, 1), pinned=(1,))  # whatever the tests may run on

        monkeypatch.setattr("campaign.run.doctor.gather", of_files)
        monkeypatch.setenv("CXX", sys.executable)  # which answers --version wherever the tests run

    return put


def asked(capsys, *words, code=None):
    """The JSON answer, and that its exit code is the one of its fitness."""
    capsys.readouterr()
    found = main([*words, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert found == CODES[answer["fitness"]] == answer["exit_code"]
    assert code is None or found == code, answer["findings"]
    return answer


def rows(root):
    with open_ledger(root, "default", writable=False) as ledger:
        return ledger.doctor_rows()


def kinds(root):
    lines = (root / "runs" / "default" / "ledger.jsonl").read_text().splitlines()
    return [json.loads(line)["kind"] for line in lines]


def levels(answer):
    return {one["check"]: one["level"] for one in answer["findings"]}


def test_a_quiet_well_set_machine_is_fit_and_the_exit_code_is_0(tiny, machine_of, capsys):
    machine_of({GOVERNOR: "performance"})
    answer = asked(capsys, *ASK, "--no-floor", code=0)
    assert (answer["schema"], answer["fitness"], answer["device"], answer["workload"]) == (1, "fit", "cpu", "tiny")
    assert levels(answer)["governor"] == levels(answer)["git"] == "fit"
    assert answer["floor"] is None


def test_a_doubtful_machine_ends_with_5_and_its_line_has_what_is_not_fit(tiny, machine_of, capsys):
    machine_of({GOVERNOR: "powersave", "proc/meminfo": "SwapTotal: 8388608 kB\nSwapFree: 1048576 kB\n"})
    answer = asked(capsys, *ASK, "--no-floor", code=5)
    assert kinds(tiny) == ["campaign", "doctor"]
    (row,) = rows(tiny)
    assert (row["id"], row["fitness"], row["fingerprint"]) == (answer["id"], "doubtful", answer["fingerprint"])
    found = {one["check"]: one for one in row["findings"]}
    assert found["governor"]["mend"] == "sudo cpupower frequency-set -g performance"
    assert found["swap"]["seen"] == "7.00 GiB of 8.00 GiB used"
    assert "git" in row["fit"] and not {one["level"] for one in row["findings"]} & {"fit"}
    with open_ledger(tiny, "default", writable=False) as ledger:
        assert ledger.place() is None, "the ledger is about no workload by it"


def test_a_workload_that_fails_makes_the_machine_unfit_and_says_why(tiny, machine_of, capsys):
    machine_of({GOVERNOR: "performance"})
    answer = asked(capsys, *ASK, "workload.fault=raise", code=3)
    (floor,) = [one for one in answer["findings"] if one["group"] == "floor"]
    assert floor["level"] == "unfit" and "the step was told to fail" in floor["seen"]
    assert (answer["floor"]["rounds"], answer["floor"]["invalid"]) == (0, 1), "it ends at the first"


def test_a_short_floor_leaves_no_plan_keeps_its_samples_and_is_named_by_the_next_decision(tiny, machine_of, capsys):
    machine_of({GOVERNOR: "powersave"})
    answer = asked(capsys, *ASK)
    floor = answer["floor"]
    assert (floor["full"], floor["protocol"], floor["rounds"], floor["of_rounds"]) == (False, "quick", 3, 3)
    assert 0 < floor["smallest_effect_low"] < floor["smallest_effect"] < floor["smallest_effect_high"]
    assert (levels(answer)["floor"] == "fit") == (floor["smallest_effect"] <= floor["min_effect"])
    assert kinds(tiny) == ["campaign", "doctor"]
    assert len({*floor["raw"]}) == 3 and all((tiny / "runs" / "default" / name).is_file() for name in floor["raw"])
    assert main([*BASE, "hypothesis=half_sleep", "workload.sleep=0.02"]) == 0
    (row,) = rows(tiny)
    capsys.readouterr()
    assert main(["show", "1", "--no-blocks"]) == 0
    named = [one["check"] for level in ("unfit", "doubtful") for one in row["findings"] if one["level"] == level]
    said = f"machine: {row['fitness']} ({', '.join(named)}), doctor of {row['time']}"
    assert said in capsys.readouterr().out and "governor" in said
    main(["show", "1", "--no-blocks", "--json"])
    assert json.loads(capsys.readouterr().out)["doctor"] == row
    assert main(["ledger", "--check"]) == 0
    assert "sound" in capsys.readouterr().out


def test_the_text_has_its_groups_in_order_and_every_finding_with_cost_and_mend(tiny, machine_of, capsys):
    machine_of({GOVERNOR: "powersave"})
    assert main([*ASK, "--no-floor"]) == 5
    text = capsys.readouterr().out
    assert text.startswith("this machine is DOUBTFUL (governor) for tiny on cpu\n")
    places = [text.index(f"\n{group}:\n") for group in ("machine", "GPU", "software", "project")]
    assert places == sorted(places)
    lines = [line.split() for line in text.splitlines()]
    at = next(place for place, words in enumerate(lines) if words[:2] == ["doubtful", "governor"])
    assert lines[at][2:] == ["powersave"] and lines[at + 1][0] == "cost"
    assert ["mend", "sudo", "cpupower", "frequency-set", "-g", "performance"] in lines
    assert "unavailable: nothing is measured on a GPU here" in text
    assert max(map(len, text.splitlines())) <= 120


def test_full_is_the_null_itself_and_the_floor_on_record_is_told_beside_the_next(tiny, machine_of, capsys):
    machine_of({GOVERNOR: "performance"})
    answer = asked(capsys, *ASK, "--full", "protocol.looks=[3]")
    with open_ledger(tiny, "default", writable=False) as ledger:
        (decision,) = ledger.decision_rows()
    assert (decision["hypothesis"], answer["floor"]["decision"]) == ("aa_null", decision["id"])
    assert answer["floor"]["between_rounds_sd"] == decision["verdict"]["floor"]["between_rounds_sd"]
    assert answer["floor"]["raw"] == [] and answer["floor"]["full"]
    again = asked(capsys, "doctor", "protocol.pairs=2", "tracking=none")  # the workload is the campaign's
    assert (again["workload"], again["floor"]["rounds"]) == ("tiny", 3)
    (kept,) = [one for one in again["findings"] if one["check"] == "floor on record"]
    assert decision["id"] in kept["seen"]
    plain = asked(capsys, "doctor", "--no-floor")  # by the newest plan, without composing anything
    assert (plain["workload"], plain["device"]) == ("tiny", "cpu")
    assert kinds(tiny).count("doctor") == 3


def test_outside_a_project_the_machine_alone_is_looked_at_and_nothing_is_written(
    tmp_path, monkeypatch, machine_of, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    machine_of({GOVERNOR: "performance"})
    monkeypatch.setattr("campaign.run.doctor.HERE", Host(nvidia_smi="no-nvidia-smi"))
    before = {path.name for path in tmp_path.iterdir()}
    answer = asked(capsys, "doctor", code=0)
    assert {one["group"] for one in answer["findings"]} == {"machine", "GPU", "software"}
    assert (answer["ledger"], answer["id"], answer["floor"]) == ("", "", None)
    assert {path.name for path in tmp_path.iterdir()} == before
    assert main(["doctor", "--full"]) == 2
    assert "no conf/config.yaml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--full", "--no-floor"], "which of the two?"),
        (["hypothesis=half_sleep"], "hypothesis"),
        (["workload=nothing"], "nothing"),
        (["--campaign", "../x"], "campaign name"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(tiny, capsys, words, said):
    assert main(["doctor", *words]) == 2
    assert said in capsys.readouterr().err
    assert not list((tiny / "runs").iterdir())


def test_without_a_floor_neither_torch_nor_mlflow_is_imported(tiny):
    script = (
        "import sys; from campaign.cli import main; main(['doctor', '--no-floor', 'workload=tiny']);"
        "print('HEAVY', sorted({'torch', 'mlflow', 'pandas', 'matplotlib'} & {*sys.modules}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tiny, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] == "HEAVY []", done.stderr


def test_mlflow_says_which_decisions_it_lacks(tiny, machine_of, capsys):
    from campaign.tracking.state import mirror_state, server_state

    assert mirror_state(tiny, "default", ["a", "b"]) == ("none", 2)
    Path("runs/mlflow.db").write_bytes(b"not a database, and long enough to be read as one" * 100)
    store, missing = mirror_state(tiny, "default", ["a", "b"])
    assert "cannot be read as MLflow's database" in store and missing == 2
    machine_of({GOVERNOR: "performance"})
    answer = asked(capsys, "doctor", "workload=tiny", "--no-floor", code=5)
    assert levels(answer)["MLflow"] == "doubtful"
    assert "does not answer" in server_state("http://127.0.0.1:9")


def planned(root, command):
    """A plan in the ledger that this command registered."""
    made = plan(campaign="default", command=command)
    with open_ledger(root, "default", writable=True) as ledger:
        ledger.append("registered", made.id, to_json(made))


@pytest.mark.parametrize("typed", [True, False], ids=["the newest run's command", "the project's config"])
def test_the_server_that_the_campaign_is_mirrored_to_is_looked_at_without_hydra(tiny, machine_of, capsys, typed):
    server = "http://127.0.0.1:9"  # where nothing listens
    if typed:
        planned(tiny, f"python -m campaign tracking.uri={server}")
    else:
        config = Path("conf/config.yaml").read_text()
        assert "tracking: {uri: null}" in config
        Path("conf/config.yaml").write_text(config.replace("tracking: {uri: null}", f"tracking: {{uri: {server}}}"))
        planned(tiny, "python -m campaign")
    machine_of({GOVERNOR: "performance"})
    answer = asked(capsys, "doctor", "--no-floor")
    found = next(one for one in answer["findings"] if one["check"] == "MLflow")
    assert found["level"] == "doubtful" and server in str(found)


def test_a_campaign_that_is_not_mirrored_has_no_view_to_look_at(tiny, machine_of, capsys):
    planned(tiny, "python -m campaign tracking=none")
    machine_of({GOVERNOR: "performance"})
    assert levels(asked(capsys, "doctor", "--no-floor"))["MLflow"] == "fit"


def test_an_address_that_only_hydra_can_look_up_is_composed(tiny, machine_of, capsys):
    config = Path("conf/config.yaml").read_text()
    config = config.replace("tracking: {uri: null}", "tracking: {uri: 'http://127.0.0.1:${oc.env:NO_SUCH_PORT,9}'}")
    config = config.replace("workload: reference_cpu", "workload: tiny")
    Path("conf/config.yaml").write_text(config)
    planned(tiny, "python -m campaign workload=tiny")
    machine_of({GOVERNOR: "performance"})
    answer = asked(capsys, "doctor", "--no-floor")
    assert "http://127.0.0.1:9" in str(next(one for one in answer["findings"] if one["check"] == "MLflow"))
