"""Where the machine is read from: /proc, /sys, and nvidia-smi. Each answer is None where this machine has none."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Host:
    """The roots that facts are read below, and the name or path of nvidia-smi."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    nvidia_smi: str = "nvidia-smi"

    def text(self, *parts: str) -> str | None:
        """A file of /proc or /sys, stripped, named like ('proc', 'loadavg'); None where it cannot be read."""
        top = {"proc": self.proc, "sys": self.sys}[parts[0]]
        try:
            return top.joinpath(*parts[1:]).read_text(errors="replace").strip()
        except OSError:
            return None

    def cpuinfo(self, key: str) -> str | None:
        """The first value of `key` in /proc/cpuinfo."""
        for line in (self.text("proc", "cpuinfo") or "").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
        return None

    def load(self) -> float | None:
        """The one-minute load average."""
        words = (self.text("proc", "loadavg") or "").split()
        return float(words[0]) if words else None

    def pressure(self) -> float | None:
        """PSI `cpu some avg10` as a share of 1."""
        for line in (self.text("proc", "pressure", "cpu") or "").splitlines():
            if line.startswith("some"):
                values = dict(word.split("=", 1) for word in line.split()[1:] if "=" in word)
                if "avg10" in values:
                    return float(values["avg10"]) / 100
        return None

    def cpu_ticks(self, cores: Collection[int]) -> tuple[int, int] | None:
        """(stolen, all) clock ticks since boot, summed over `cores`; over all cores when it is empty."""
        names = {f"cpu{core}" for core in cores} or {"cpu"}
        stolen = total = 0
        found = False
        for line in (self.text("proc", "stat") or "").splitlines():
            name, *rest = line.split()
            if name in names and len(rest) >= 8:
                ticks = [int(word) for word in rest[:8]]  # user nice system idle iowait irq softirq steal
                stolen, total, found = stolen + ticks[7], total + sum(ticks), True
        return (stolen, total) if found else None

    def processes(self) -> Iterator[tuple[int, int, str]]:
        """(pid, parent's pid, command line with spaces) of every process that can be seen."""
        try:
            names = [entry.name for entry in self.proc.iterdir() if entry.name.isdigit()]
        except OSError:
            return
        for name in names:
            stat = self.text("proc", name, "stat")
            if stat is None:
                continue  # it ended meanwhile
            command = (self.text("proc", name, "cmdline") or "").replace("\0", " ").strip()
            short = stat[stat.find("(") + 1 : stat.rfind(")")]
            yield int(name), int(stat[stat.rfind(")") + 1 :].split()[1]), command or short


HERE = Host()


def process_tree(roots: Collection[int], host: Host = HERE) -> set[int]:
    """The pids of `roots` and of everything that descends from them now."""
    children: dict[int, list[int]] = {}
    for pid, parent, _ in host.processes():
        children.setdefault(parent, []).append(pid)
    tree: set[int] = set()
    left = list(roots)
    while left:
        pid = left.pop()
        if pid not in tree:
            tree.add(pid)
            left += children.get(pid, [])
    return tree
