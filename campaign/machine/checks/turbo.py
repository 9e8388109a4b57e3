"""Whether the CPU may exceed its base frequency (intel_pstate/no_turbo, cpufreq/boost).

With turbo the clock depends on temperature and on what the other cores do. Flagged by the protocol, as by pyperf."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, UNKNOWN, Answer, Look
from campaign.machine.fingerprint import turbo

NAME, GROUP = "turbo", "machine"
INTEL = "/sys/devices/system/cpu/intel_pstate/no_turbo"
BOOST = "/sys/devices/system/cpu/cpufreq/boost"


def check(look: Look) -> Answer:
    on = turbo(look.host)
    if on is None:
        return Answer(UNKNOWN, "the kernel shows no turbo switch (a virtual machine hides its host's)")
    if not on:
        return Answer(FIT, "off")
    intel = look.host.text("sys", "devices", "system", "cpu", "intel_pstate", "no_turbo") is not None
    return Answer(
        DOUBTFUL,
        "on",
        "the clock follows temperature and what the other cores do: rounds scatter more",
        f"echo {int(intel)} | sudo tee {INTEL if intel else BOOST}",
    )
