"""The untimed look at the arms before the first round: what they compute and what runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from campaign.copies import Checkout
from campaign.errors import TrialFailed
from campaign.executor.process import TrialProcess, build_request
from campaign.records import Arm, ArmProbe, Plan
from campaign.records.plan import REFERENCED

AT_ONCE = 2  # processes side by side; nothing is timed here


def run_probe(
    plan: Plan, root: Path, folder: Path, say: Callable[[str], None], places: Mapping[str, Checkout] | None = None
) -> tuple[dict[str, ArmProbe], dict[str, Path]]:
    """Probe the arms that the parity claim needs, each in a fresh process, in `root` or in its arm's own of `places`.

    Returns the probes and the files of step-1 gradients, by role: control, treatment and, where the claim is judged by
    it, reference (control's workload, quantization off, reference kernels) and for rounding also exact (treatment's,
    quantization off). Stops after the first pair in which an arm failed.
    """
    wanted: list[tuple[str, Arm, str]] = [("control", plan.control, ""), ("treatment", plan.treatment, "")]
    if plan.hypothesis.parity.kind in REFERENCED:
        wanted.append(("reference", plan.control, "reference"))
    if plan.hypothesis.parity.kind == "rounding":
        wanted.append(("exact", plan.treatment, "exact"))
    probes: dict[str, ArmProbe] = {}
    files: dict[str, Path] = {}
    for first in range(0, len(wanted), AT_ONCE):
        batch = wanted[first : first + AT_ONCE]
        say(" and ".join(role for role, _, _ in batch))
        files |= {role: folder / f"{role}.npz" for role, _, _ in batch}
        found = _probe_together(plan, root, folder, batch, files, places or {})
        if any(probe.status == "out_of_memory" for probe in found.values()):
            # Side by side they may not fit; only an arm that does not fit alone has failed.
            for one in batch:
                found |= _probe_together(plan, root, folder, [one], files, places or {})
        probes |= found
        if any(probe.status != "ok" for probe in probes.values()):
            break
    return probes, {role: path for role, path in files.items() if path.exists()}


def _probe_together(
    plan: Plan,
    root: Path,
    folder: Path,
    batch: list[tuple[str, Arm, str]],
    files: Mapping[str, Path],
    places: Mapping[str, Checkout],
) -> dict[str, ArmProbe]:
    protocol = plan.protocol
    variables = {**plan.control.environment, **plan.treatment.environment}
    own = {role: places[arm.role] for role, arm, _ in batch if arm.role in places}  # a reference is control's code
    roots = {role: own[role].root if role in own else root for role, _, _ in batch}
    stages: list[tuple[str, float, dict[str, dict[str, Any]]]] = [
        (
            "build",
            protocol.start_deadline_seconds,
            {role: build_request(arm, roots[role], variant, variables, probing=True) for role, arm, variant in batch},
        ),
        (
            "probe",
            protocol.reply_deadline_seconds,
            {role: {"steps": protocol.probe_steps, "gradients": str(files[role])} for role, _, _ in batch},
        ),
        # A reference is compared, never predicted: nobody asks what it was compiled to.
        ("static", protocol.start_deadline_seconds, {role: {} for role, _, variant in batch if not variant}),
        ("copies", protocol.reply_deadline_seconds, {role: place.question() for role, place in own.items()}),
        ("exit", protocol.reply_deadline_seconds, {role: {} for role, _, _ in batch}),
    ]
    done: dict[str, ArmProbe] = {}
    with ExitStack() as stack:
        alive = {
            role: stack.enter_context(TrialProcess(replace(arm, role=role), folder / f"{role}.log", own.get(role)))
            for role, arm, _ in batch
        }
        for command, deadline, arguments in stages:
            for step in (_send, _receive):
                for role, process in list(alive.items()):
                    if role not in arguments:
                        continue
                    try:
                        reply = step(process, command, deadline, arguments[role])
                    except TrialFailed as failure:
                        done[role] = ArmProbe(
                            role, failure.reason, message=failure.message, remedy=failure.remedy, log=failure.log
                        )
                        del alive[role]
                        continue
                    if reply and command == "probe":
                        done[role] = _probed(process, reply)
                    elif reply and command == "static":
                        facts = {**done[role].facts, "static_target": reply["runs_on"]}
                        done[role] = replace(done[role], static=tuple(reply["rows"]), facts=facts)
    return done


def _send(process: TrialProcess, command: str, deadline: float, arguments: dict[str, Any]) -> None:
    process.send(command, **arguments)


def _receive(process: TrialProcess, command: str, deadline: float, arguments: dict[str, Any]) -> dict[str, Any]:
    reply = process.receive(command, deadline)
    if command == "copies":
        process.refuse(reply["foreign"])
    return reply


def _probed(process: TrialProcess, reply: Mapping[str, Any]) -> ArmProbe:
    return ArmProbe(
        arm=process.arm.role,
        status="ok",
        losses=tuple(reply["losses"]),
        gradient_norms=tuple(reply["gradient_norms"]),
        gradients_sha256=reply["gradients_sha256"],
        later_gradients_sha256=reply["later_gradients_sha256"],
        counters=reply["counters"],
        facts=reply["facts"],
        log=str(process.log),
    )
