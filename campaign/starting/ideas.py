"""The example hypotheses of a new project: what can be tried on a script at once, by its flags and its environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Idea:
    """A hypothesis before it is a file. `overrides` and `environment` are its edit; `evidence` is the operator that the
    edit makes appear, '' where none is known; `bound` how far the losses may lie apart, relative."""

    name: str
    claim: str
    mechanism: str
    acts_on: str
    overrides: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    ratio: float = 1.05
    evidence: str = ""
    bound: float = 0.02


ONE_THREAD = Idea(
    "one_thread",
    "One thread beats one a core.",
    "Operators of a small step are so short that handing parts of them to other threads costs more than it saves.",
    "dispatch",
    environment=(("OMP_NUM_THREADS", "1"),),
)
# The example script's control has one thread, which a busy machine disturbs the least.
TWO_THREADS = Idea(
    "two_threads",
    "Two threads beat one.",
    "The two halves of a product are computed at the same time.",
    "gemm",
    # A worker that spins on when its part is done would be at work between two blocks, where control has none.
    environment=(("OMP_NUM_THREADS", "2"), ("OMP_WAIT_POLICY", "passive")),
)
SEGMENTS = Idea(
    "expandable_segments",
    "The allocator reserves less memory with segments that grow.",
    "Blocks of many sizes leave gaps between segments of fixed size; a segment that grows has none.",
    "nothing",
    environment=(("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),),
    ratio=1.0,
)
# What a flag of this name is for, and what to try where it is off. Normalised: lower case, no - or _.
ON = {
    "fused": ("The optimizer's update as one call for all parameters beats one call a parameter.",
              "Each call costs a dispatch, and there are some for each parameter.", "optimizer", 0.02),
    "compile": ("torch.compile beats eager operators.", "Fused operators read and write memory less often.",
                "pointwise", 0.05),
    "bf16": ("bfloat16 beats float32.", "Half the bytes move, and products run on faster units.", "gemm", 0.05),
    "amp": ("Mixed precision beats float32.", "Half the bytes move, and products run on faster units.", "gemm", 0.05),
    "tf32": ("TF32 products beat float32.", "They run on faster units.", "gemm", 0.05),
    "gradientcheckpointing": ("Checkpointing saves memory for little time.", "Activations are computed again instead "
                              "of kept.", "recompute", 0.02),
    "channelslast": ("Channels last beats channels first.", "Convolutions read their input without a copy of it.",
                     "conv", 0.02),
}  # fmt: skip
ALIASES = {"fusedadam": "fused", "fusedadamw": "fused", "torchcompile": "compile", "usecompile": "compile",
           "mixedprecision": "amp", "allowtf32": "tf32", "useamp": "amp", "checkpointing": "gradientcheckpointing",
           "gradcheckpoint": "gradientcheckpointing"}  # fmt: skip
WORKERS = ("numworkers", "workers", "dataloadernumworkers", "dataloaderworkers")


def ideas(flags: Mapping[str, object], device: str, *, example: bool) -> list[Idea]:
    """One idea by the environment, and one by a flag where the script has one that this module knows. What a flag does
    to the operators is known of the example script only."""
    found = [SEGMENTS if device != "cpu" else TWO_THREADS if example else ONE_THREAD]
    for name, value in flags.items():
        plain = name.lower().replace("-", "").replace("_", "")
        plain = ALIASES.get(plain, plain)
        if plain in ON and value in (False, None):
            claim, mechanism, acts_on, bound = ON[plain]
            evidence = "op:aten::_fused_adamw_" if example else ""
            title = {"fused": "fused_optimizer"}.get(plain, plain)
            edit = (f"workload.flags.{name}=true",)
            ratio = 1.25 if example else 1.05
            found.append(Idea(title, claim, mechanism, acts_on, edit, ratio=ratio, bound=bound, evidence=evidence))
            break
        if plain in WORKERS and value in (0, None):
            claim = "Two workers that load batches beside the training beat loading between its steps."
            edit = (f"workload.flags.{name}=2",)
            found.append(Idea("two_workers", claim, "A batch is ready when its step begins.", "dispatch", edit))
            break
    return found
