"""NUMA nodes against the cores that rounds are pinned to (/sys/devices/system/node), and page balancing between them.

Memory of another node is farther, and the kernel's balancing unmaps pages to see who touches them
(kernel.numa_balancing in the kernel's sysctl documentation)."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, UNKNOWN, Answer, Look, numbers
from campaign.machine.checks.cores import ranges

NAME, GROUP = "NUMA", "machine"


def check(look: Look) -> Answer:
    nodes = {}
    for node in numbers(look.host.text("sys", "devices", "system", "node", "online") or ""):
        cores = numbers(look.host.text("sys", "devices", "system", "node", f"node{node}", "cpulist") or "")
        if cores:  # a node of memory alone has none
            nodes[node] = cores
    if not nodes:
        return Answer(UNKNOWN, "the kernel shows no nodes")
    on = [node for node, cores in nodes.items() if set(cores) & set(look.pinned)]
    if len(nodes) == 1:
        return Answer(FIT, "one node")
    seen = f"{len(nodes)} nodes; rounds are pinned to cores {ranges(look.pinned)} of node {', '.join(map(str, on))}"
    if len(on) > 1:
        allowed = ranges(nodes[on[-1]])
        return Answer(
            DOUBTFUL,
            seen,
            "one arm's threads and memory lie on several nodes, each round otherwise",
            f"numactl --cpunodebind={on[-1]} --membind={on[-1]} campaign ... (cores {allowed})",
        )
    if (look.host.text("proc", "sys", "kernel", "numa_balancing") or "0") != "0":
        return Answer(
            DOUBTFUL,
            f"{seen}; page balancing is on",
            "the kernel unmaps pages to see who touches them, and may move them while blocks are timed",
            "echo 0 | sudo tee /proc/sys/kernel/numa_balancing",
        )
    return Answer(FIT, seen)
