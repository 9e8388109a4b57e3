"""`campaign init`: what is laid down around which script, that it fits, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from campaign.cli import main
from campaign.cli.usage import options
from campaign.config import jobs
from campaign.errors import DoesNotFit
from campaign.starting.ideas import ON
from campaign.starting.project import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
NANO = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--learning-rate", type=float, default=6e-4)
parser.add_argument("--max_iters", type=int, default=3)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--width", type=int, default=1e2)
parser.add_argument("--label", default=7)
parser.add_argument("--out", default="")
parser.add_argument("--betas", nargs=2, type=float, default=0.9)
either = parser.add_mutually_exclusive_group()
either.add_argument("--small", type=int, default=1)
given = parser.parse_args()

class Loss:
    def backward(self): pass

for iter_num in range(given.max_iters):
    Loss().backward()
    lossf, dt = 2.0 / (iter_num + 1), 0.125
    print(f"iter {iter_num}: loss {lossf:.4f}, time {dt * 1000:.2f}ms")
print(f"step {iter_num}: val loss {lossf:.4f}")
"""
GATED = "import campaign\nfor batch in campaign.steps([1]):\n    loss = batch\n    loss.backward()\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A plain folder to work in."""
    root = tmp_path / "mine"
    root.mkdir()
    monkeypatch.chdir(root)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    return root


