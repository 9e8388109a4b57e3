"""Power supplies that are discharging (/sys/class/power_supply/*/status). On battery firmware lowers clocks; flagged by
the protocol (measurement 5.5)."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, Answer, Look

NAME, GROUP = "battery", "machine"


def check(look: Look) -> Answer:
    try:
        supplies = sorted(entry.name for entry in (look.host.sys / "class" / "power_supply").iterdir())
    except OSError:
        supplies = []
    low = [name for name in supplies if look.host.text("sys", "class", "power_supply", name, "status") == "Discharging"]
    if low:
        return Answer(
            DOUBTFUL, f"{low[0]} is discharging", "firmware lowers the clocks on battery", "plug the charger in"
        )
    return Answer(FIT, "not on battery" if supplies else "none")
