"""An arm computes only while it is timed. What it computes between its blocks, in a thread, a child process, its
`synchronize`, a finalizer or when somebody asks for the result, is work that no clock saw: invalid, `background_work`.

CPU time is compared, of the process and its descendants, which a busy machine does not change. In each valid round, for
each arm, the CPU time between its blocks may be 1 % of that inside them, and beside it in each block 1 ms for our own
hand-over and garbage collection (0.46 to 0.61 ms was measured), once more where steps are taken before it, and 30 ms
for each further thread, since OpenMP's workers spin on when a parallel region has ended (3 to 13 ms was measured).
Treatment's may also not exceed control's by more than 1 % of that inside its blocks and 0.1 ms a block: both arms pay
the same hand-over. How many threads there are is what control says, so that an edit does not set its own allowance;
one that adds threads is measured with OMP_WAIT_POLICY=passive.
Either limit has 1.5 ms a round besides, for single blocks that take a millisecond more on a busy machine (1.3 ms was
the longest seen).

A command that is only watched steps on without a pause: it has no time between its blocks, and is not looked at. Where
whole processes alternated for want of room they were held between their blocks as ever, and are.
"""

from __future__ import annotations

from campaign import units
from campaign.records import INVALID, Block, Round, Verdict
from campaign.traits import threads, watched
from campaign.verdicts._case import Case
from campaign.verdicts._timed import blocks_of, first_wrong

ORDER = 52
SHARE = 0.01
HANDOVER_SECONDS = 1e-3
SPIN_SECONDS = 0.030
UNEQUAL_HANDOVER_SECONDS = 1e-4
ONCE_SECONDS = 1.5e-3


def rule(case: Case) -> Verdict | None:
    said = first_wrong(case, _of_round)
    if not said:
        return None
    remedy = (
        "let `step` and `synchronize` end only when the step's work is done, and let nothing run between steps"
        " (threads, child processes, prefetching, finalizers)"
    )
    if any(threads(one.trial("treatment")) > threads(one.trial("control")) for one in case.sorted.valid()):
        remedy = f"OMP_WAIT_POLICY=passive {case.plan.command}    (else the further threads spin on between blocks)"
    return case.verdict(INVALID, "background_work", said, remedy)


def _of_round(one: Round) -> str:
    if any(map(watched, one.trials)):
        return ""
    idle, inside, count = {}, {}, {}
    spin = SPIN_SECONDS * (threads(one.trial("control")) - 1)
    for trial in one.trials:
        blocks = blocks_of(one, trial.arm)
        idle[trial.arm] = sum(map(_idle, blocks))
        inside[trial.arm] = sum(block.cpu_seconds for block in blocks)
        count[trial.arm] = len(blocks)
        timed = len(blocks) + sum(block.lead_steps > 0 for block in blocks)
        limit = SHARE * inside[trial.arm] + (HANDOVER_SECONDS + spin) * timed + ONCE_SECONDS
        if idle[trial.arm] > limit:
            return _said(trial.arm, idle[trial.arm], inside[trial.arm], len(blocks), limit)
    more = idle["treatment"] - idle["control"]
    limit = SHARE * inside["treatment"] + (UNEQUAL_HANDOVER_SECONDS + spin) * count["treatment"] + ONCE_SECONDS
    if more > limit:
        said = _said("treatment", idle["treatment"], inside["treatment"], count["treatment"], idle["control"] + limit)
        return f"{said}, control's {units.seconds(idle['control'])} among it"
    return ""


def _idle(block: Block) -> float:
    return block.idle_cpu_seconds or 0.0


def _said(arm: str, idle: float, inside: float, blocks: int, limit: float) -> str:
    return (
        f"{arm} used {units.seconds(idle)} of CPU time between its {blocks} blocks, which took"
        f" {units.seconds(inside)}; the limit is {units.seconds(limit)}"
    )
