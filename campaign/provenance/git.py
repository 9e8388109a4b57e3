"""git through GitPython, with what can go wrong sorted into a few statuses."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import ModuleType

from campaign.errors import CampaignError

OK = "ok"
NO_GIT = "no_git"
NO_REPOSITORY = "no_repository"
NO_COMMIT = "no_commit"
UNSAFE = "unsafe"
ERROR = "error"

# Variables that git exports to its hooks and that would point our commands at another repository or index.
_INHERITED = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_DIFF_OPTS",
    "GIT_EXTERNAL_DIFF",
)
# Settings of the user's that change what the commands below print or run.
_SETTINGS = {
    "core.quotePath": "false",
    "core.fsmonitor": "false",
    "core.safecrlf": "false",
    "diff.suppressBlankEmpty": "false",
    "filter.lfs.clean": "",
    "filter.lfs.smudge": "",
    "filter.lfs.process": "",
    "filter.lfs.required": "false",
}


class GitFailed(CampaignError):
    """A git command failed; `status` is one of this module's, `reason` a sentence. Nearly every caller knows more of
    it than git does; where none did, it is bad input like a damaged index."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason, remedy="git status, and git fsck where that fails too")
        self.status = status
        self.reason = reason


def _gitpython() -> ModuleType:
    """GitPython. Its import runs `git version` and raises where there is no git."""
    try:
        import git
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):
            raise GitFailed(NO_GIT, f"GitPython is not installed ({error})") from error
        raise GitFailed(NO_GIT, "there is no git on PATH") from error
    return git


class Repository:
    """The repository around `folder`. Raises GitFailed when there is none that can be read."""

    def __init__(self, folder: Path) -> None:
        # GitPython runs git in the working directory, another repository maybe, when it cannot enter the folder.
        if not folder.is_dir() or not os.access(folder, os.X_OK):
            raise GitFailed(NO_REPOSITORY, f"{folder} is not a folder that can be entered")
        self._git = _gitpython()
        self.top = folder
        self.top = Path(os.fsdecode(self.run("rev-parse", "--show-toplevel").rstrip(b"\n")))
        self.objects = self._at("objects")

    def _at(self, name: str) -> Path:
        return self.top / os.fsdecode(self.run("rev-parse", "--git-path", name).rstrip(b"\n"))

    @property
    def index(self) -> Path:
        """The user's index file, which may not exist yet."""
        return self._at("index")

    def run(self, *arguments: str, environment: dict[str, str] | None = None, feed: bytes | None = None) -> bytes:
        """The bytes that `git ARGUMENTS` prints, run in the repository's top folder. Raises GitFailed."""
        unset = [part for name in _INHERITED if name in os.environ for part in ("-u", name)]
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [*(["env", *unset] if unset else []), "git", *settings, *arguments]
        quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        failed = self._git.exc
        try:
            with tempfile.TemporaryFile() as fed:
                fed.write(feed or b"")
                fed.seek(0)
                return bytes(
                    self._git.Git(self.top).execute(
                        command,
                        istream=fed,
                        env={**quiet, **(environment or {})},
                        stdout_as_string=False,
                        strip_newline_in_stdout=False,
                    )
                )
        except failed.GitCommandNotFound as error:
            raise GitFailed(NO_GIT, "there is no git on PATH") from error
        except failed.GitCommandError as error:
            raise _sorted(error.stderr, arguments) from error
        except (OSError, ValueError) as error:
            raise GitFailed(ERROR, f"git {arguments[0]}: {error}") from error


def _sorted(stderr: object, arguments: tuple[str, ...]) -> GitFailed:
    text = stderr.decode("utf-8", "replace") if isinstance(stderr, bytes) else str(stderr)
    text = text.strip().removeprefix("stderr:").strip().strip("'").strip()
    if "dubious ownership" in text:
        return GitFailed(UNSAFE, "the repository belongs to another user; git config --global --add safe.directory DIR")
    if "not a git repository" in text:
        return GitFailed(NO_REPOSITORY, "the project is not inside a git repository")
    if "must be run in a work tree" in text:
        return GitFailed(NO_REPOSITORY, "the git repository is bare: it has no files checked out")
    line = text.splitlines()[0] if text else "no message"
    return GitFailed(ERROR, f"git {arguments[0]} failed: {line}")
