"""What cannot be claimed of a launched command, said before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from campaign.config.edits import LAUNCHED
from campaign.errors import BadInput, DoesNotFit
from campaign.records import Hypothesis, Protocol
from campaign.records.plan import REFERENCED

WATCHED = f"{LAUNCHED}Command"


def check_claimed(hypothesis: Hypothesis, protocol: Protocol, workload: Mapping[str, Any]) -> None:
    """A command has no reference to be compared with, nobody knows its threads, and of one that is only watched nothing
    can be counted. Raises DoesNotFit, BadInput."""
    target = str(workload.get("_target_"))
    if not target.startswith(LAUNCHED):
        return
    kind, name = hypothesis.parity.kind, hypothesis.name
    if kind in REFERENCED:
        raise DoesNotFit(
            f"hypothesis {name} claims parity.kind={kind}, which compares with a reference step, and {target} has none:"
            " it runs a command of your own",
            remedy="hypothesis.parity.kind=loss, or hypothesis.parity.kind=bitwise",
        )
    if hypothesis.predicted_evidence and target == WATCHED:
        counter = hypothesis.predicted_evidence[0].counter
        raise DoesNotFit(
            f"hypothesis {name} predicts {counter}, which nobody can count in a command that is only watched",
            remedy="hypothesis.predicted_evidence=[], or two lines in its loop and _target_: campaign.launch.Script",
        )
    if protocol.clock == "cpu" and "threads" not in workload:
        raise BadInput(
            f"protocol.clock = 'cpu' with {target}: CPU time may decide for one thread only, and how many the command"
            " runs is not declared",
            remedy="protocol.clock=wall",
        )
