"""Every family rule by its own real names, the shared sample of names, and the shares of real traces."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from campaign.diagnosis.busy import sweep
from campaign.diagnosis.families import Classifier, document, members, titles
from campaign.diagnosis.names import normal, symbol
from campaign.errors import BadInput
from campaign.traces import open_profile
from campaign.traces.timeline import Work

EXAMPLES = [
    (rule["family"], name) for kind in ("rules", "gemm") for rule in document()[kind] for name in rule["examples"]
]
# The labels of kernel_names.tsv that have another name here.
LABELS = {"comm": "communication", "layout_copy": "layout", "embedding_index": "embedding"}
NAMES = Path(__file__).parents[3] / "shared" / "data" / "kernel_names.tsv"
# Names of public profiles and of libraries' sources (vLLM, SGLang, TensorRT-LLM, TransformerEngine, FlashAttention,
# flash-linear-attention, mamba, Liger, bitsandbytes, aiter, CK, cuDNN, XLA, llama.cpp), each labelled by hand.
SEEN = Path(__file__).parent / "kernel_names.tsv"


@pytest.mark.parametrize(("expected", "name"), EXAMPLES, ids=lambda text: text[:60])
def test_every_rule_knows_its_own_examples(expected, name):
    found = Classifier().family(name)
    assert found == expected or (expected == "gemm" and found in members("gemm"))


def test_every_rule_has_examples_and_a_family_with_a_title():
    for rule in (*document()["rules"], *document()["gemm"]):
        assert rule["examples"], rule
        assert rule["family"] in {*titles(), "gemm"}
    for group, families in document()["groups"].items():
        assert set(families) <= set(titles()), group


@pytest.mark.parametrize("names", [SEEN, NAMES], ids=["seen", "shared"])
def test_every_name_of_the_samples_has_its_family(names):
    if not names.is_file():
        pytest.skip(f"{names} is not there")
    with names.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(rows) > 40
    wrong = [
        (row["family"], found, row["kernel_name"])
        for row in rows
        if (found := Classifier().family(row["kernel_name"])) != LABELS.get(row["family"], row["family"])
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void fbgemm_gpu::permute_1D_sparse_data_kernel<long>(int)", "layout"),  # a library's name is no reason
        ("triton_poi_fused__scaled_dot_product_flash_attention_cat_3", "pointwise"),
        ("_bmm_chunk_bwd_kernel", "recurrent"),
        # The option of a fused quantization is part of the name, also where it is not taken.
        ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_23Rmsnorm2dFusedQuantEnumE0ELNS_22Rmsnorm2dSensE", "norm"),
        (
            "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_23Rmsnorm2dFusedQuantEnumE2ELNS_22Rmsnorm2dSensE",
            "quantization",
        ),
        ("nvjet_sm100_ootst_128x128_Avec16UE4M3_Bvec16UE4M3_TNT", "gemm_fp4"),  # UE4M3 is a scale format of FP4
        ("nvjet_qqtst_128x256_Avec32UE8M0_TNT", "gemm_fp8"),
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_TNT", "gemm_fp16"),
        ("cutlass_80_tensorop_s1688gemm_128x128_16x4_nt_align4", "gemm_fp32"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_i16832gemm_s8_128x64_tn>(x)", "gemm_int8"),
        ("void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float>(lambda)", "pointwise"),
        ("aten::mm", "gemm_other"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "attention"),
        ("something_that_nobody_has_written_yet", "other"),
    ],
)
def test_traps_of_names(name, expected):
    assert Classifier().family(name) == expected


@pytest.mark.parametrize(
    ("kind", "expected"), [(Work.MEMCPY, "memcpy"), (Work.MEMSET, "memset"), (Work.GRAPH, "graph")]
)
def test_what_the_profiler_calls_a_copy_is_one_whatever_its_name(kind, expected):
    assert Classifier().family("flash_fwd_kernel", kind) == expected


# Shares of summed durations in percent, from the reference notes on trace formats.
SPLITS = {
    "tracelens_vllm_decode_graph_exec.json.gz": {"gemm_fp4": 65.6, "gemm_bf16": 11.5, "attention": 6.8, "moe": 5.9},
    "tracelens_b200_eager.json.gz": {"gemm_fp4": 44.7, "communication": 18.4, "memcpy": 6.9, "gemm_bf16": 6.7},
    "hta_diff_control.json.gz": {"communication": 32.6, "pointwise": 11.7},
    "kineto_resnet50_nw4_a.pt.trace.json.gz": {"conv": 57.5, "norm": 15.7, "gemm_fp32": 7.3},
}  # fmt: skip


@pytest.mark.parametrize("file", SPLITS)
def test_shares_of_real_traces_are_the_reference_ones(real_traces, file):
    timeline = open_profile(real_traces / file)
    busy = sweep(timeline, Classifier().family)
    whole = int(busy.summed_ns.sum())
    shares = {
        name: 100 * int(busy.summed_ns[busy.family == place].sum()) / whole for place, name in enumerate(busy.families)
    }
    assert {name: round(shares[name], 1) for name in SPLITS[file]} == SPLITS[file]
    assert shares.get("other", 0.0) < 5


def test_a_projects_own_rule_is_asked_first():
    mine = Classifier([{"family": "my_norm", "pattern": "flash_.*"}])
    assert mine.family("flash_fwd_kernel") == "my_norm"
    assert mine.family("flash_fwd_kernel", Work.MEMCPY) == "my_norm"
    assert mine.titles["my_norm"] == "my_norm"


@pytest.mark.parametrize(
    "rule",
    [{"family": "norm"}, {"family": "norm", "pattern": "("}, {"family": "No", "pattern": "x"}, "norm", {"pattern": 1}],
)  # fmt: skip
def test_a_rule_that_is_none_is_refused_with_its_place(rule):
    with pytest.raises(BadInput, match=r"conf/diagnosis.yaml, families, rule 2"):
        Classifier([{"family": "norm", "pattern": "x"}, rule])


def test_two_profilers_names_of_one_kernel_become_equal():
    traced = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*, int)"
    reported = "at::native::<unnamed>::CatArrayBatchedCopy<float, unsigned int, (int)2, (int)128, (int)1>(float *, int)"
    assert normal(traced) == normal(reported)
    assert symbol(traced) == "CatArrayBatchedCopy"


def test_a_hostile_name_takes_no_time():
    # Backtracking over it would never end: the suite's own time limit is the test.
    assert Classifier().family("a" * 4096 + "<" * 2000) == "other"
    assert Classifier().family("std::enable_if<" * 300) == "other"
    for piece in ("softmax_warp_f<,1,", "cijk_ab_", "chunk_a_", "set_kv_", "loop_reduce", "::<("):
        Classifier().family(piece * 1000)
