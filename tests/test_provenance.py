from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import campaign
from campaign import provenance
from campaign.provenance.secrets import looks_secret

ROOT = Path(campaign.__file__).parent.parent

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """`git(folder, *arguments)`, as a user without settings of her own; HOME is `home` in the temporary folder."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))  # the temporary folder may be in a repository
    (home / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.org\n[init]\ndefaultBranch = main\n")

    def run(folder: Path, *arguments: str) -> str:
        return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True).stdout

    return run


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    """A repository with one commit of three text files, one of them without a last newline, and a binary."""
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "block.py").write_text("".join(f"line {n}\n" for n in range(30)))
    (folder / "no_newline.txt").write_text("one\ntwo")
    (folder / "ä name.py").write_text("x = 1\n")
    (folder / "weights.bin").write_bytes(bytes(range(256)))
    (folder / ".gitignore").write_text("*.log\n/runs/*\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def state(folder: Path) -> dict[str, str]:
    """Everything in the repository's own folder, by content."""
    files = (path for path in (folder / ".git").rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def applied(tmp_path: Path, git: Git, project: Path, patch: bytes) -> Path:
    """A clean checkout of the project's commit with the patch applied, after `git apply --check` let it pass."""
    clean = tmp_path / f"clean-{hashlib.sha256(patch).hexdigest()[:8]}"
    git(project, "-c", "core.autocrlf=false", "clone", "-q", "--no-local", str(project), str(clean))
    file = tmp_path / "snapshot.patch"
    file.write_bytes(patch)
    git(clean, "apply", "--check", str(file))
    git(clean, "apply", str(file))
    return clean


def change(project: Path) -> None:
    """A change of every kind: staged, not staged, binary, no last newline, removed, renamed, new, a new folder."""
    block = project / "models" / "block.py"
    block.write_text(block.read_text().replace("line 7\n", "line seven\n"))
    (project / "no_newline.txt").write_text("one\nTWO")
    (project / "weights.bin").write_bytes(bytes(reversed(range(256))) * 4)
    (project / "ä name.py").rename(project / "b c.py")
    (project / "new").mkdir()
    (project / "new" / "kernel.py").write_text("y = 2\n")
    (project / "new" / "run.sh").write_text("#!/bin/sh\n")
    (project / "new" / "run.sh").chmod(0o755)
    (project / "new" / "link").symlink_to("kernel.py")
    (project / "new" / "empty.py").touch()


def contents(folder: Path) -> dict[str, tuple[str, bool]]:
    found = {}
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        if ".git" not in relative.parts and (path.is_file() or path.is_symlink()):
            text = os.readlink(path) if path.is_symlink() else path.read_bytes().hex()
            found[str(relative)] = (text, not path.is_symlink() and os.access(path, os.X_OK))
    return found


def test_a_clean_repository_has_a_commit_a_branch_and_no_patch(project: Path, git: Git) -> None:
    assert provenance.source(project) == {
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
    assert provenance.patch(project) == b""


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
    clean = applied(tmp_path, git, project, provenance.patch(project))
    assert (clean / "no_newline.txt").read_bytes() == b"one\nTWO"


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
    plain = provenance.patch(project)
    with (tmp_path / "home" / ".gitconfig").open("a") as file:
        file.write(SETTINGS[setting])
    (tmp_path / "home" / "attributes").write_text("*.py diff=x\n")
    assert provenance.patch(project) == plain
    assert contents(applied(tmp_path, git, project, plain)) == contents(project)


def test_ignored_files_and_our_own_runs_are_no_change(project: Path) -> None:
    (project / "big.log").write_text("noise\n")
    (project / "runs" / "demo").mkdir(parents=True)
    (project / "runs" / "demo" / "ledger.jsonl").write_text("{}\n")
    assert not provenance.source(project)["dirty"]
    (project / ".gitignore").write_text("*.log\n")  # now runs/ is not ignored any more, but it stays our output
    source = provenance.source(project)
    assert source["dirty"] and source["left_out"] == [] and b"ledger.jsonl" not in provenance.patch(project)


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
    source = provenance.source(project)
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
    left = provenance.source(project)["left_out"]
    assert len(left) == 201 and left[-1] == "and 5 more"


def test_a_detached_head_has_a_commit_and_no_branch(project: Path, git: Git) -> None:
    git(project, "checkout", "-q", "--detach")
    source = provenance.source(project)
    assert (source["status"], source["branch"], source["detached"]) == ("ok", None, True)
    assert source["commit"] == git(project, "rev-parse", "HEAD").strip()


def test_a_shallow_clone_says_so(tmp_path: Path, project: Path, git: Git) -> None:
    (project / "models" / "block.py").write_text("second\n")
    git(project, "commit", "-qam", "second")
    git(project, "clone", "-q", "--depth=1", project.as_uri(), str(tmp_path / "shallow"))
    (tmp_path / "shallow" / "x.py").write_text("x = 1\n")
    source = provenance.source(tmp_path / "shallow")
    assert source["status"] == "ok" and source["shallow"] and source["patch_bytes"] > 0


def test_a_linked_worktree_is_its_own_tree(tmp_path: Path, project: Path, git: Git) -> None:
    git(project, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    (tmp_path / "tree" / "models" / "block.py").write_text("changed here\n")
    assert provenance.source(tmp_path / "tree")["dirty"] and not provenance.source(project)["dirty"]
    assert b"changed here" in provenance.patch(tmp_path / "tree")


def test_a_project_below_the_top_takes_the_whole_repository(project: Path) -> None:
    (project / "no_newline.txt").write_text("outside the project\n")
    (project / "models" / "runs").mkdir()
    (project / "models" / "runs" / "out.txt").touch()
    source, patch = provenance.source(project / "models"), provenance.patch(project / "models")
    assert source["status"] == "ok" and b"outside the project" in patch and b"out.txt" not in patch


def test_no_commit_yet_is_a_status_and_the_files_are_the_patch(tmp_path: Path, git: Git) -> None:
    folder = tmp_path / "unborn"
    folder.mkdir()
    git(folder, "init", "-q")
    assert provenance.source(folder)["status"] == "no_commit"
    (folder / "a.py").write_text("a = 1")
    snapshot = provenance.snapshot(folder)
    assert (snapshot.source["status"], snapshot.source["commit"], snapshot.source["branch"]) == (
        "no_commit",
        "",
        "main",
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "p").write_bytes(snapshot.patch)
    git(empty, "apply", str(tmp_path / "p"))
    assert (empty / "a.py").read_text() == "a = 1"


def test_no_repository_is_a_status(tmp_path: Path, git: Git) -> None:
    for folder in (tmp_path, tmp_path / "not there"):
        source = provenance.source(folder)
        assert source["status"] == "no_repository" and source["reason"] and provenance.patch(folder) == b""


def test_a_bare_repository_is_no_repository_to_measure_in(tmp_path: Path, git: Git, project: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(project), "bare")
    source = provenance.source(tmp_path / "bare")
    assert source["status"] == "no_repository" and "bare" in source["reason"]


def test_a_folder_of_another_owner_is_unsafe(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    source = provenance.source(project)
    assert source["status"] == "unsafe" and "safe.directory" in source["reason"]
    assert provenance.patch(project) == b""


def test_a_damaged_repository_is_a_status(project: Path) -> None:
    shutil.rmtree(project / ".git" / "objects")
    (project / ".git" / "objects").mkdir()
    source = provenance.source(project)
    assert source["status"] in ("error", "no_commit") and source["reason"]


@pytest.mark.parametrize("first", ["", "import git; "])
def test_no_git_on_path_is_a_status_before_and_after_gitpython_was_loaded(project: Path, first: str) -> None:
    code = f"""
{first}import os, pathlib
os.environ["PATH"] = ""
from campaign import provenance
source = provenance.source(pathlib.Path({str(project)!r}))
print(source["status"], "|", source["reason"], "|", provenance.patch(pathlib.Path({str(project)!r})))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "no_git | there is no git on PATH | b''"


def test_variables_of_a_git_hook_do_not_point_elsewhere(
    tmp_path: Path, project: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(project)
    plain = provenance.snapshot(project)
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/bin/true")
    assert provenance.snapshot(project) == plain


def test_a_changed_submodule_and_a_nested_repository_are_listed(tmp_path: Path, project: Path, git: Git) -> None:
    inner = tmp_path / "inner"
    shutil.copytree(project, inner)
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(project, "commit", "-qm", "with a submodule")
    assert not provenance.source(project)["dirty"]
    git(project / "sub", "commit", "-q", "--allow-empty", "-m", "moved on")
    shutil.copytree(inner, project / "nested")
    source = provenance.source(project)
    left = sorted(source["left_out"])
    assert source["status"] == "ok" and len(left) == 2
    assert left[0].startswith("nested/: a repository") and left[1].startswith("sub: a submodule")


def test_files_that_a_filter_rewrites_are_left_out_without_running_it(project: Path, git: Git, tmp_path: Path) -> None:
    (project / ".gitattributes").write_text("*.bin filter=lfs -text\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "attributes")
    with (tmp_path / "home" / ".gitconfig").open("a") as file:
        file.write('[filter "lfs"]\nclean = /bin/false\nsmudge = /bin/false\nrequired = true\n')
    (project / "weights.bin").write_bytes(b"other")
    source = provenance.source(project)
    assert source["status"] == "ok" and source["left_out"] == ["weights.bin: the git filter 'lfs' rewrites it"]


def test_files_marked_skip_worktree_are_not_deletions(project: Path, git: Git) -> None:
    git(project, "update-index", "--skip-worktree", "weights.bin")
    (project / "weights.bin").unlink()
    assert not provenance.source(project)["dirty"]


def test_an_unmerged_index_is_recorded_as_it_lies_in_the_tree(tmp_path: Path, project: Path, git: Git) -> None:
    git(project, "checkout", "-qb", "side")
    (project / "no_newline.txt").write_text("side\n")
    git(project, "commit", "-qam", "side")
    git(project, "checkout", "-q", "main")
    (project / "no_newline.txt").write_text("main\n")
    git(project, "commit", "-qam", "main")
    with pytest.raises(subprocess.CalledProcessError):
        git(project, "merge", "side")
    snapshot = provenance.snapshot(project)
    assert snapshot.source["status"] == "ok" and b"<<<<<<<" in snapshot.patch
    clean = applied(tmp_path, git, project, snapshot.patch)
    assert (clean / "no_newline.txt").read_bytes() == (project / "no_newline.txt").read_bytes()


def test_gitpython_is_imported_only_when_asked() -> None:
    code = "import sys, campaign.provenance; print('git' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"


def test_the_code_hash_follows_content_and_names_of_sources_only(project: Path) -> None:
    first = provenance.code_hash(project)
    assert first == provenance.code_hash(project) and len(first) == 64
    (project / "models" / "notes.txt").write_text("not code\n")
    (project / "models" / "__pycache__").mkdir()
    (project / "models" / "__pycache__" / "block.py").write_text("cache\n")
    (project / "elsewhere.py").write_text("not imported by a trial\n")
    assert provenance.code_hash(project) == first
    seen = {first}
    for name in ("models/new.py", "kernels/k.cpp", "kernels/k.cu", "conf/config.yaml"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("1\n")
        seen.add(provenance.code_hash(project))
    (project / "models" / "new.py").rename(project / "models" / "renamed.py")
    seen.add(provenance.code_hash(project))
    (project / "models" / "renamed.py").write_text("2\n")
    seen.add(provenance.code_hash(project))
    assert len(seen) == 7


def test_the_code_hash_does_not_raise_for_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "gone.py").symlink_to("nowhere")
    (tmp_path / "models" / "loop.py").symlink_to("loop.py")
    (tmp_path / "conf").write_text("a file, not a folder\n")
    assert len(provenance.code_hash(tmp_path)) == 64
    assert len(provenance.code_hash(tmp_path / "nowhere")) == 64


def test_packages_are_the_installed_distributions() -> None:
    from importlib.metadata import version

    found = provenance.packages()
    assert found["pytest"] == version("pytest") and list(found) == sorted(found)
