"""Edits of code as patches, from real repositories."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign import provenance
from campaign.errors import BadInput
from campaign.provenance import Named, change_of, check_applies, commit_of, worktree
from campaign.provenance.snapshot import LEFT_OUT_SHOWN
from campaign.records import Edit
from tests.provenance.trees import change, contents, state

Git = Callable[..., str]


def head(git: Git, folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD").strip()


def branch(git: Git, folder: Path, name: str, act: Callable[[], object]) -> str:
    """A branch with what `act` does to the files as one commit, made from HEAD, which is checked out again after."""
    before = git(folder, "rev-parse", "--abbrev-ref", "HEAD").strip()
    git(folder, "switch", "-q", "-c", name)
    act()
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", name)
    made = head(git, folder)
    git(folder, "switch", "-q", before)
    return made


def rewrite(project: Path, line: int, text: str) -> None:
    block = project / "models" / "block.py"
    lines = block.read_text().splitlines()
    lines[line] = text
    block.write_text("\n".join(lines) + "\n")


def patch_of(git: Git, project: Path, name: str, line: int, text: str) -> Named:
    """The patch of a branch that changes one line."""
    branch(git, project, name, lambda: rewrite(project, line, text))
    return Named(name, change_of(project, Edit(ref=name), head(git, project)).patch)


def test_a_branch_is_what_it_adds_since_it_left_head(project: Path, git: Git) -> None:
    start = head(git, project)
    tip = branch(git, project, "faster", lambda: change(project))
    (project / "later.txt").write_text("HEAD went on\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "later")
    before = (state(project), contents(project))
    found = change_of(project, Edit(ref="faster"), head(git, project))
    assert (found.about["kind"], found.about["written"]) == ("ref", "faster")
    assert (found.about["commit"], found.about["base"], found.about["left_out"]) == (tip, start, [])
    assert "later.txt" not in found.files and {"weights.bin", "new/kernel.py", "new/link"} <= set(found.files)
    with worktree(project, head(git, project), found.patch) as tree, worktree(project, tip) as whole:
        assert contents(tree) == {**contents(whole), "later.txt": contents(project)["later.txt"]}
    assert (state(project), contents(project)) == before


def test_a_dirty_tree_is_its_snapshot_untracked_files_among_it(project: Path, git: Git) -> None:
    change(project)
    wanted, before = contents(project), state(project)
    found = change_of(project, Edit(worktree="dirty"), head(git, project))
    assert found.patch == provenance.snapshot(project).patch
    assert "new/kernel.py" in found.files and found.about["kind"] == "worktree"
    assert (state(project), contents(project)) == (before, wanted)
    with worktree(project, head(git, project), found.patch) as tree:
        assert contents(tree) == wanted
    assert contents(project) == wanted and state(project)[".git/index"] == before[".git/index"]


def test_a_patch_file_is_taken_as_git_diff_wrote_it(project: Path, git: Git) -> None:
    rewrite(project, 3, "three")
    (project / "fix.diff").write_text(git(project, "diff", "--binary"))
    git(project, "checkout", "-q", "--", "models")
    found = change_of(project, Edit(patch="fix.diff"), head(git, project))
    assert found.files == ("models/block.py",)
    with worktree(project, head(git, project), found.patch) as tree:
        assert (tree / "models" / "block.py").read_text().splitlines()[3] == "three"


@pytest.mark.parametrize(
    ("edit", "said", "remedy"),
    [
        (Edit(ref="--upload-pack=touch"), "not starting with '-'", "edit.ref=NAME"),
        (Edit(ref="main\nmain"), "control characters", "edit.ref=NAME"),
        (Edit(ref="nothing-of-this-name"), "no branch, tag or commit", "git branch --all"),
        (Edit(ref="HEAD"), "adds nothing", "git log"),
        (Edit(patch="-R"), "not starting with '-'", "edit.patch=NAME"),
        (Edit(patch="none.diff"), "cannot be read: it is no file", "git diff --binary"),
        (Edit(patch="models"), "cannot be read: it is no file", "git diff --binary"),
        (Edit(patch="no_newline.txt"), "is no patch", "git diff --binary"),
        (Edit(worktree="dirty"), "nothing to measure", "change a file"),
    ],
)
def test_what_is_no_edit_is_refused_with_the_next_command(
    project: Path, git: Git, edit: Edit, said: str, remedy: str
) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        change_of(project, edit, head(git, project))
    assert remedy in caught.value.remedy


def test_outside_a_repository_and_before_the_first_commit_the_next_command_makes_one(tmp_path: Path, git: Git) -> None:
    with pytest.raises(BadInput, match="not inside a git repository") as caught:
        provenance.head(tmp_path)
    assert caught.value.remedy.startswith("git init")
    git(tmp_path, "init", "-q")
    with pytest.raises(BadInput, match="no commit yet") as caught:
        provenance.head(tmp_path)
    assert caught.value.remedy.startswith("git add")


def test_a_ref_is_a_value_even_where_a_branch_is_named_like_an_option(project: Path, git: Git) -> None:
    made = branch(git, project, "work", lambda: rewrite(project, 3, "three"))
    git(project, "update-ref", "refs/heads/--all", made)
    with pytest.raises(BadInput, match="not starting with '-'"):
        commit_of(project, "--all", "edit.ref")
    assert commit_of(project, "refs/heads/--all", "edit.ref") == made


def test_histories_without_a_common_commit_say_so_and_a_shallow_clone_how_to_get_it(
    tmp_path: Path, project: Path, git: Git
) -> None:
    git(project, "switch", "-q", "--orphan", "other")
    git(project, "commit", "-q", "--allow-empty", "-m", "other")
    with pytest.raises(BadInput, match="no common commit") as caught:
        change_of(project, Edit(ref="main"), head(git, project))
    assert "git branch" in caught.value.remedy
    git(project, "switch", "-q", "main")
    branch(git, project, "faster", lambda: rewrite(project, 3, "three"))
    git(project, "commit", "-q", "--allow-empty", "-m", "later")
    shallow = tmp_path / "shallow"
    git(project, "clone", "-q", "--depth=1", "--no-single-branch", project.as_uri(), str(shallow))
    with pytest.raises(BadInput, match="in this shallow clone") as caught:
        change_of(shallow, Edit(ref="origin/faster"), head(git, shallow))
    git(shallow, *caught.value.remedy.split()[1:])
    assert change_of(shallow, Edit(ref="origin/faster"), head(git, shallow)).files == ("models/block.py",)


def test_patches_that_touch_different_lines_stand_on_each_other(project: Path, git: Git) -> None:
    patches = [patch_of(git, project, "one", 3, "three"), patch_of(git, project, "two", 20, "twenty")]
    before = state(project)
    check_applies(project, head(git, project), patches, campaign="c")
    assert state(project) == before
    with worktree(project, head(git, project), *(one.patch for one in patches)) as tree:
        lines = (tree / "models" / "block.py").read_text().splitlines()
    assert (lines[3], lines[20]) == ("three", "twenty")


def test_a_patch_that_clashes_names_the_file_and_the_accepted_edit_it_clashes_with(project: Path, git: Git) -> None:
    first, second = patch_of(git, project, "first", 20, "twenty"), patch_of(git, project, "second", 3, "three")
    third = patch_of(git, project, "third", 3, "another three")
    with pytest.raises(BadInput, match=r"third: .*second, accepted before it, changes models/block\.py") as caught:
        check_applies(project, head(git, project), [first, second, third], campaign="c")
    assert "campaign stack --campaign c --revert second" in caught.value.remedy


def test_a_patch_that_head_holds_already_or_contradicts_is_told_apart(project: Path, git: Git) -> None:
    patch = patch_of(git, project, "work", 3, "three")
    rewrite(project, 3, "other")
    git(project, "commit", "-qam", "contradicts")
    with pytest.raises(BadInput, match=r"does not apply to HEAD .*models/block\.py differs"):
        check_applies(project, head(git, project), [patch], campaign="c")
    rewrite(project, 3, "three")
    git(project, "commit", "-qam", "merged")
    with pytest.raises(BadInput, match=r"in HEAD .* already: models/block\.py"):
        check_applies(project, head(git, project), [patch], campaign="c")


def test_secrets_stay_out_of_a_branchs_patch_and_a_patch_file_with_one_is_refused(project: Path, git: Git) -> None:
    def act() -> None:
        rewrite(project, 3, "three")
        (project / ".env").write_text("TOKEN=hunter2\n")

    branch(git, project, "work", act)
    found = change_of(project, Edit(ref="work"), head(git, project))
    assert b"hunter2" not in found.patch and found.files == ("models/block.py",)
    assert found.about["left_out"] == [".env: looks like a secret"]
    (project / "fix.diff").write_text(git(project, "diff", "main", "work"))
    with pytest.raises(BadInput, match=r"changes \.env, which looks like a secret"):
        change_of(project, Edit(patch="fix.diff"), head(git, project))


def test_what_a_patch_of_the_tree_cannot_hold_is_refused_and_not_measured_without(
    tmp_path: Path, project: Path, git: Git
) -> None:
    inner = tmp_path / "inner"
    shutil.copytree(project, inner)
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(project, "commit", "-qm", "with a submodule")
    (project / "sub" / "models" / "block.py").write_text("changed inside\n")
    with pytest.raises(BadInput, match="cannot hold a change: sub: a submodule") as refused:
        change_of(project, Edit(worktree="dirty"), head(git, project))
    assert refused.value.remedy.startswith("git -C sub status")  # `commit -a` outside would commit nothing of it

    def act() -> None:
        git(project / "sub", "commit", "-qam", "moved on")

    branch(git, project, "moves-the-submodule", act)
    git(project, "submodule", "--quiet", "update")
    found = change_of(project, Edit(ref="moves-the-submodule"), head(git, project))
    assert found.files == ("sub",)
    for patches, text in (((), "line 0"), ((found.patch,), "changed inside")):
        with worktree(project, head(git, project), *patches) as tree:
            assert (tree / "sub" / "models" / "block.py").read_text().splitlines()[0] == text


def test_a_git_lfs_file_of_a_branch_comes_with_its_content_and_a_changed_one_is_refused(
    project: Path, git: Git
) -> None:
    content = bytes(range(256)) * 8
    sha256 = hashlib.sha256(content).hexdigest()

    def act() -> None:
        (project / ".gitattributes").write_text("*.big filter=lfs diff=lfs merge=lfs -text\n")
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(content)}\n"
        (project / "data.big").write_text(pointer)

    branch(git, project, "data", act)
    stored = project / ".git" / "lfs" / "objects" / sha256[:2] / sha256[2:4]
    stored.mkdir(parents=True)
    (stored / sha256).write_bytes(content)
    found = change_of(project, Edit(ref="data"), head(git, project))
    with worktree(project, head(git, project), found.patch) as tree:
        assert (tree / "data.big").read_bytes() == content
    git(project, "merge", "-q", "data")
    (project / "data.big").write_bytes(content[::-1])
    with pytest.raises(BadInput, match=r"cannot hold a change: data\.big: the git filter 'lfs'"):
        change_of(project, Edit(worktree="dirty"), head(git, project))


def test_a_tree_with_conflicts_of_a_merge_is_refused_with_the_file(project: Path, git: Git) -> None:
    tip = branch(git, project, "other", lambda: rewrite(project, 2, "theirs"))
    rewrite(project, 2, "ours")
    git(project, "commit", "-qam", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(project, "merge", tip)
    with pytest.raises(BadInput, match=r"models/block\.py has conflicts of a merge") as refused:
        provenance.tree_change(project)
    assert "git add -- models/block.py" in refused.value.remedy


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("to", ["a link", "a file"])
def test_a_folder_that_became_a_link_or_a_file_is_a_change_like_another(
    project: Path, git: Git, to: str, staged: bool
) -> None:
    for place in (project / "data", project / "other"):
        place.mkdir()
        (place / "x").write_text("1\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "data")
    shutil.rmtree(project / "data")
    if to == "a link":
        (project / "data").symlink_to("other")
    else:
        (project / "data").write_text("2\n")
    if staged:
        git(project, "add", "-A")
    wanted = contents(project)
    found = provenance.tree_change(project)
    with worktree(project, head(git, project), found.patch) as tree:
        assert contents(tree) == wanted


def test_a_change_that_must_not_be_lacking_is_named_however_many_others_are_left_out(project: Path, git: Git) -> None:
    (project / ".gitattributes").write_text("*.nb filter=foo\n")
    (project / "m.nb").write_text("1\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "filtered")
    (project / "m.nb").write_text("2\n")
    for number in range(LEFT_OUT_SHOWN + 1):
        (project / f"k{number}.key").touch()
    with pytest.raises(BadInput, match=r"m\.nb: the git filter 'foo' rewrites it"):
        provenance.tree_change(project)
