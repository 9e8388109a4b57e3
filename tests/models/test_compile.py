from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

from kernels.errors import Unavailable
from models.workload import ReferenceWorkload
from tests.models.observing import counted


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiled_blocks_share_their_code_and_compile_nothing_after_the_first_step(
    small: Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Graphs are found, split into forward and backward and counted before a backend writes code, which takes a minute.
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    config = small(
        model={"layers": 2},
        ops={"gated": "cpu"},
        quant={"weights": "cached", "activations": "shared", "scales": "per_block"},
        checkpoint={"policy": "selective"},
        compile="block",
    )
    compiled, eager = ReferenceWorkload(**config), ReferenceWorkload(**{**config, "compile": "none"})
    before = counters["stats"]["unique_graphs"]
    compiled.step()
    # Two recurrent blocks, one code: a graph without gradients for the forward pass, one with for the recompute.
    assert counters["stats"]["unique_graphs"] - before == 2
    eager.step()
    assert compiled.last_step() == pytest.approx(eager.last_step(), rel=5e-3)
    ours, theirs = (torch.cat([g.flatten() for g in w.gradients().values()]) for w in (compiled, eager))
    assert ((ours - theirs).norm() / theirs.norm()).item() < 0.1
    for _ in range(2):
        compiled.step()
    assert counters["stats"]["unique_graphs"] - before == 2
    assert not counters["graph_break"]
    # While a mode watches, nothing is compiled and the step runs as written.
    assert (
        counted({**config, "compile": "block"}, unwatched=0).roles()
        == counted({**config, "compile": "none"}, unwatched=0).roles()
    )


def test_without_a_compiler_compilation_is_unavailable(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(Unavailable, match="no C\\+\\+ compiler at CXX='no-such-compiler'"):
        ReferenceWorkload(**small(compile="block"))
