"""A plain Python process that runs steps in a `for` loop: what the harness is measured against. Imports no `campaign`.

One JSON line on standard input says what to build: {"root", "target", "config"}, the class by its dotted path. The
answer is `ready`. Then each line `N` runs N steps and is answered with `wall cpu`, their seconds in all. The collector
is on, as Python starts with it; which core and which glibc thresholds are the parent's to choose (affinity,
environment).
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the workload prints is no answer
    asked = json.loads(sys.stdin.readline())
    sys.path.insert(0, asked["root"])
    module, _, name = asked["target"].rpartition(".")
    workload = getattr(importlib.import_module(module), name)(**asked["config"])
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        steps = int(line)
        workload.synchronize()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(steps):
            workload.step()
        workload.synchronize()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(wall, cpu, file=answers, flush=True)


if __name__ == "__main__":
    main()
