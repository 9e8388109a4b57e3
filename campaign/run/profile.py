"""Both arms of a hypothesis under torch.profiler, one after the other, and what differs between their traces.

It answers where time goes and whether the edit changed what ran. It is no measurement: a profiled step is slower than
a step, each arm runs once, and nothing in the line that is written has a step's time in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from campaign.config import Job
from campaign.config.claims import family_rules
from campaign.diagnosis.compare import compare
from campaign.diagnosis.found import EVIDENCE, Comparison
from campaign.diagnosis.question import Question
from campaign.errors import TrialFailed, Unavailable
from campaign.executor.profiles import Profiled, run_profile
from campaign.ledger import Ledger
from campaign.records import Arm
from campaign.report.comparison_text import comparison_page
from campaign.report.diagnosis_json import comparison_json
from campaign.run.declare import check_place, compose_arms
from campaign.run.recorded import Say, append, mirror, pages, stamp_here
from campaign.run.trees import places
from campaign.traces import Timeline, open_profile

STEPS = 5


@dataclass(frozen=True)
class Compared:
    """What one profile came to: its line in the ledger, and the comparison of its two traces. `traces` are their files
    by role."""

    id: str
    campaign: str
    body: dict[str, Any]
    comparison: Comparison
    traces: dict[str, Path]


def profile(job: Job, ledger: Ledger, steps: int, say: Say) -> Compared:
    """Trace `steps` whole steps of control and of treatment, each in a fresh process, keep both traces beside the
    ledger, write the line, mirror it. The device's lease is the caller's.

    Raises BadInput where the arms cannot be composed; Unavailable where they run nothing that torch.profiler sees;
    TrialFailed, the trial's log kept beside the ledger.
    """
    check_place(job, ledger)
    arms = compose_arms(job, ledger)
    variables = {**arms.control.environment, **arms.treatment.environment}
    both = (arms.control, arms.treatment)
    with tempfile.TemporaryDirectory(prefix="campaign-profile-") as name, places(job.root, ledger, both) as where:
        folder, made = Path(name), {}
        for arm in both:
            say(f"profiling {arm.name}: {steps} steps")
            try:
                made[arm.role] = run_profile(
                    arm,
                    variables,
                    job.root,
                    folder,
                    job.protocol,
                    steps,
                    warmup=job.protocol.warmup_minimum_steps,
                    place=where.get(arm.role),
                )
            except TrialFailed as failure:
                raise _with_log(ledger, failure) from failure
        with _opened(job, arms.control, arms.treatment, made) as (before, after):
            question = Question(rules=family_rules(job.root))
            found = compare(before, after, question, question, job.hypothesis.name)
        found = replace(found, speedup_command=job.command)
        body = _body(job, ledger, (arms.control, arms.treatment), arms.stack, made)
    forms = {
        "json": lambda: comparison_json(found),
        "md": lambda: comparison_page(found, "md"),
        "html": lambda: comparison_page(found, "html"),
    }
    body["documents"] = pages(ledger, "comparison", forms, say)
    ledger.stamp = stamp_here(job.root, job.device, ledger)
    id = append(ledger, "profile", job.hypothesis.name, body)
    mirror(ledger, [id], job.tracking, say)
    return Compared(id, job.campaign, body, found, {role: ledger.path(body[role]["raw"]) for role in made})


@contextmanager
def _opened(job: Job, control: Arm, treatment: Arm, made: dict[str, Profiled]) -> Iterator[list[Timeline]]:
    """Both traces as they are read, called by their arms. Raises Unavailable for one without any work in it."""
    with ExitStack() as stack:
        found = []
        for arm in (control, treatment):
            trace = open_profile(made[arm.role].trace)
            assert isinstance(trace, Timeline), "a Chrome trace is a timeline"
            stack.callback(trace.close)
            if not len(trace.events):
                raise Unavailable(
                    f"{arm.role}: {arm.target} imported torch and ran none of its operators: the trace is empty",
                    remedy="campaign diagnose FILE, on what another profiler wrote (Nsight Systems)",
                )
            if job.device.startswith("cuda") and all(device.is_cpu for device in trace.devices):
                raise Unavailable(
                    f"{arm.role}: torch.profiler recorded no work of {job.device}, only the host's",
                    remedy="see that CUPTI may be used (NVIDIA's ERR_NVGPUCTRPERM page), or profile with nsys profile",
                )
            trace.source = replace(trace.source, file=f"{arm.role} ({arm.name})")
            found.append(trace)
        yield found


def _body(
    job: Job, ledger: Ledger, arms: tuple[Arm, ...], stack: tuple[str, ...], made: dict[str, Profiled]
) -> dict[str, Any]:
    """The line, with both traces kept beside the ledger. No time of a step is in it."""
    one = made["control"]
    body: dict[str, Any] = {
        "evidence": EVIDENCE,
        "hypothesis": job.hypothesis.name,
        "workload": job.workload,
        "device": job.device,
        "stack": list(stack),
        "steps": one.steps,
        "warmup_steps": job.protocol.warmup_minimum_steps,
        "torch": one.torch,
        "activities": list(one.activities),
        "command": job.command.replace("python -m campaign", "python -m campaign profile", 1) + f" --steps {one.steps}",
    }
    for arm in arms:
        profiled = made[arm.role]
        data = profiled.trace.read_bytes()
        body[arm.role] = {
            "name": arm.name,
            "hash": arm.hash,
            "raw": ledger.keep(data, ".json.gz"),
            "bytes": len(data),
            "low_precision": profiled.low_precision,
            "graph": bool(profiled.facts.get("graph", False)),
        }
    return body


def _with_log(ledger: Ledger, failure: TrialFailed) -> TrialFailed:
    """The failure with its process's log kept beside the ledger."""
    log = Path(failure.log).read_bytes() if failure.log else b""
    kept = str(ledger.path(ledger.keep(log, ".log"))) if log else ""
    message = f"profile of {failure.arm}: {failure.message}" + (f" (log: {kept})" if kept else "")
    return TrialFailed(failure.reason, message, arm=failure.arm, log=kept, remedy=failure.remedy or "see the log")
