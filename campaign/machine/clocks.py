"""The clocks at one moment, for the record: they change by themselves, so they are no part of the fingerprint."""

from __future__ import annotations

from campaign.machine import gpu
from campaign.machine.host import HERE, Host

_GPU_CLOCKS = {
    "sm_mhz": "clocks.sm",
    "memory_mhz": "clocks.mem",
    "largest_sm_mhz": "clocks.max.sm",
    "temperature_celsius": "temperature.gpu",
    "power_watts": "power.draw",
}


def clocks(device: str, host: Host = HERE) -> dict[str, object]:
    """`cpu_mhz` (None where the kernel does not say) and, for a CUDA device, `gpu`: its clocks, temperature and power
    draw as nvidia-smi tells them, or {'absent': why}."""
    mhz = host.cpuinfo("cpu MHz")
    found: dict[str, object] = {"cpu_mhz": float(mhz) if mhz else None}
    if gpu.is_cuda(device):
        found["gpu"] = gpu.facts(host, device, _GPU_CLOCKS)
    return found