@pytest.fixture
def init(folder, capsys):
    """Runs `campaign init --json` with further words; what it answers."""

    def run(*words: str) -> dict:
        assert main(["init", *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def node(folder: Path, name: str = "workload/own") -> dict:
    return OmegaConf.to_container(OmegaConf.load(folder / "conf" / f"{name}.yaml"))


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder with its content and its time, git's own left out."""
    found = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


def test_an_empty_repository_gets_a_project_that_composes_and_a_second_time_changes_nothing(folder, init):
    subprocess.run(["git", "init", "-q"], check=True)
    said = init()
    assert set(said["written"]) == {*files(folder)} and said["kept"] == []
    assert {"conf/config.yaml", "conf/workload/own.yaml", "conf/hypothesis/aa_null.yaml", "train_example.py",
            "runs/.gitignore"} < {*files(folder)}  # fmt: skip
    names = {job.hypothesis.name for job in jobs(folder, ["-m", "hypothesis=glob(*)"])}
    assert names == {"aa_null", "one_thread", "fused_optimizer"}
    before = files(folder)
    again = init()
    assert again["written"] == [] and "conf/workload/own.yaml" in again["kept"]
    assert files(folder) == before


def test_what_it_shows_in_a_new_project_is_what_fits_there(folder, init, capsys):
    init()
    assert options("hypothesis") == ["aa_null", "fused_optimizer", "one_thread"]
    assert options("workload") == ["own"]
    assert {"own", "quick", "standard"} <= set(options("protocol"))
    assert not (folder / "conf" / "protocol").exists()
    for protocol in options("protocol"):
        assert jobs(folder, [f"protocol={protocol}"])[0].protocol.name == protocol
    assert main(["--help"]) == 0
    assert "prenorm_fusion" not in capsys.readouterr().out
    assert main(["hypothesis=prenorm_fusion"]) == 2
    assert "aa_null, fused_optimizer, one_thread" in capsys.readouterr().err
    (folder / "conf/hypothesis/aa_null.yaml").unlink()  # it comes with campaign, whatever the folder lost
    assert jobs(folder, [])[0].hypothesis.null


def test_completion_offers_the_projects_own_names_and_the_packaged_protocols(folder, init, capsys):
    init()
    assert main(["completion", "bash"]) == 0
    text = capsys.readouterr().out
    lines = ["campaign hypothesis=", "campaign workload=", "campaign protocol=q"]
    asks = "".join(f"COMP_LINE='{one}' COMP_POINT={len(one)}; _campaign; echo ${{COMPREPLY[*]}}\n" for one in lines)
    done = subprocess.run(["bash", "-c", f"{text}\n{asks}"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["aa_null fused_optimizer one_thread", "own", "quick"]


def test_the_laid_down_config_is_the_packaged_one_but_for_its_choices_and_examples(folder, init):
    init()
    mine, packaged = node(folder, "config"), OmegaConf.to_container(OmegaConf.load(REPOSITORY / "conf/config.yaml"))
    for one in (mine, packaged):
        del one["defaults"]
        del one["hydra"]["help"]["header"], one["hydra"]["help"]["footer"]
    assert mine == packaged


def test_a_script_with_flags_is_measured_by_what_it_prints(folder, init):
    (folder / "train.py").write_text(NANO)
    (folder / "tests").mkdir()
    (folder / "tests" / "train.py").write_text(NANO)
    said = init()
    assert (said["script"], said["way"], "train_example.py" in said["written"]) == ("train.py", 1, False)
    workload = node(folder)["workload"]
    assert workload["_target_"] == "campaign.launch.Command"
    # What is no use, or no such value, on the command line is left out: 1e2 is no int, 7 would come back as a text.
    assert workload["flags"] == {
        "learning-rate": 6e-4, "max_iters": 3, "compile": False, "width": None, "label": None, "out": None,
        "betas": None, "small": None,
    }  # fmt: skip
    done = subprocess.run([sys.executable, "train.py", "--max_iters=3"], capture_output=True, text=True, check=True)
    pattern = re.compile(workload["steps"]["pattern"])
    told = [found.groupdict() for line in done.stdout.splitlines() if (found := pattern.search(line))]
    assert told == [{"step": "0", "loss": "2.0000"}, {"step": "1", "loss": "1.0000"}, {"step": "2", "loss": "0.6667"}]
    assert [job.hypothesis.edit.overrides for job in jobs(folder, ["hypothesis=compile"])] == [
        ("workload.flags.compile=true",)
    ]


def test_a_script_that_stops_at_gates_takes_turns_by_blocks(folder, init):
    (folder / "learn.py").write_text(GATED)
    said = init()
    assert (said["script"], said["way"]) == ("learn.py", 2)
    assert node(folder)["workload"]["_target_"] == "campaign.launch.Script"
    assert "steps" not in node(folder)["workload"]


@pytest.mark.parametrize(
    ("call", "gate"),
    [
        ("from campaign import steps\nfor b in steps([1]): pass", "campaign.steps"),
        ("import campaign\nwith campaign.step(): pass", "campaign.step"),
        ("from campaign.callbacks import HuggingFace", "campaign.callbacks"),
        ("# campaign.steps(loader) would do", ""),
        ("def steps(x): return x\nsteps(3)", ""),
    ],
)
def test_a_gate_is_a_call_and_no_comment(call, gate):
    from campaign.starting.script import read

    assert read(call).gate == gate


def test_how_a_makefile_starts_it_is_kept_and_its_flags_can_be_edited(folder, init):
    (folder / "src").mkdir()
    (folder / "src" / "run.py").write_text(NANO)
    recipe = (
        "\tOMP_NUM_THREADS=1 torchrun --standalone --nproc_per_node=2 src/run.py data/x --max_iters 9 --compile > log"
    )
    (folder / "Makefile").write_text(f"train:\n{recipe}\n")
    said = init()
    workload = node(folder)["workload"]
    assert workload["command"] == "torchrun --standalone --nproc_per_node=2 src/run.py data/x"
    assert (workload["flags"]["max_iters"], workload["flags"]["compile"]) == (9, True)
    assert workload["environment"] == {"OMP_NUM_THREADS": "1"}
    assert "Makefile" in said["found"]["script"]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("python -m src.train --x=1", "python -m src.train --x=1"),
        ("$ python3 src/train.py $ARGS", "python src/train.py"),
        ("accelerate launch src/train.py conf.json && echo done", "accelerate launch src/train.py conf.json"),
        ("Run `python src/train.py --out <folder>` to train", "python src/train.py"),
    ],
)
def test_what_a_shell_would_act_on_is_not_taken(folder, init, line, command):
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text("loss.backward()\n")
    (folder / "README.md").write_text(f"# Mine\n\n    {line}\n")
    init()
    assert node(folder)["workload"]["command"] == command


def test_flags_of_hydra_are_written_as_hydra_reads_them(folder, init):
    (folder / "train.py").write_text("import hydra\n@hydra.main(config_path='c')\ndef main(c):\n    loss.backward()\n")
    init()
    assert (node(folder)["workload"]["flag"], node(folder)["workload"]["flags"]) == ("{name}={value}", {})


@pytest.mark.parametrize(
    ("printed", "out", "step", "loss"),
    [
        ("print('step', i, 'loss', loss)", "step 7 loss 0.5", "7", "0.5"),
        ("print('[%d/%d] train loss: %.3f' % (i, n, loss))", "[7/9] train loss: 0.500", "7", "0.500"),
        ("log.info('Epoch {} iter {} loss={:.2e}'.format(e, it, l))", "Epoch 1 iter 7 loss=5.00e-01", "7", "5.00e-01"),
        ("print(f'{step:5d} | {loss.item():.4f} | {lr}')", "    7 | 0.5000 | 0.1", "7", "0.5000"),
        ("print(f'loss {loss:.3f} after {t} s')", "loss 0.500 after 3 s", None, "0.500"),
    ],
)
def test_the_line_about_a_step_becomes_its_pattern(printed, out, step, loss):
    import ast

    from campaign.starting.printed import printed as line

    found = re.search(line(ast.parse(printed)).pattern, out)
    assert (found.groupdict().get("step"), found["loss"]) == (step, loss)


@pytest.mark.parametrize("flag", [*ON, "num_workers", "use-amp", "torch_compile"])
def test_every_idea_about_a_flag_fits_its_workload(folder, init, flag):
    declared = "type=int, default=0" if flag == "num_workers" else "action='store_true'"
    (folder / "train.py").write_text(
        f"import argparse\np = argparse.ArgumentParser()\np.add_argument('--{flag}', {declared})\nloss.backward()\n"
    )
    init()
    found = [job.hypothesis for job in jobs(folder, ["-m", "hypothesis=glob(*)"])]
    value = "2" if flag == "num_workers" else "true"
    assert [one.edit.overrides for one in found if one.edit.overrides] == [(f"workload.flags.{flag}={value}",)]


@pytest.mark.parametrize("text", ["a: b", "it's", "${x}", "#", "1e-3", "yes", "-", "x\\n", "{a}", "a  b", "007", "~"])
def test_a_text_in_yaml_comes_back_as_it_was(text):
    assert OmegaConf.to_container(OmegaConf.create(f"key: {yaml(text)}"), resolve=True) == {"key": text}


@pytest.mark.parametrize("value", [1e-05, 6e-4, 1.0, 1e20, 3, True, None])
def test_a_value_in_yaml_keeps_its_kind(value):
    (found,) = OmegaConf.to_container(OmegaConf.create(f"key: {yaml(value)}")).values()
    assert (found, type(found)) == (value, type(value))


def test_what_was_there_is_kept_and_named(folder, init):
    own = folder / "conf/hypothesis/one_thread.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    (folder / "runs").mkdir()
    (folder / "runs/.gitignore").symlink_to("nowhere")
    said = init()
    assert set(said["kept"]) == {"conf/hypothesis/one_thread.yaml", "runs/.gitignore"}
    assert own.read_text() == "mine" and not (folder / "runs/nowhere").exists()


def test_many_at_once_leave_one_whole_project(folder):
    script = "from campaign.cli import main; raise SystemExit(main(['init']))"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    codes = []

    def one():
        codes.append(subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True).returncode)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0] * 4
    assert not [path for path in folder.rglob("*.tmp")]
    assert len(jobs(folder, ["-m", "hypothesis=glob(*)"])) == 3


