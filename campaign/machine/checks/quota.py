"""The control group's CPU quota (cgroup v2 cpu.max, v1 cpu.cfs_quota_us) and how often it stopped the group (cpu.stat).

A group that used up its quota stands still until the next period, in the middle of a block."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, Answer, Look
from campaign.machine.fingerprint import cpu_quota
from campaign.machine.host import Host

NAME, GROUP = "quota", "machine"


def check(look: Look) -> Answer:
    quota = cpu_quota(look.host)
    quota = _version_1(look.host) if quota is None else quota
    if quota is None:
        return Answer(FIT, "none")
    cores = len(look.cores)
    seen = f"{quota:g} of {cores} cores"
    stopped, periods = look.after.quota_periods or (0, 0)
    if stopped:
        seen += f"; stopped in {stopped} of {periods} periods since it began"
    if stopped or quota < cores:
        return Answer(
            DOUBTFUL,
            seen,
            "a group that used up its quota stands still until the next period, in the middle of a block",
            f"docker run --cpus={cores} (or without a limit), and torch threads at most {max(1, int(quota))}",
        )
    return Answer(FIT, seen)


def _version_1(host: Host) -> float | None:
    for name in ("cpu", "cpu,cpuacct"):
        quota = host.text("sys", "fs", "cgroup", name, "cpu.cfs_quota_us") or ""
        period = host.text("sys", "fs", "cgroup", name, "cpu.cfs_period_us") or ""
        if quota.isdigit() and period.isdigit() and int(period):
            return int(quota) / int(period)
    return None
