"""Other work: what others did in the window (/proc/stat less our own), the load average, and CPU pressure (PSI).

Above 20 % of PSI `some avg10` the protocol flags (measurement 5.5); a load of a quarter of the cores is the limit of
the warnings of a run. On a CPU a round is invalid where control's wall time is above 1.3 times its processor
time, so a machine on which others leave less than 1/1.3 of one core is unfit."""

from __future__ import annotations

from campaign import units
from campaign.machine.checks._look import DOUBTFUL, FIT, UNFIT, UNKNOWN, Answer, Look
from campaign.machine.quiet import LOAD_SHARE

NAME, GROUP = "load", "machine"
OTHERS_SHARE = 0.1  # of all cores, in the window: judgement
PRESSURE = 0.2
CONTENTION_LIMIT = 1.3  # as `protocol.contention_limit`
MEND = "top -o %CPU shows who; stop it, or wait"


def check(look: Look) -> Answer:
    others, load, pressure = look.others(), look.host.load(), look.host.pressure()
    cores = len(look.after.cores) or len(look.cores)
    said = [
        "" if others is None else f"others used {others:.2f} of {cores} cores for {look.window_seconds:.1f} s",
        "" if load is None else f"load average {load:.2f}",
        "" if pressure is None else f"tasks waited for a core {units.share(pressure)} of 10 s (PSI)",
    ]
    seen = ", ".join(part for part in said if part)
    if not seen:
        return Answer(UNKNOWN, "/proc says nothing of the load")
    if others is not None and others > cores - 1 / CONTENTION_LIMIT and look.device == "cpu":
        cost = f"no core is free: while it lasts, rounds break the contention gate of {CONTENTION_LIMIT}"
        return Answer(UNFIT, seen, cost, MEND)
    busy = others is not None and others > OTHERS_SHARE * cores
    loaded = load is not None and load > LOAD_SHARE * cores
    if busy or loaded or (pressure is not None and pressure > PRESSURE):
        return Answer(DOUBTFUL, seen, "blocks share caches and cores with other work: rounds scatter more", MEND)
    return Answer(FIT, seen)