def refused(capsys, *words: str) -> tuple[str, str]:
    """What `campaign init` says when it refuses, and what to type."""
    assert main(["init", *words]) == 2
    message, _, remedy = capsys.readouterr().err.partition("\n  try: ")
    return message, remedy.strip()


def test_another_programs_config_stays_and_the_remedy_goes_around_it(folder, capsys, monkeypatch):
    (folder / "conf").mkdir()
    (folder / "conf/config.yaml").write_text("defaults:\n  - model: large\n")
    (folder / "train.py").write_text("loss.backward()\n")
    message, remedy = refused(capsys)
    assert "another program's config" in message and remedy.startswith("campaign init tuning ")
    assert {*files(folder)} == {"conf/config.yaml", "train.py"}
    assert main(["init", "tuning"]) == 0
    assert "cd tuning && campaign" in capsys.readouterr().out
    monkeypatch.chdir(folder / "tuning")
    assert node(folder / "tuning")["workload"]["directory"] == ".."
    assert jobs(folder / "tuning", [])[0].workload == "own"


def test_inside_another_project_it_is_not_laid_down_by_mistake(folder, init, capsys, monkeypatch):
    init()
    (folder / "deep").mkdir()
    monkeypatch.chdir(folder / "deep")
    message, remedy = refused(capsys)
    assert str(folder) in message and remedy.startswith("campaign init --here ")
    assert files(folder / "deep") == {}
    assert main(["init", "--here"]) == 0
    assert (folder / "deep/conf/config.yaml").is_file()


