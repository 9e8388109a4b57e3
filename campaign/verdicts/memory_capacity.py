"""The largest peak of treatment plus a margin must lie under the device's limit: a hard condition of every accept
(DESIGN 5). Beyond it: reject, `memory_capacity`.

The peak is the largest over rounds of what the trial's own process held: allocated or reserved on a device, live
tensors or VmHWM on CPU. Device-used bytes also hold the other arm and are not compared.
"""

from __future__ import annotations

from campaign import units
from campaign.records import REJECT, Verdict
from campaign.verdicts._case import Case

ORDER = 100


def rule(case: Case) -> Verdict | None:
    wrong = exceeded(case)
    if not wrong or not case.can_decide:
        return None
    return case.verdict(
        REJECT, "memory_capacity", wrong, "give the step less to hold, or use a larger device", published=case.screen
    )


def exceeded(case: Case) -> str:
    """How the largest peak passes the limit, in words; empty when it does not or the limit is unknown."""
    margin = case.protocol.memory_margin
    for one in case.sorted.valid():
        memory = one.trial("treatment").memory
        if memory is None or memory.limit_bytes is None:
            continue
        peak = max(memory.live_peak_bytes, memory.reserved_peak_bytes or 0, memory.process_peak_bytes or 0)
        if peak * (1 + margin) > memory.limit_bytes:
            return (
                f"treatment's peak of {units.size(peak)} plus {margin:.0%} is above the limit of"
                f" {units.size(memory.limit_bytes)}"
            )
    return ""
