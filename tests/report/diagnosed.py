"""A diagnosis and a comparison made by hand, with the figures of the case studies where they have some."""

from __future__ import annotations

from dataclasses import replace

from campaign.diagnosis import found
from campaign.traces import timeline
from campaign.traces.counters import KernelCounters
from campaign.traces.timeline import Notice, Source

SOURCE = Source("step.json.gz", "kineto", "PyTorch 2.3", 1 << 20, 1, 0)
REPORT = Source("backward.csv", "ncu-raw", "Nsight Compute 2024.1", 40_960)
BACKWARD = "void recurrent_backward<float, 128>(Params)"
PACK = "pack_nvfp4_kernel"


def dispatch() -> found.Dispatch:
    """Case A: 10 replays of 4,948 kernels in 12.810 s, of which 12.789 s busy: 2.10 ms idle a step, 0.164 %."""
    use = found.DeviceUse(
        device=0,
        label="NVIDIA H100",
        start_ns=1_000,
        end_ns=12_810_001_000,
        busy_ns=12_789_000_000,
        kernel_busy_ns=12_788_000_000,
        summed_ns=12_789_500_000,
        events=49_490,
        kernels=49_480,
        copies=10,
        sets=0,
        streams=2,
    )
    return found.Dispatch(
        devices=(use,),
        steps=found.Steps(10, "graph launches", ""),
        host_launches=0,
        graph_launches=10,
        idle_by_cause_ns={"sync": 20_000_000, "host": 0, "small": 1_000_000},
        gaps=(
            found.Gap(0, 2_001_000, 4_501_000, BACKWARD, PACK, "sync", "waited in cudaStreamSynchronize"),
            found.Gap(0, 9_001_000, 10_001_000, PACK, BACKWARD, "sync", "waited in cudaStreamSynchronize"),
        ),
        passes=(found.Pass("forward", 10, 900_000, 420_000_000),),
        metrics=(timeline.Metric(0, "SM Active [%]", 1200, 91.25, 100.0),),
        verdict=found.DEVICE_BOUND,
        sentence="the device is busy 99.836 % of the range; launching less is not the lever, kernels are",
        aggregation_ceiling=12.810 / 12.789,
    )


def share(family: str, title: str, part: float, launches: int, *kernels: found.KernelShare) -> found.FamilyShare:
    time = round(part * 12_789_000_000)
    return found.FamilyShare(family, title, launches, time, float(time), time, part, kernels)


def families() -> found.Families:
    """Case B: shares of 24.8, 22.4, 12.3 and 10.9 %, the rest unclassified."""
    backward = found.KernelShare(BACKWARD, "recurrent", 480, 432_268_200, 432_268_200)
    pack = found.KernelShare(PACK, "quantization", 960, 100_000_000, 100_000_000)
    unknown = found.KernelShare("mystery_kernel", "other", 10, 3_785_544_000, 3_785_544_000)
    shares = (
        share("other", "Other", 0.296, 10, unknown),
        share("gemm_bf16", "GEMM bf16", 0.248, 4_800),
        share("recurrent", "Recurrent, convolution, gating", 0.224, 2_400, backward),
        share("pointwise", "Pointwise", 0.123, 20_000),
        share("quantization", "Quantization", 0.109, 12_000, pack),
    )
    return found.Families(
        shares=shares,
        busy_ns=12_789_000_000,
        range_ns=12_810_000_000,
        unclassified_share=0.296,
        unclassified=(unknown,),
        masks_ns=((("gemm_bf16",), 3_171_000_000), (("gemm_bf16", "pointwise"), 500_000)),
    )


def ceilings() -> found.Ceilings:
    """Case B: removing 22.4 % gives 1.289x; halving all of it twice as much at most."""
    return found.Ceilings(
        each=(found.Ceiling("recurrent", 0.224, 1 / 0.776, 1 / 0.888),),
        idle_removed=12.810 / 12.789,
        target=2.35,
        removing=(found.TargetSet(("other", "gemm_bf16", "recurrent"), 4.31),),
        halving=(),
        all_halved=1.997,
        sentence="2.35x needs several large families; no single one reaches it",
    )


def copies() -> found.Copies:
    return found.Copies(
        directions=(found.Direction("DtoD", 10, 10 << 20, 100_000, 1.048e11),),
        copy_share=0.0001,
        moving_share=0.232,
        movers=(
            found.Mover(PACK, "quantization", 960, 100_000_000, 0.0078, 35.0, 83.0, "compute-heavy conversion",
                        "SM 83 % against DRAM 35 %: not copy traffic"),
        ),
        sentence="the cost is repeated passes that read, transform and write, not memory copies",
    )  # fmt: skip


