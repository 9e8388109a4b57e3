"""CPU heat: throttling events (cpu*/thermal_throttle/core_throttle_count) and zones at a trip point
(/sys/class/thermal, degrees in thousandths; kernel's sysfs-class-thermal ABI)."""

from __future__ import annotations

from collections.abc import Iterator

from campaign.machine.checks._look import DOUBTFUL, FIT, UNKNOWN, Answer, Look
from campaign.machine.host import Host

NAME, GROUP = "heat", "machine"
HARMFUL = ("passive", "hot", "critical")
MOST_TRIPS = 12


def check(look: Look) -> Answer:
    events, before = look.after.heat_events, look.before.heat_events
    zones = list(_zones(look.host))
    if events is None and not zones:
        return Answer(UNKNOWN, "the kernel shows no thermal state (a virtual machine hides its host's)")
    hottest = max((degrees for degrees, _ in zones), default=None)
    seen = [] if hottest is None else [f"hottest zone {hottest:.0f} C"]
    seen += [] if events is None else [f"{events} throttling events since boot"]
    now = events is not None and before is not None and events > before
    if now:
        seen.append(f"{(events or 0) - (before or 0)} of them in the last {look.window_seconds:.1f} s")
    if now or any(tripped for _, tripped in zones):
        return Answer(
            DOUBTFUL,
            ", ".join(seen),
            "the clock is being lowered: an arm measured later runs slower",
            "let it cool, clean its fans, sudo turbostat --quiet --show Bzy_MHz,PkgTmp to watch it",
        )
    return Answer(FIT, ", ".join(seen))


def _zones(host: Host) -> Iterator[tuple[float, bool]]:
    """(degrees Celsius, whether a harmful trip point is reached) of each zone."""
    top = host.sys / "class" / "thermal"
    try:
        names = sorted(entry.name for entry in top.iterdir() if entry.name.startswith("thermal_zone"))
    except OSError:
        return
    for name in names:
        here = ("sys", "class", "thermal", name)
        if (degrees := _thousandths(host, *here, "temp")) is None:
            continue
        limits = [
            limit
            for place in range(MOST_TRIPS)
            if host.text(*here, f"trip_point_{place}_type") in HARMFUL
            and (limit := _thousandths(host, *here, f"trip_point_{place}_temp")) is not None
            and limit > 0
        ]
        yield degrees, any(degrees >= limit for limit in limits)


def _thousandths(host: Host, *parts: str) -> float | None:
    word = host.text(*parts) or ""
    return int(word) / 1000 if word.lstrip("-").isdigit() else None
