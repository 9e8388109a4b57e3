from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign import provenance
from campaign.provenance.secrets import looks_secret
from tests.provenance.trees import applied, change, contents, state

Git = Callable[..., str]


def test_a_clean_repository_has_a_commit_a_branch_and_no_patch(project: Path, git: Git) -> None:
    assert provenance.snapshot(project).source == {
        "status": "ok",
        "reason": "",
        "commit": git(project, "rev-parse", "HEAD").strip(),
        "branch": "main",
        "detached": False,
        "shallow": False,
        "dirty": False,
        "patch_sha256": "",
        "patch_bytes": 0,
        "left_out": [],
    }
    assert provenance.snapshot(project).patch == b""


def test_the_patch_turns_a_clean_checkout_into_the_working_tree(tmp_path: Path, git: Git, project: Path) -> None:
    change(project)
    git(project, "add", "no_newline.txt", "new/kernel.py")
    snapshot = provenance.snapshot(project)
    assert snapshot.source["dirty"] and snapshot.source["left_out"] == []
    assert snapshot.source["patch_sha256"] == hashlib.sha256(snapshot.patch).hexdigest()
    assert snapshot.source["patch_bytes"] == len(snapshot.patch) > 0
    assert contents(applied(tmp_path, git, project, snapshot.patch)) == contents(project)


def test_one_line_of_a_file_without_a_last_newline_applies(tmp_path: Path, git: Git, project: Path) -> None:
    (project / "no_newline.txt").write_text("one\nTWO")
    clean = applied(tmp_path, git, project, provenance.snapshot(project).patch)
    assert (clean / "no_newline.txt").read_bytes() == b"one\nTWO"


def test_a_change_in_the_very_moment_of_the_index_is_seen(project: Path, git: Git) -> None:
    path, index = project / "no_newline.txt", project / ".git" / "index"
    git(project, "config", "core.trustctime", "false")
    moment = path.stat().st_mtime_ns - 100 * 10**9
    os.utime(path, ns=(moment, moment))
    git(project, "update-index", "--refresh")  # the index knows the file as of that moment
    path.write_text("one\nTWO")  # as long as before
    for file in (path, index):
        os.utime(file, ns=(moment, moment))
    assert b"+TWO" in provenance.snapshot(project).patch


def test_the_snapshot_leaves_the_repository_as_it_is(project: Path, git: Git) -> None:
    change(project)
    git(project, "add", "no_newline.txt")
    before, status = state(project), git(project, "status", "--porcelain")
    before = state(project)  # status itself may refresh the index
    provenance.snapshot(project)
    assert state(project) == before
    assert git(project, "status", "--porcelain") == status


