"""Every error that `campaign` raises on purpose, as one tree.

    CampaignError                 .exit_code, .remedy: what to type next
    ├── BadInput             2    a value the person gave cannot be used; nothing was started
    │   ├── UnknownName      2    a misspelt key, group, verb, campaign or decision; names the nearest
    │   ├── DoesNotFit       2    a hypothesis about something that the chosen workload does not have
    │   └── NotAProject      2    no campaign project here or above
    ├── LedgerDamaged        2    a record in the middle cannot be trusted; names the line
    ├── LedgerUnwritable     3    the disk refuses a line; nothing after the last one is recorded
    ├── StackMoved           3    the stack kept moving while it was measured as a whole
    ├── LeaseHeld            2    another campaign is measuring on the device
    ├── TrialFailed          3    a trial raised, died, hung or spoke nonsense; .reason is a reason code
    ├── Unavailable          3    this machine cannot run the arm; never a guess in its place
    └── TrackingFailed       0    MLflow is missing or refused; a warning, the decision already stands

Exit codes: 0 a decision was made (whatever it is); 1 `campaign try` found the change slower; 2 bad input, nothing
started; 3 no decision (invalid or unavailable), or `campaign doctor` called the machine unfit; 4 a sweep in which some
hypothesis failed; 5 `campaign doctor` called the machine doubtful; 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable

EXIT_DECIDED = 0
EXIT_SLOWER = 1
EXIT_BAD_INPUT = 2
EXIT_NO_DECISION = 3
EXIT_SWEEP_FAILED = 4
EXIT_DOUBTFUL = 5
EXIT_INTERRUPTED = 130


class CampaignError(Exception):
    """An error meant for the person reading it: what is wrong, and in `remedy` what to type next."""

    exit_code = EXIT_BAD_INPUT

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  try: {self.remedy}" if self.remedy else self.message


class BadInput(CampaignError):
    """A value the person gave cannot be used."""


class UnknownName(BadInput):
    """A name that does not exist; the message carries the nearest ones that do."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, remedy: str = "") -> None:
        known = sorted(known)
        near = nearest(name, known)
        hint = f"; did you mean {near!r}?" if near else ""
        listed = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
        super().__init__(f"there is no {kind} {name!r}{hint} (there is: {listed or 'none'})", remedy=remedy)
        self.name = name
        self.near = near


class DoesNotFit(BadInput):
    """A hypothesis is about something that the chosen workload does not have."""


class NotAProject(BadInput):
    """No folder here or above holds `conf/config.yaml`."""


class LedgerDamaged(CampaignError):
    """A ledger line that is not the last cannot be read or breaks the chain."""

    def __init__(self, path: str, line: int, why: str) -> None:
        import shlex  # only a person whose ledger is damaged waits for it

        cut = f"head -n {line - 1} {shlex.quote(path)}"
        super().__init__(
            f"{path}, line {line}: {why}",
            remedy=f"restore the file from a copy, or cut it before line {line} by hand: {cut}",
        )
        self.line = line


class LedgerUnwritable(CampaignError):
    """The disk refuses a line or a raw file; nothing that follows would be recorded, so the run ends."""

    exit_code = EXIT_NO_DECISION


class StackMoved(CampaignError):
    """Other processes moved the stack each time that it was measured as a whole."""

    exit_code = EXIT_NO_DECISION


class LeaseHeld(CampaignError):
    """Another campaign holds the device, and the wait allowed for it is over."""


class TrialFailed(CampaignError):
    """One trial ended without its answer. `reason` is one of `records.TRIAL_FAILURES`."""

    exit_code = EXIT_NO_DECISION

    def __init__(self, reason: str, message: str, *, arm: str, log: str, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.reason = reason
        self.arm = arm
        self.log = log


class Unavailable(CampaignError):
    """The device, compiler or package that an arm needs is not on this machine."""

    exit_code = EXIT_NO_DECISION


class TrackingFailed(CampaignError):
    """MLflow could not be written; the ledger has the decision and `campaign sync` repeats the mirror."""

    exit_code = EXIT_DECIDED


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest in spelling to `name`, or None when nothing is close."""
    import difflib  # only a person who misspelt something waits for it

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.55)
    return close[0] if close else None
