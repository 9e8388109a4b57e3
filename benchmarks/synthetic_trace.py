"""A Kineto trace of any length, as a training loop in eager mode writes it: what the reading benchmarks read.

Each device event has its own launch on the host, every tenth an operator and a pair of flow arrows; 97 % are kernels
with full arguments on two streams that overlap a little, the rest copies and sets. 79 kernel names, a ProfilerStep for
every 50,000 device events. Times are microseconds with three decimals from baseTimeNanoseconds. JSON without spaces.
"""

from __future__ import annotations

import random
from pathlib import Path

STEP_EVENTS = 50_000
CYCLE = 5_000  # the shapes and lengths of this many device events repeat
HEAD = (
    '{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3","totalGlobalMem":85052030976,'
    '"computeMajor":9,"computeMinor":0,"warpSize":32,"numSms":132}],"distributedInfo":{"backend":"nccl","rank":0,'
    '"world_size":1},"displayTimeUnit":"ms","baseTimeNanoseconds":1733011200000000000,"traceEvents":[\n'
)
TAIL = '\n],"traceName":"synthetic.json"}\n'


def kernel_names() -> list[str]:
    """79 names in the style of cuBLAS, PyTorch, Triton, FlashAttention and NCCL."""
    names = [
        f"nvjet_tst_{m}x{n}_64x{s}_2x1_v_bz_coopB_TNN" for m in (64, 128, 192, 256) for n in (64, 128) for s in (4, 5)
    ]
    names += [
        f"sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize{m}x128x128_stage{s}" for m in (64, 128) for s in (3, 4)
    ]
    names += [
        f"void at::native::vectorized_elementwise_kernel<{v}, at::native::{functor}, std::array<char*, {a}ul> >(int)"
        for v in (4, 8)
        for a in (2, 3)
        for functor in (
            "CUDAFunctor_add<float>",
            "sigmoid_kernel_cuda",
            "FillFunctor<c10::BFloat16>",
            "exp_kernel_cuda",
        )
    ]
    names += [f"triton_poi_fused_mul_add_silu_view_{number}" for number in range(14)]
    names += [f"triton_red_fused_native_layer_norm_mean_{number}" for number in range(8)]
    names += [f"void at::native::reduce_kernel<512, {v}, at::native::ReduceOp<float> >(float)" for v in (1, 2, 4)]
    names += [
        f"void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<{d}, 128, 64, 4> >(Flash_fwd_params)" for d in (64, 128)
    ]
    names += [
        f"void multi_tensor_apply_kernel<TensorListMetadata<{v}>, AdamFunctor<float>, float>(int)" for v in (3, 4)
    ]
    names += [
        f"ncclDevKernel_{what}_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        for what in ("AllReduce", "ReduceScatter")
    ]
    names += [f"chunk_gated_delta_rule_fwd_kernel_h_blockdim{size}" for size in (16, 32, 64, 128)]
    names += [
        f"void vllm::scaled_fp8_quant_kernel_strided<c10::BFloat16, c10::Float8_e4m3fn, {v}>(float*)" for v in (1, 2)
    ]
    names += [
        f"void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, {v}, 128, 1>(float*)"
        for v in (2, 3)
    ]
    names += [f"void at::native::vectorized_layer_norm_kernel<float, float, {v}>(int)" for v in (1, 2, 3, 4)]
    assert len(names) == len(set(names)) == 79, len(names)
    return names


def write(path: Path, device_events: int, seed: int = 1) -> int:
    """Write a trace with so many device events; returns its size in bytes. The same arguments give the same bytes."""
    rng = random.Random(seed)
    cycle = [_shape(rng, kernel_names()) for _ in range(CYCLE)]
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD)
        file.write('{"ph":"M","name":"process_name","ts":0.000,"pid":1102,"tid":0,"args":{"name":"python"}}')
        host, device, number = 1_000_000, 1_020_000, 0  # nanoseconds
        step_from = host
        while number < device_events:
            parts = []
            for _ in range(min(1000, device_events - number)):
                kind, text, length, overlaps = cycle[number % CYCLE]
                begin = device - overlaps if number else device
                stream = 7 if not overlaps else 20
                parts.append(
                    f',\n{{"ph":"X","cat":"{kind}",{text[0]},"pid":0,"tid":{stream},"ts":{_us(begin)},"dur":{_us(length)},'
                    f'"args":{{"External id":{number},"device":0,"context":1,"stream":{stream},"correlation":{number},'
                    f"{text[1]}}}}}"
                    f',\n{{"ph":"X","cat":"cuda_runtime","name":"{text[2]}","pid":1102,"tid":1102,"ts":{_us(host)},'
                    f'"dur":2.871,"args":{{"External id":{number},"cbid":211,"correlation":{number}}}}}'
                )
                if number % 10 == 0:
                    parts.append(
                        f',\n{{"ph":"s","id":{number},"pid":1102,"tid":1102,"ts":{_us(host)},"cat":"ac2g","name":"ac2g"}}'
                        f',\n{{"ph":"f","id":{number},"pid":0,"tid":{stream},"ts":{_us(begin)},"cat":"ac2g","name":"ac2g",'
                        f'"bp":"e"}},\n{{"ph":"X","cat":"cpu_op","name":"aten::{text[3]}","pid":1102,"tid":1102,'
                        f'"ts":{_us(host - 2000)},"dur":19.044,"args":{{"External id":{number},"Ev Idx":{number}}}}}'
                    )
                host += 4_321
                device = max(device, begin + length) + (0 if overlaps else 700)
                device = max(device, host + 3_000)
                number += 1
                if number % STEP_EVENTS == 0 or number == device_events:
                    step = (number - 1) // STEP_EVENTS
                    parts.append(
                        f',\n{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{step}","pid":1102,"tid":1102,'
                        f'"ts":{_us(step_from)},"dur":{_us(host - step_from)},"args":{{"External id":{number}}}}}'
                    )
                    step_from = host
            file.write("".join(parts))
        file.write(TAIL)
    return path.stat().st_size


def _us(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def _shape(rng: random.Random, names: list[str]) -> tuple[str, tuple[str, str, str, str], int, int]:
    """One device event without its times: category, texts, length in ns, and by how much it overlaps the one before."""
    length = int(rng.lognormvariate(8.2, 0.8))
    what = rng.random()
    if what < 0.97:
        blocks = rng.choice((1, 2, 4, 8)) * 132
        args = (
            f'"queued":0,"registers per thread":{rng.choice((16, 32, 40, 168, 255))},"shared memory":'
            f"{rng.choice((0, 49152))},"
            f'"blocks per SM":{blocks / 132:.6f},"warps per SM":{blocks / 33:.6f},'
            f'"grid":[{blocks},1,1],"block":[128,1,1],'
            '"est. achieved occupancy %":43'
        )
        texts = (f'"name":"{rng.choice(names)}"', args, "cudaLaunchKernel", rng.choice(("mm", "add", "layer_norm")))
        return "kernel", texts, length, length // 3 if rng.random() < 0.05 else 0
    size = rng.choice((4, 4096, 1 << 20))
    args = f'"bytes":{size},"memory bandwidth (GB/s)":{size / length:.6f}'
    if what < 0.995:
        return "gpu_memcpy", ('"name":"Memcpy DtoD (Device -> Device)"', args, "cudaMemcpyAsync", "copy_"), length, 0
    return "gpu_memset", ('"name":"Memset (Device)"', args, "cudaMemsetAsync", "zero_"), length, 0