@pytest.mark.parametrize("name", ["conf", "conf/hypothesis", "runs"])
def test_nothing_is_written_through_a_link(folder, tmp_path, capsys, name):
    (tmp_path / "elsewhere").mkdir()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(tmp_path / "elsewhere")
    message, remedy = refused(capsys)
    assert "is a link to" in message and remedy.startswith("campaign init tuning ")
    assert files(tmp_path / "elsewhere") == {}
    assert main(["init", "tuning"]) == 0


def test_where_nothing_can_be_written_it_says_who_may(folder, capsys, monkeypatch):
    if os.geteuid() == 0:
        monkeypatch.chdir("/proc/self")  # nobody makes a file there, root neither
    else:
        folder.chmod(0o500)
    message, remedy = refused(capsys)
    assert "cannot write" in message and remedy.startswith("ls -ld ")


def test_a_project_named_by_the_environment_is_not_passed_over(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CAMPAIGN_PROJECT", str(tmp_path))
    message, remedy = refused(capsys)
    assert "CAMPAIGN_PROJECT" in message and remedy.startswith("unset CAMPAIGN_PROJECT")


def test_a_script_that_is_not_there_is_answered_with_those_that_are(folder, capsys):
    (folder / "train.py").write_text("loss.backward()\n")
    message, remedy = refused(capsys, "--script", "trian.py")
    assert "no such file" in message and remedy.startswith("campaign init --script train.py ")
    assert "no such file" in refused(capsys, "--script", "../x.py")[0]
    (folder / "a file").touch()
    assert "is a file" in refused(capsys, "a file")[0]


def test_an_edit_of_a_flag_that_the_script_does_not_have_does_not_fit(folder, init):
    init()
    (folder / "conf/hypothesis/x.yaml").write_text(
        (folder / "conf/hypothesis/fused_optimizer.yaml")
        .read_text()
        .replace("fused=", "fuse=")
        .replace("name: fused_optimizer", "name: x")
    )
    with pytest.raises(DoesNotFit, match=r"did you mean 'workload.flags.fused'"):
        jobs(folder, ["hypothesis=x"])
