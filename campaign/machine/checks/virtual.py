"""Whether this is a virtual machine or a container, and what the hypervisor took in the window (steal, /proc/stat).

Above 5 % of steal a round is invalid (`protocol.steal_limit`, measurement 5.5). The `hypervisor` flag of /proc/cpuinfo
says virtual machine; an overlay as root or a container's control group, container."""

from __future__ import annotations

from campaign import units
from campaign.machine.checks._look import DOUBTFUL, FIT, UNFIT, Answer, Look
from campaign.machine.host import Host

NAME, GROUP = "virtual", "machine"
STEAL_LIMIT = 0.05
FLAGGED = 0.01  # judgement: a share that a window of a second can show at all
CONTAINERS = ("docker", "kubepods", "containerd", "lxc", "libpod", "podman")


def check(look: Look) -> Answer:
    virtual = "hypervisor" in (look.host.cpuinfo("flags") or "").split()
    kinds = (["a virtual machine"] if virtual else []) + (["a container"] if container(look.host) else [])
    seen = " and ".join(kinds) or "neither virtual machine nor container"
    stolen = look.stolen()
    if stolen is not None and (virtual or stolen):
        seen += f"; the hypervisor took {units.share(stolen)} of {look.window_seconds:.1f} s"
    if stolen is not None and stolen > STEAL_LIMIT:
        return Answer(
            UNFIT,
            seen,
            f"a round of which it takes more than {units.share(STEAL_LIMIT)} is invalid",
            "a machine with dedicated cores; or wait, since a neighbour is at work",
        )
    if stolen is not None and stolen > FLAGGED:
        return Answer(
            DOUBTFUL, seen, "time that is taken away counts as step time", "a machine with dedicated cores; or wait"
        )
    return Answer(FIT, seen)


def container(host: Host) -> bool:
    """Whether the root file system is an overlay, or the first process lies in a container's control group."""
    groups = host.text("proc", "1", "cgroup") or ""
    mounts = (line.split() for line in (host.text("proc", "self", "mountinfo") or "").splitlines())
    overlay = any(len(words) > 5 and words[4] == "/" and "overlay" in words[5:] for words in mounts)
    return overlay or any(name in groups for name in CONTAINERS)
