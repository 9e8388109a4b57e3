"""What `campaign init` finds: which script trains, how it is started, its flags, what it prints, what to try on it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from campaign.cli import main
from campaign.config import jobs
from campaign.launch.command import CommandLine
from campaign.starting.ideas import ON
from campaign.starting.project import yaml
from campaign.starting.search import MOST_FILES

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


def node(folder: Path, name: str = "workload/own") -> dict:
    return OmegaConf.to_container(OmegaConf.load(folder / "conf" / f"{name}.yaml"))


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


def test_a_project_that_watches_a_script_which_has_the_two_lines_by_now_is_told_how_to_go_on(folder, init, capsys):
    (folder / "learn.py").write_text(
        "for step in range(9):\n    loss.backward()\n    print(f'step {step} loss {loss}')\n"
    )
    assert (init()["way"], init()["behind"]) == (1, "")
    (folder / "learn.py").write_text(GATED)
    said = init()
    assert said["behind"].startswith("learn.py calls campaign by now and conf/workload/own.yaml only watches it")
    assert main(["init"]) == 0
    assert said["behind"] in capsys.readouterr().out
    (folder / "conf/workload/own.yaml").unlink()
    assert (init()["written"], init()["behind"]) == (["conf/workload/own.yaml"], "")
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


def test_what_hydra_was_told_can_be_edited_and_what_lies_within_another_word_stays(folder, init):
    (folder / "train.py").write_text("import hydra\n@hydra.main(config_path='c')\ndef main(c):\n    loss.backward()\n")
    (folder / "train.sh").write_text("python train.py model=small model.depth=4 trainer.opt.fused=false trainer.n=9\n")
    init()
    workload = node(folder)["workload"]
    assert workload["command"] == "python train.py model.depth=4"
    assert workload["flags"] == {"model": "small", "trainer": {"opt": {"fused": False}, "n": 9}}
    (job,) = jobs(folder, ["workload.flags.trainer.opt.fused=true"])
    words = CommandLine.of(job.arm("control", "root", []).config).words()
    assert words[2:] == ["model.depth=4", "model=small", "trainer.opt.fused=true", "trainer.n=9"]


def test_a_trainer_of_transformers_is_read_by_what_it_logs_each_step(folder, init):
    pytest.importorskip("transformers")
    from transformers import HfArgumentParser, TrainingArguments

    (folder / "train.py").write_text(
        "from transformers import HfArgumentParser, Trainer, TrainingArguments\n"
        "HfArgumentParser(TrainingArguments)\nTrainer().train()\n"
    )
    (folder / "README.md").write_text("```\npython train.py \\\n  --output_dir out --learning_rate 2e-5\n```\n")
    init()
    workload = node(folder)["workload"]
    assert workload["command"] == "python train.py"
    assert (workload["flags"]["output_dir"], workload["flags"]["learning_rate"]) == ("out", 2e-5)
    assert re.search(workload["steps"]["pattern"], "{'loss': 2.5, 'grad_norm': 1.0, 'epoch': 0.1}")["loss"] == "2.5"
    told = CommandLine(workload["command"], flags=workload["flags"]).flag_words()
    (parsed,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(told)
    assert (parsed.logging_steps, parsed.dataloader_num_workers) == (1, 0)
    assert [job.hypothesis.edit.overrides for job in jobs(folder, ["hypothesis=two_workers"])] == [
        ("workload.flags.dataloader_num_workers=2",)
    ]


@pytest.mark.parametrize(
    ("printed", "out", "step", "loss"),
    [
        ("print('step', i, 'loss', loss)", "step 7 loss 0.5", "7", "0.5"),
        ("print('[%d/%d] train loss: %.3f' % (i, n, loss))", "[7/9] train loss: 0.500", "7", "0.500"),
        ("log.info('Epoch {} iter {} loss={:.2e}'.format(e, it, l))", "Epoch 1 iter 7 loss=5.00e-01", "7", "5.00e-01"),
        ("print(f'{step:5d} | {loss.item():.4f} | {lr}')", "    7 | 0.5000 | 0.1", "7", "0.5000"),
        ("print(f'iter={it:6d} loss={loss:8.4f}')", "iter=     7 loss=  0.5000", "7", "0.5000"),
        ("print('step:%5d, loss:%9.2e' % (i, loss))", "step:    7, loss: 5.00e-01", "7", "5.00e-01"),
        ("print(f'loss {loss:.3f} after {t} s')", "loss 0.500 after 3 s", None, "0.500"),
    ],
)
def test_the_line_about_a_step_becomes_its_pattern(printed, out, step, loss):
    import ast

    from campaign.starting.printed import printed as line

    found = re.search(line(ast.parse(printed)).pattern, out)
    assert (found.groupdict().get("step"), found["loss"]) == (step, loss)


@pytest.mark.parametrize(
    "flag", ["num_workers", "torch_compile", *(pytest.param(flag, marks=pytest.mark.slow) for flag in (*ON, "use-amp"))]
)
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


def test_the_script_is_found_among_thousands_of_files_that_come_before_it(folder, init):
    (folder / "aaa").mkdir()
    for number in range(MOST_FILES + 1):
        (folder / "aaa" / f"m{number}.py").touch()
    (folder / "zzz").mkdir()
    (folder / "zzz" / "train.py").write_text(NANO)
    assert init()["script"] == "zzz/train.py"


def test_a_byte_order_mark_is_no_part_of_the_script(folder, init):
    (folder / "train.py").write_text(NANO, encoding="utf-8-sig")
    assert "learning-rate" in init()["found"]["flags"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("loss.backward()\nif True print(1)\n", "(line 2: invalid syntax)"), ("loss.backward()\0", "null bytes)")],
)
def test_a_script_that_python_cannot_read_is_said_to_be_one(folder, init, text, said):
    (folder / "train.py").write_text(text)
    found = init()["found"]["script"]
    assert "this Python cannot read it (" in found and said in found


def test_a_script_whose_name_starts_with_a_dash_is_started_as_a_file(folder, init):
    (folder / "-train.py").write_text(NANO)
    assert init("--script", "./-train.py")["script"] == "-train.py"
    assert node(folder)["workload"]["command"].split()[1] == "./-train.py"


@pytest.mark.parametrize("begun", [True, False])
def test_an_environment_that_git_would_take_in_is_ignored_before_the_first_commit(folder, init, begun):
    if begun:
        subprocess.run(["git", "init", "-q"], check=True)
    for name, ignored in (("own env", None), ("selfish", "*\n"), (".venv", None)):
        (folder / name).mkdir()
        (folder / name / "pyvenv.cfg").touch()
        if ignored:
            (folder / name / ".gitignore").write_text(ignored)
    (folder / ".gitignore").write_text(".venv/\n*.ckpt")  # without a newline at its end
    (folder / "large.ckpt").touch()
    commands = [one["command"] for one in init()["next"]]
    (commit,) = [one for one in commands if "git commit" in one]
    assert "'own env/' >> .gitignore && git add -A" in commit and commit.count("printf") == 1
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    subprocess.run(["bash", "-c", commit], check=True, env={**os.environ, **identity})
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout
    assert "pyvenv.cfg" not in listed and "large.ckpt" not in listed and "train_example.py" in listed


def test_the_repository_that_it_begins_is_around_the_training_and_not_the_project_alone(folder, init):
    (folder / "train.py").write_text(NANO)
    said = init("my tuning")
    assert said["next"][0]["command"] == "cd 'my tuning' && campaign"
    (commit,) = [
        one["command"] for one in said["next"] if "git commit" in one["command"] or " commit " in one["command"]
    ]
    identity = {f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["bash", "-c", commit], cwd=folder / "my tuning", check=True, env={**os.environ, **identity})
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert "train.py" in listed and "my tuning/conf/config.yaml" in listed