SETTINGS = {
    "external diff": "[diff]\nexternal = /bin/true\n",
    "no prefix": "[diff]\nnoprefix = true\n",
    "other prefixes": "[diff]\nmnemonicPrefix = true\nsrcPrefix = x/\ndstPrefix = y/\n",
    "colours": "[color]\nui = always\ndiff = always\n[diff]\ncolorMoved = zebra\n",
    "no context": "[diff]\ncontext = 0\ninterHunkContext = 9\nsuppressBlankEmpty = true\nrenames = copies\n",
    "quoted paths": "[core]\nquotePath = true\n",
    "a pager and a monitor": "[core]\npager = false\nfsmonitor = /bin/false\nuntrackedCache = true\n",
    "line ends": "[core]\nautocrlf = input\nsafecrlf = true\n",
    "textconv": '[diff "x"]\ntextconv = /bin/false\n[core]\nattributesFile = ~/attributes\n',
    "relative, ordered": "[diff]\nrelative = true\norderFile = /nowhere\n",
    "submodules": "[diff]\nsubmodule = log\nignoreSubmodules = all\n[status]\nshowUntrackedFiles = no\n",
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_of_the_user_changes_the_patch(tmp_path: Path, git: Git, project: Path, setting: str) -> None:
    change(project)
    plain = provenance.snapshot(project).patch
    with (tmp_path / "home" / ".gitconfig").open("a") as file:
        file.write(SETTINGS[setting])
    (tmp_path / "home" / "attributes").write_text("*.py diff=x\n")
    assert provenance.snapshot(project).patch == plain
    assert contents(applied(tmp_path, git, project, plain)) == contents(project)


def test_ignored_files_and_our_own_runs_are_no_change(project: Path) -> None:
    (project / "big.log").write_text("noise\n")
    (project / "runs" / "demo").mkdir(parents=True)
    (project / "runs" / "demo" / "ledger.jsonl").write_text("{}\n")
    assert not provenance.snapshot(project).source["dirty"]
    (project / ".gitignore").write_text("*.log\n")  # now runs/ is not ignored any more, but it stays our output
    source = provenance.snapshot(project).source
    assert source["dirty"] and source["left_out"] == [] and b"ledger.jsonl" not in provenance.snapshot(project).patch


SECRET_NAMES = [
    ".env",
    "server.pem",
    "id_rsa",
    "credentials.json",
    "tls.key",
    "deep/.env.local",
    ".ssh/known",
    "ID_RSA.bak",
]


def test_secrets_are_left_out_and_listed_whether_tracked_or_not(tmp_path: Path, git: Git, project: Path) -> None:
    tracked = ["api.key", "conf/credentials"]
    for name in tracked:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("old-secret\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "a mistake")
    for name in [*tracked, *SECRET_NAMES]:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("hunter2\n")
    (project / "fine.py").write_text("x = 2\n")
    snapshot = provenance.snapshot(project)
    assert sorted(snapshot.source["left_out"]) == sorted(
        f"{name}: looks like a secret" for name in [*tracked, *SECRET_NAMES]
    )
    assert b"hunter2" not in snapshot.patch and b"old-secret" not in snapshot.patch
    clean = applied(tmp_path, git, project, snapshot.patch)
    assert (clean / "fine.py").read_text() == "x = 2\n" and (clean / "api.key").read_text() == "old-secret\n"


@pytest.mark.parametrize("name", ["environment.py", "models/keys.py", "keyboard.py", "secrets.py", "pem.txt"])
def test_a_name_that_only_resembles_a_secret_is_taken(name: str) -> None:
    assert not looks_secret(name)


def test_only_secrets_changed_is_still_dirty(project: Path) -> None:
    (project / ".env").write_text("hunter2\n")
    source = provenance.snapshot(project).source
    assert source["dirty"] and source["patch_sha256"] == "" and source["left_out"] == [".env: looks like a secret"]


def test_files_over_the_cap_are_left_out_and_the_rest_applies(tmp_path: Path, git: Git, project: Path) -> None:
    (project / "small.py").write_text("x = 3\n")
    (project / "data.bin").write_bytes(os.urandom(provenance.PATCH_LIMIT_BYTES + 1))
    (project / "weights.bin").write_bytes(os.urandom(provenance.PATCH_LIMIT_BYTES))  # tracked: measured as a patch
    snapshot = provenance.snapshot(project)
    left = sorted(snapshot.source["left_out"])
    assert [line.partition(":")[0] for line in left] == ["data.bin", "weights.bin"]
    assert "5000001 bytes" in left[0] and "5000000" in left[1]
    assert len(snapshot.patch) < provenance.PATCH_LIMIT_BYTES
    clean = applied(tmp_path, git, project, snapshot.patch)
    assert (clean / "small.py").read_text() == "x = 3\n" and not (clean / "data.bin").exists()
    assert (clean / "weights.bin").read_bytes() == bytes(range(256))


def test_a_long_list_of_what_was_left_out_is_cut(project: Path) -> None:
    for number in range(205):
        (project / f"{number}.pem").touch()
    left = provenance.snapshot(project).source["left_out"]
    assert len(left) == 201 and left[-1] == "and 5 more"
