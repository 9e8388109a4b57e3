"""Each compiled kernel against eager torch and torch.compile: its error, its time forward and backward, and the bytes
that it moves against a copy.

All sides of a contest run in this process in turns, on a CPU on one thread and one core: in each round every side runs
in random order, as often as makes 20 ms, on process CPU time (CUDA: event time). A ratio is taken per round; the tables
show the geometric mean over rounds with its 95 % Student-t interval, above 1 where our kernel is the faster one. Every
case of every kernel is first checked against its reference in float64; no speed is printed of a family that is red.

    python benchmarks/kernels.py                       # everything, as Markdown
    python benchmarks/kernels.py --family prenorm --rounds 20 --json
    python benchmarks/kernels.py --device cuda
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts this file's folder first, where `kernels` would be this file and not the package.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from benchmarks.kernel_contest import main

    main(__doc__)
