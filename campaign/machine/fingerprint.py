"""What must be equal for two measurements to be comparable: hardware, its clock policy, kernel, driver, torch.

No value that changes by itself is in it (load, clocks, temperatures, free memory, affinity of this process).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from campaign.machine import gpu
from campaign.machine.host import HERE, Host

_GPU_FIELDS = {
    "uuid": "uuid",
    "name": "name",
    "driver": "driver_version",
    "memory_mib": "memory.total",
    "power_limit_watts": "power.limit",
    "largest_sm_clock_mhz": "clocks.max.sm",
    "mig": "mig.mode.current",
    "ecc": "ecc.mode.current",
}


def fingerprint(device: str, host: Host = HERE) -> dict[str, Any]:
    """The machine as JSON values. `gpu` is there for a CUDA device: its facts, or {'absent': why}. A value is None
    where this machine does not say."""
    flags = host.cpuinfo("flags") or host.cpuinfo("Features")
    facts: dict[str, Any] = {
        "device": "cuda:0" if device == "cuda" else device,
        "host": os.uname().nodename,
        "cpu": host.cpuinfo("model name") or platform.processor() or os.uname().machine,
        "architecture": os.uname().machine,
        "cpu_flags": hashlib.sha256(" ".join(sorted(flags.split())).encode()).hexdigest()[:16] if flags else None,
        "microcode": host.cpuinfo("microcode"),
        "logical_cores": os.cpu_count(),
        "cpu_quota": cpu_quota(host),
        "governor": governor(host),
        "turbo": turbo(host),
        "kernel": os.uname().release,
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "python": platform.python_version(),
        "torch": _version("torch"),
        "numpy": _version("numpy"),
    }
    if gpu.is_cuda(device):
        facts["triton"] = _version("triton")
        facts["gpu"] = gpu.facts(host, device, _GPU_FIELDS)
    return facts


def fingerprint_hash(facts: dict[str, Any]) -> str:
    """SHA-256 of the fingerprint's JSON with sorted keys."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def describe(facts: dict[str, Any]) -> str:
    """The machine in one line: 'AMD EPYC, 2 cores, Linux 6.1.0, Python 3.11.7, torch 2.13.0+cpu'."""
    parts = [f"{facts.get('cpu')}, {facts.get('logical_cores')} cores"]
    device = facts.get("gpu")
    if isinstance(device, dict):
        if "absent" in device:
            parts.insert(0, f"no GPU facts ({device['absent']})")
        else:
            parts.insert(0, f"{device.get('name')} (driver {device.get('driver')})")
    parts += [f"{os.uname().sysname} {facts.get('kernel')}", f"Python {facts.get('python')}"]
    parts.append(f"torch {facts['torch']}" if facts.get("torch") else "no torch")
    return ", ".join(parts)


def governor(host: Host) -> str | None:
    """The CPU frequency governors in use, joined by '+'."""
    found = set()
    for core in range(os.cpu_count() or 1):
        if word := host.text("sys", "devices", "system", "cpu", f"cpu{core}", "cpufreq", "scaling_governor"):
            found.add(word)
    return "+".join(sorted(found)) or None


def turbo(host: Host) -> bool | None:
    """Whether the CPU may exceed its base frequency."""
    none = host.text("sys", "devices", "system", "cpu", "intel_pstate", "no_turbo")
    if none is not None:
        return none == "0"
    boost = host.text("sys", "devices", "system", "cpu", "cpufreq", "boost")
    return None if boost is None else boost == "1"


def cpu_quota(host: Host) -> float | None:
    """The CPU seconds a second that this control group may use (cgroup v2 `cpu.max`); None without a limit."""
    group = next(
        (line[3:] for line in (host.text("proc", "self", "cgroup") or "").splitlines() if line[:3] == "0::"), "/"
    )
    parts = [part for part in group.split("/") if part]
    found = []
    for depth in range(len(parts), -1, -1):
        words = (host.text("sys", "fs", "cgroup", *parts[:depth], "cpu.max") or "").split()
        if len(words) == 2 and words[0].isdigit():
            found.append(int(words[0]) / int(words[1]))
    return min(found, default=None)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
