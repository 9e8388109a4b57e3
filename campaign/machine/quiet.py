"""What about this machine will blur a measurement, each with the command that mends it."""

from __future__ import annotations

import os

from campaign.machine import gpu
from campaign.machine.fingerprint import cpu_quota, governor, turbo
from campaign.machine.host import HERE, Host, process_tree

LOAD_SHARE = 0.25
"""A load above this share of the cores before anything of ours runs is worth a word."""


def warnings(device: str, host: Host = HERE) -> list[str]:
    """Sentences for the person, most harmful first; empty on a quiet, well-set machine."""
    found = [*_busy(host), *_power(host)]
    if gpu.is_cuda(device):
        found = [*_device(device, host), *found]
    return found


def _busy(host: Host) -> list[str]:
    found = []
    cores = os.cpu_count() or 1
    load = host.load()
    if load is not None and load > LOAD_SHARE * cores:
        found.append(f"load average {load:.1f} on {cores} cores: other work is running (see it: top -o %CPU)")
    ours = process_tree((os.getpid(),), host)
    for pid, _, command in host.processes():
        words = command.split()
        is_mlflow = any(word.rsplit("/", 1)[-1] == "mlflow" or word.startswith("mlflow.server") for word in words)
        if pid not in ours and is_mlflow and ("ui" in words or "server" in words or "mlflow.server" in command):
            found.append(f"an MLflow UI is running (process {pid}): stop it while measuring (kill {pid})")
            break
    quota = cpu_quota(host)
    if quota is not None and quota < cores:
        found.append(
            f"this container may use {quota:g} of {cores} cores and is stopped when it uses more: "
            f"set torch threads to {max(1, int(quota))} or lift the limit (docker run --cpus={cores})"
        )
    return found


def _power(host: Host) -> list[str]:
    found = []
    word = governor(host)
    if word is not None and word != "performance":
        found.append(f"CPU frequency governor is {word!r}: sudo cpupower frequency-set -g performance")
    if turbo(host):
        switch = (
            "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
            if host.text("sys", "devices", "system", "cpu", "intel_pstate", "no_turbo") is not None
            else "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
        )
        found.append(f"turbo is on, so clocks follow temperature: {switch}")
    try:
        supplies = sorted(entry.name for entry in (host.sys / "class" / "power_supply").iterdir())
    except OSError:
        supplies = []
    if any(host.text("sys", "class", "power_supply", name, "status") == "Discharging" for name in supplies):
        found.append("running on battery: plug the charger in")
    return found


def _device(device: str, host: Host) -> list[str]:
    try:
        values = gpu.query(host, device, ("persistence_mode", "clocks.applications.graphics", "clocks.max.graphics"))
        running = gpu.compute_processes(host, device)
    except gpu.NoAnswer as why:
        return [f"{why}: foreign processes and throttling of {device} cannot be seen (install the driver's tools)"]
    found = []
    ours = process_tree((os.getpid(),), host)
    other = [f"{name} ({pid})" for pid, name in running if pid not in ours]
    if other:
        found.append(f"other processes are on {device}: {', '.join(other[:3])}; end them (nvidia-smi lists them)")
    chosen = gpu.selector(device)
    if values["persistence_mode"] == "Disabled":
        found.append(f"persistence mode is off on {device}: sudo nvidia-smi -i {chosen} -pm 1")
    try:
        field = gpu.reason_field(host, device)
        held = gpu.reasons(gpu.query(host, device, [field])[field] or "")
    except gpu.NoAnswer:
        held = set()
    hot = sorted(name for name in held if "slowdown" in name)
    if hot:
        found.append(
            f"{device} is held down now ({', '.join(hot)}): let it cool, check its power (nvidia-smi -q -d PERFORMANCE)"
        )
    return found
