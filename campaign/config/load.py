"""One job from its overrides, everything resolved and checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from campaign.config.claimed import check_claimed
from campaign.config.compose import Composer, composer_for, group_choices
from campaign.config.edits import settings
from campaign.config.explain import leaves
from campaign.config.hypothesis import hypothesis_for
from campaign.config.job import Job
from campaign.config.overrides import check_overrides
from campaign.config.parameters import parameters_for
from campaign.config.protocol import protocol_for
from campaign.config.schema import number, section
from campaign.config.workload import check_workload, same_shape
from campaign.destination import destination_of
from campaign.discovery import campaign_folder
from campaign.errors import BadInput, DoesNotFit, nearest
from campaign.records import Protocol

WORKLOAD_KEYS = "campaign run --cfg job -p workload    (shows the workload's keys)"


def load(root: Path, overrides: Sequence[str], *, json: bool = False, searchpath: Sequence[str] = ()) -> Job:
    """The job that `overrides` ask for in the project at `root`.

    Raises BadInput or UnknownName (exit code 2) for anything that could not be run, DoesNotFit where that lies between
    the hypothesis and the workload; no process was started.
    """
    composer = composer_for(root.resolve(), tuple(searchpath))
    check_overrides(overrides, composer, sweep=False)
    composed = composer.compose(overrides)
    values = composed.values
    choice = composed.choices.get("hypothesis")
    parameters = parameters_for(values, choice, overrides, composer)
    workload = _workload(values, composed.choices, overrides, composer)
    protocol = protocol_for(values.get("protocol"), workload["device"])
    _check_clock(protocol, workload)
    hypothesis = hypothesis_for(values.get("hypothesis"), choice, composer, str(composed.choices["workload"]))
    check_claimed(hypothesis, protocol, workload)
    campaign = section(values.get("campaign"), "campaign", ("name",))["name"]
    if not isinstance(campaign, str):
        raise BadInput(f"campaign.name = {campaign!r}: must be a text", remedy=f"campaign.name='\"{campaign}\"'")
    campaign_folder(root, campaign)
    wait = section(values.get("lease"), "lease", ("wait_seconds",))["wait_seconds"]
    number(wait, "lease.wait_seconds", "seconds, 0 or more", isinstance(wait, int | float) and wait >= 0)
    asked = values.get("json", False)
    if not isinstance(asked, bool):
        raise BadInput(f"json = {asked!r}: must be true or false", remedy="--json")
    job = Job(
        root=root.resolve(),
        campaign=campaign,
        workload=str(composed.choices["workload"]),
        device=workload["device"],
        hypothesis=hypothesis,
        protocol=protocol,
        tracking=destination_of(values.get("tracking")),
        lease_wait_seconds=float(wait),
        overrides=tuple(overrides),
        json=json or asked,
        composer=composer,
        parameters=parameters,
    )
    _check_fits(job, workload)
    return job


def _check_fits(job: Job, workload: dict[str, Any]) -> None:
    """An edit of a key that is not there is said before anything starts. Raises DoesNotFit."""
    name, edit = job.hypothesis.name, job.hypothesis.edit
    try:
        job.arm("solo", name, [(name, edit)])
    except BadInput as error:
        known = {*leaves(workload, "workload")}
        known |= {key.rsplit(".", depth)[0] for key in known for depth in range(1, key.count(".") + 1)}
        for setting in settings(edit, where=f"hypothesis {name}"):
            words = setting.key.split(".")
            paths = [".".join(words[: depth + 1]) for depth in range(len(words))]
            if missing := next((path for path in paths if path not in known), None):
                base, _, last = missing.rpartition(".")
                near = nearest(last, [key.rpartition(".")[2] for key in known if key.rpartition(".")[0] == base])
                hint = f"; did you mean '{base}.{near}'?" if near else ""
                said = f"hypothesis {name} sets {missing}, which this workload does not have{hint}"
                raise DoesNotFit(said, remedy=WORKLOAD_KEYS) from error
        raise DoesNotFit(error.message, remedy=error.remedy) from error


def _workload(
    values: dict[str, Any], choices: dict[str, str | None], overrides: Sequence[str], composer: Composer
) -> dict[str, Any]:
    workload = check_workload(values.get("workload"), choices.get("workload"), composer.options("workload"))
    for group in ("hypothesis", "protocol"):
        path = composer.file(group, str(choices.get(group)))
        if path is not None and "workload" in OmegaConf.load(path):
            raise BadInput(
                f"{path} sets `workload`: that would change control too",
                remedy="put the change in hypothesis.edit.overrides, or make another conf/workload file",
            )
    # Where no override names a key of it, it is what its file says, and composing that again would show the same.
    touched = any(text.lstrip("+~").startswith("workload.") for text in overrides)
    same_shape(workload, composer.compose(group_choices(overrides)).values["workload"] if touched else workload)
    return workload


def _check_clock(protocol: Protocol, workload: dict[str, Any]) -> None:
    """Process CPU time stands for time only with one thread that never waits (measurement protocol, `clocks`)."""
    threads = workload.get("threads", 1)
    if protocol.clock == "cpu" and (workload["device"] != "cpu" or threads != 1):
        what = f"device {workload['device']}" if workload["device"] != "cpu" else f"{threads} threads"
        raise BadInput(
            f"protocol.clock = 'cpu' with {what}: CPU time may decide for one thread on the CPU only",
            remedy="protocol.clock=wall",
        )
