"""What must never be run and never be written down."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.config import load
from campaign.errors import BadInput
from campaign.secrecy import redacted, secret_name, secret_variable, secret_words
from tests.builders import REPOSITORY

PLANTED = {
    "HF_TOKEN": "hf_planted0000000000000000000000000001",
    "AWS_SECRET_ACCESS_KEY": "planted/0000000000/0000000000/0000000002",
    "WANDB_API_KEY": "planted00000000000000000000000000000003",
    "MLFLOW_TRACKING_PASSWORD": "planted-password-4",
    "CUDA_REGISTRY_TOKEN": "planted-in-a-watched-family-5",  # CUDA_ variables are a part of the fingerprint
}
FILES = {
    ".env": "DATABASE_PASSWORD=planted-in-a-file-6\n",
    "credentials.json": '{"key": "planted-in-a-file-7"}\n',
    "id_rsa": "planted-in-a-file-8\n",
}
SCRIPT = """
import os, sys
import campaign
print(dict(os.environ))
def train(step):
    if step > 60 and os.environ.get("FAIL"):
        raise RuntimeError("cannot log in with " + os.environ["HF_TOKEN"])
    sum(range(20_000))
step = 0
while True:
    with campaign.step(tokens=1):
        train(step)
        campaign.record(loss=1.0)
        step += 1
"""
WORKLOAD = """# @package _global_
workload:
  _target_: campaign.launch.Script
  name: own
  device: cpu
  command: python train.py
  flags: {more: 0}
  environment: {}
"""
HYPOTHESIS = """# @package _global_
hypothesis:
  name: more
  claim: one more flag
  mechanism: none
  acts_on: dispatch
  edit: {overrides: [workload.flags.more=1], environment: {MKL_NUM_THREADS: 1}}
  predicted_ratio: 1.0
  parity: {kind: bitwise}
"""


@pytest.fixture
def own(tmp_path):
    """A person's project in a git repository, with secrets tracked, changed and untracked."""
    root = tmp_path / "own"
    shutil.copytree(REPOSITORY / "conf" / "protocol", root / "conf" / "protocol")
    config = (REPOSITORY / "conf" / "config.yaml").read_text()
    files = {
        "conf/config.yaml": config.replace("workload: reference_cpu", "workload: own").replace("aa_null", "more"),
        "conf/workload/own.yaml": WORKLOAD,
        "conf/hypothesis/more.yaml": HYPOTHESIS,
        "train.py": SCRIPT,
        ".gitignore": "runs/\n",
        ".env": "DATABASE_PASSWORD=old\n",
    }
    for name, said in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(said)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], cwd=root, check=True)
    for name, said in FILES.items():
        (root / name).write_text(said)
    (root / "train.py").write_text(SCRIPT + "# a change that is no secret\n")
    return root


