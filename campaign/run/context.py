"""Jobs that a person did not type: what a campaign measures by, and its hypotheses again, from recorded commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from campaign.config import Job, jobs, load
from campaign.config.protocol import protocol_for
from campaign.errors import BadInput
from campaign.ledger import open_ledger

PLACE = ("workload", "protocol", "tracking", "hydra")  # what a campaign's later questions take over from its runs


def study_job(root: Path, campaign: str, overrides: Sequence[str], json: bool = False) -> Job:
    """A job on the workload and under the protocol that `campaign` measures by, for a question about several edits.

    They are taken from the command of the newest plan that could decide on an edit (else of the newest one); what
    `overrides` say wins over that. The job's own hypothesis means nothing. Raises BadInput or UnknownName, as a run.
    """
    for text in overrides:
        if key_of(text).split(".", 1)[0] == "hypothesis":
            raise BadInput(
                f"{text!r}: this is about the edits of the stack, or those named; no hypothesis is chosen",
                remedy="leave it out, or campaign run " + shlex.quote(text),
            )
    words = [*left_over(recorded_words(root, campaign), overrides), *overrides, f"campaign.name={campaign}"]
    (job,) = jobs(root, [*words, "--json"] if json else words)
    return plain(job)


def plain(job: Job) -> Job:
    """`job` without its hypothesis: what its file says of the protocol (an A/A null has looks of its own) is not what a
    question about the stack is measured by. The hypothesis in it means nothing any more."""
    gone = ("hypothesis", job.hypothesis.name)
    left = tuple(text for text in job.overrides if key_of(text).split(".", 1)[0] not in gone)
    protocol = job.composer.compose([*left, "~hypothesis"]).values["protocol"]
    return replace(job, overrides=left, protocol=protocol_for(protocol, job.device))


def recorded_words(root: Path, campaign: str) -> list[str]:
    """The words about workload and protocol in the command that `study_job` goes by; none before the first plan."""
    with open_ledger(root, campaign, writable=False) as ledger:
        plans = [entry.body for entry in ledger.store.entries({"registered"}, verify=False)]
    if not plans:
        return []

    def rank(place: int) -> tuple[bool, int]:
        plan = plans[place]
        return plan["protocol"]["decisive"] and not plan["hypothesis"].get("null", False), place

    return of_command(plans[max(range(len(plans)), key=rank)]["command"], PLACE)


def hypothesis_job(job: Job, name: str, own: Sequence[str] = ()) -> Job:
    """The job that decides on hypothesis `name` with its `own` words (parameters, `hypothesis.*`) where `job` measures.

    Raises BadInput or UnknownName, as a run.
    """
    words = [*job.overrides, f"hypothesis={name}", *own]
    return load(job.root, words, json=job.json, searchpath=job.composer.searchpath)


def own_words(command: str, name: str) -> list[str]:
    """The words of a run's command that say which edit it was: the hypothesis's parameters, and keys of its node."""
    return [word for word in of_command(command, (name, "hypothesis")) if key_of(word) != "hypothesis"]


def of_command(command: str, groups: Iterable[str]) -> list[str]:
    """The overrides in a command whose key lies in one of `groups`, in order."""
    wanted = set(groups)
    return [word for word in shlex.split(command) if "=" in word and key_of(word).split(".", 1)[0] in wanted]


def left_over(recorded: Sequence[str], given: Sequence[str]) -> list[str]:
    """`recorded` without what `given` says anew: the same key, or keys of a group whose option it chooses."""
    keys = {key_of(text) for text in given}
    return [text for text in recorded if not keys & {key_of(text), key_of(text).split(".", 1)[0]}]


def key_of(text: str) -> str:
    """The key of an override: 'workload.sleep' of '+workload.sleep=0.1'."""
    return text.lstrip("+~").split("=", 1)[0]
