"""NVIDIA devices through nvidia-smi, whose output is a documented CSV; no binding library is needed.

Field names: `nvidia-smi --help-query-gpu`. Event reason bits: NVML, `nvmlClocksEventReasons` in nvml.h.
"""

from __future__ import annotations

import csv
import os
import subprocess
from collections.abc import Mapping, Sequence

from campaign.machine.host import Host

DEADLINE_SECONDS = 20.0
REASON_FIELDS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # newer drivers, older drivers
_REASONS = {
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
_IDLE = 0x001  # nothing ran just then; not a cause of anything


class NoAnswer(Exception):
    """nvidia-smi is not there, refused, or spoke nonsense; the text says which."""


def is_cuda(device: str) -> bool:
    """Whether `device` is 'cuda' or 'cuda:N'."""
    return device.partition(":")[0] == "cuda"


def selector(device: str) -> str:
    """What `nvidia-smi -i` calls `device`: CUDA numbers the devices of CUDA_VISIBLE_DEVICES, nvidia-smi all."""
    index = device.partition(":")[2]
    number = int(index) if index.isdigit() else 0
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return visible[number] if number < len(visible) else str(number)


def ask(host: Host, *arguments: str) -> str:
    """What nvidia-smi prints. Raises NoAnswer."""
    try:
        done = subprocess.run(
            [host.nvidia_smi, *arguments], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
        )
    except FileNotFoundError:
        raise NoAnswer(f"{host.nvidia_smi} is not on this machine") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoAnswer(f"{host.nvidia_smi} did not answer: {error}") from error
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise NoAnswer(f"{host.nvidia_smi} failed: {said[0] if said else f'exit status {done.returncode}'}")
    return done.stdout


def query(host: Host, device: str, fields: Sequence[str]) -> dict[str, str | None]:
    """The named fields of one device; None for one that this device does not have. Raises NoAnswer."""
    arguments = (f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", "-i", selector(device))
    rows = _rows(ask(host, *arguments))
    if len(rows) != 1 or len(rows[0]) != len(fields):
        raise NoAnswer(f"{host.nvidia_smi} answered {len(rows)} rows for the one device {device}")
    return {name: _value(word) for name, word in zip(fields, rows[0], strict=True)}


def facts(host: Host, device: str, fields: Mapping[str, str]) -> dict[str, str | None]:
    """The fields of one device under our names (`fields`: name to nvidia-smi's field), or {'absent': why}."""
    try:
        values = query(host, device, list(fields.values()))
    except NoAnswer as why:
        return {"absent": str(why)}
    return {name: values[field] for name, field in fields.items()}


def compute_processes(host: Host, device: str) -> list[tuple[int, str]]:
    """(pid, name) of the processes with a compute context on the device. Raises NoAnswer."""
    said = ask(host, "--query-compute-apps=pid,process_name", "--format=csv,noheader", "-i", selector(device))
    return [(int(row[0]), row[1]) for row in _rows(said) if len(row) == 2 and row[0].isdigit()]


def reason_field(host: Host, device: str) -> str:
    """The name under which this driver reports clock event reasons. Raises NoAnswer when it knows neither."""
    try:
        query(host, device, REASON_FIELDS[:1])
    except NoAnswer:
        query(host, device, REASON_FIELDS[1:])
        return REASON_FIELDS[1]
    return REASON_FIELDS[0]


def reasons(text: str) -> set[str]:
    """The names of the reasons in lines of bit masks like '0x0000000000000004'; unknown bits by their number."""
    found: set[str] = set()
    for word in text.split():
        try:
            bits = int(word, 16) & ~_IDLE
        except ValueError:
            continue  # [N/A], or a line cut off by the end of the watch
        found |= {name for bit, name in _REASONS.items() if bits & bit}
        if unknown := bits & ~sum(_REASONS):
            found.add(f"reason_{unknown:#x}")
    return found


def _rows(text: str) -> list[list[str]]:
    return [[word.strip() for word in row] for row in csv.reader(text.splitlines()) if row]


def _value(word: str) -> str | None:
    return None if word.startswith("[") or word in ("", "N/A") else word