def everything_written(*folders: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("fail", ["", "1"], ids=["decided", "crashed"])
def test_no_planted_secret_is_in_anything_that_a_campaign_writes(own, tmp_path, fail):
    here = {name: value for name, value in __import__("os").environ.items() if name != "CAMPAIGN_PROJECT"}
    variables = {**here, **PLANTED, "FAIL": fail, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    said = b""
    run = ["protocol=quick", "protocol.clock=wall", "protocol.contention_limit=null"]
    words = [run, ["ledger", "--export", "html"], ["ledger", "--export", "csv"]]
    for line in [*words, ["show", "1", "--json"], ["report"], ["doctor", "--json"]]:
        done = subprocess.run([sys.executable, "-m", "campaign", *line], cwd=own, env=variables, capture_output=True)
        said += done.stdout + done.stderr
    written = everything_written(own / "runs", tmp_path / "tmp")
    assert (own / "runs" / "mlflow.db") in written, said.decode()
    assert any(b"a change that is no secret" in data for data in written.values()), "the patch is kept"
    assert any(b"[HF_TOKEN]" in data for data in written.values()), "the log is kept, without the value"
    planted = [*PLANTED.values(), *(f"planted-in-a-file-{n}" for n in (6, 7, 8))]
    leaks = [(value, path) for value in planted for path, data in written.items() if value.encode() in data]
    assert not leaks
    assert not [value for value in planted if value.encode() in said]


@pytest.mark.parametrize(
    "override, said",
    [
        ("++hypothesis.edit.environment.HF_TOKEN=abc", "HF_TOKEN"),
        ("+workload.environment.WANDB_API_KEY=abc", r"workload\.environment\.WANDB_API_KEY"),
        ("+workload.flags.api-key=abc", r"workload\.flags\.api-key"),
        ("workload.command='python train.py --hub_token=abc'", "hub_token"),
        ("workload.command='python train.py --api-key abc'", "api-key"),
        ("workload.command=[python,train.py,--hf-token,abc]", "hf-token"),
        ("workload.command=[bash,-c,'cd x; WANDB_API_KEY=abc python train.py']", "WANDB_API_KEY"),
        ("workload.command='python train.py --store postgresql://me:abc@host/db'", "address with a password"),
    ],
)
def test_a_secret_in_the_config_is_refused_before_anything_is_written(own, override, said):
    with pytest.raises(BadInput, match=said) as refused:
        load(own, [override])
    assert "abc" not in refused.value.message
    assert "shell's environment" in refused.value.remedy


@pytest.mark.parametrize(
    "override",
    ["workload.command='python train.py | tee log'", "workload.command='train; rm x'", "workload.command='a \"b'"],
)
def test_what_a_shell_would_do_is_refused_since_none_runs(own, override):
    with pytest.raises(BadInput, match="command"):
        load(own, [override])


@pytest.mark.parametrize("word", ["--sep '|'", "--name ''", "--sep='a|b c'", '--sep "a; b"', "--sep \\|"])
def test_what_is_quoted_is_no_operator_of_a_shell(own, word):
    command = f"python train.py {word}"
    escaped = command.replace("'", "\\'")
    assert load(own, [f"workload.command='{escaped}'"]).arm("control", "root", []).config["command"] == command


def test_the_class_of_a_workload_is_no_matter_of_a_command_line(own):
    with pytest.raises(BadInput, match="never from a command line"):
        load(own, ["workload._target_=os.system"])


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "OPENAI_API_KEY", "PGPASSWORD_FILE_PASSWORD", "PGPASSWORD", "DB_PASS", "my-secret", "SENTRY_DSN"],
)
def test_a_variable_that_announces_a_secret_is_known(name):
    assert secret_variable(name)


@pytest.mark.parametrize("name", ["tokens", "max_tokens", "key_width", "lr", "token_dropout", "monkey", "keys"])
def test_a_flag_of_training_is_no_secret(name):
    assert not secret_name(name)
    assert not secret_words(["python", f"--{name}=3", f"--{name}", "3"])


def test_values_are_cut_out_of_a_log_the_longer_first():
    environment = {"A_TOKEN": "abcdef", "B_TOKEN": "abcdefgh", "C_TOKEN": "abc", "PATH": "/usr/bin"}
    assert redacted(b"x abcdefgh y abcdef abc /usr/bin", environment) == b"x [B_TOKEN] y [A_TOKEN] abc /usr/bin"


def test_nothing_in_the_package_unpickles_evals_or_asks_a_shell():
    forbidden = []
    for path in (REPOSITORY / "campaign").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                shell = any(word.arg == "shell" and ast.unparse(word.value) != "False" for word in node.keywords)
                pickles = any(
                    word.arg == "allow_pickle" and ast.unparse(word.value) != "False" for word in node.keywords
                )
                if called in ("eval", "exec", "os.system", "os.popen", "pickle.load", "torch.load") or shell or pickles:
                    forbidden.append(f"{path.relative_to(REPOSITORY)}:{node.lineno}: {called}")
    assert not forbidden