def counters() -> KernelCounters:
    """Case D, the first kernel: 255 registers x 128 threads, 8 warps of 48."""
    return KernelCounters(
        name=BACKWARD,
        source_row=3,
        architecture="sm_120",
        grid_blocks=1320,
        threads_per_block=128,
        registers_per_thread=255,
        static_shared_bytes=1024,
        duration_seconds=901.2e-6,
        spill_requests=9.65e6,
        spill_counter="derived__local_spilling_requests",
        theoretical_occupancy_percent=16.67,
        achieved_occupancy_percent=15.9,
        eligible_warps=0.12,
        no_eligible_percent=91.6,
        stalls_percent={"long_scoreboard": 56.0, "wait": 12.0, "barrier": 3.0, "sleeping": 2.0, "lg_throttle": 1.0},
        dram_percent=26.0,
        pipes_percent={"tensor": 12.0},
        waves=3.5,
        failed=("lts__t_bytes.sum",),
    )


def kernel() -> found.KernelFinding:
    return found.KernelFinding(
        name=BACKWARD,
        counters=counters(),
        launches_profiled=1,
        launches_traced=480,
        share=0.0338,
        ceiling=1.035,
        recomputed_occupancy_percent=16.67,
        recomputed_limits=("registers",),
        wave_efficiency=0.875,
        rule="spills",
        verdict="register pressure with spills",
        numbers=("255 registers a thread", "9.65M spill requests", "no eligible warp in 91.6 % of the cycles"),
        next=("reduce the live state", "split a favourable phase"),
        avoid="a lower register cap: it would spill more",
        missing=("l1tex__throughput",),
    )


def ideas() -> tuple[found.IdeaCeiling, ...]:
    return (
        found.IdeaCeiling("live_state", "recurrent", ("recurrent",), 0.224, 1.289, 1.015, False, "22.4 % of the range"),
        found.IdeaCeiling("graph_replay", "dispatch", ("idle",), 0.0016, 1.0016, 1.02, True,
                          "1.0016x cannot exceed 1.010x, which this machine resolves"),
    )  # fmt: skip


def diagnosis(**changed) -> found.Diagnosis:
    made = found.Diagnosis(
        source=SOURCE,
        notices=(
            Notice("repaired", "2 control characters in names were replaced"),
            Notice("dropped", "the profiler dropped 12 events", lowers_confidence=True),
        ),
        dispatch=dispatch(),
        families=families(),
        ceilings=ceilings(),
        copies=copies(),
        kernels=(kernel(),),
        ideas=ideas(),
        reports=(REPORT,),
        unjoined=("lonely_kernel",),
    )
    return replace(made, **changed)


def kernels_only() -> found.Diagnosis:
    return diagnosis(
        source=REPORT,
        notices=(),
        dispatch=None,
        families=None,
        ceilings=None,
        copies=None,
        ideas=(),
        unjoined=(),
        kernels=(replace(kernel(), share=None, ceiling=None, launches_traced=None),),
    )


def comparison(**changed) -> found.Comparison:
    made = found.Comparison(
        before=SOURCE,
        after=replace(SOURCE, file="fused.json.gz"),
        before_steps=found.Steps(10, "graph launches", ""),
        after_steps=found.Steps(10, "graph launches", ""),
        total=found.Change("all", "", 4948.0, 4852.0, 1_278_900_000.0, 1_276_000_000.0),
        families=(
            found.Change("Norm", "norm", 96.0, 0.0, 9_600_000.0, 0.0),
            found.Change("Recurrent", "recurrent", 240.0, 240.0, 286_473_600.0, 286_473_600.0),
        ),
        kernels=(
            found.Change("rms_norm_kernel", "norm", 96.0, 0.0, 9_600_000.0, 0.0),
            found.Change("fused_norm_kernel", "norm", 0.0, 48.0, 0.0, 6_700_000.0),
            found.Change("same_kernel", "other", 5.0, 5.0, 1.0, 1.0),
        ),
        appeared=("fused_norm_kernel",),
        vanished=("rms_norm_kernel",),
        matched=True,
        why="",
        sentence="96 launches a step fewer, all of them Norm",
        speedup_command="campaign hypothesis=NAME",
    )
    return replace(made, **changed)
