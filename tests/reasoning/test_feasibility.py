"""Budget, rate, utilisation and verdict, from the published case and from hand arithmetic."""

from __future__ import annotations

import pytest

from campaign.errors import BadInput, UnknownName
from campaign.feasibility import budget, peaks, quantities
from campaign.feasibility.found import IF_IDEAS_WIN, NOT_HERE, NOW, Attention, Goal, Overhead, Rate, Roof
from campaign.feasibility.utilisation import flops_per_token, utilisation
from campaign.feasibility.verdict import judge

# Case F of the case studies: 1.0009 B parameters x 20 tokens in 7 days at 14.08k tokens/s.
CASE = Goal(token_budget=20.018e9, days=7, parameters=1.0009e9, tokens_per_parameter=20)
RATE = Rate("given", 14_080, "", "given")
# Case B: shares in percent; the 29.6 that it does not name in three parts.
SHARES = {"gemm": 24.8, "recurrent": 22.4, "pointwise": 12.3, "quantization": 10.9, "attention": 10.0, "rest": 19.6}


def diagnosis(shares=SHARES, ideas=(), stack=(), idle=0.0):
    """A recorded diagnosis whose families run one after another, each for its share of 100 ns, then `idle` ns."""
    whole = sum(shares.values()) + idle
    return {
        "id": "d1",
        "workload": "tiny",
        "stack": list(stack),
        "trace": {"file": "step.json"},
        "diagnosis": {
            "families": {
                "range_ns": whole,
                "busy_ns": sum(shares.values()),
                "shares": [{"family": name, "title": name, "charged_ns": part} for name, part in shares.items()],
            },
            "ceilings": {
                "all_halved": whole / (whole - sum(shares.values()) / 2),
                "each": [
                    {"family": name, "share_of_range": part / whole, "removed": whole / (whole - part)}
                    for name, part in sorted(shares.items(), key=lambda one: -one[1])
                ],
            },
            "ideas": list(ideas),
        },
    }


def idea(name, acts_on, predicted, ceiling, matched=None, struck=False):
    return {
        "hypothesis": name, "acts_on": acts_on, "matched": [acts_on] if matched is None else matched, "share": None,
        "ceiling": ceiling, "predicted": predicted, "struck": struck, "why": "not above the floor" if struck else "",
    }  # fmt: skip


def decided(name, verdict, ruling="", revoked=False):
    row = {"id": f"{name}-1", "hypothesis": name, "sequence": 3, "line": 9, "revoked": revoked, "ruling": ruling}
    return {**row, "stack": [], "verdict": {"verdict": verdict, "effect": None}}


def test_case_f_is_the_published_one_to_its_printed_rounding():
    found = judge(CASE, [RATE])
    assert found.goal.token_budget == 20_018_000_000
    assert found.required_tokens_per_second == pytest.approx(33_100, abs=5)  # 33.10k
    assert found.judged.gap == pytest.approx(2.35, abs=0.005)
    # Published as 16.45; 20.018e9 / (14,080 x 86,400) is 16.4552, and a lower bound is cut, not rounded up.
    assert found.judged.lower_bound_days == pytest.approx(16.4552, abs=1e-4)
    assert quantities.shown_days(found.judged.lower_bound_days, down=True) == "16.45 days"
    assert found.verdict == NOT_HERE
    assert found.sentence == (
        "not reachable by kernel work on this device: more or faster devices, a smaller budget, or a "
        "precision/algorithm redesign"
    )


def test_case_f_says_what_would_do_instead():
    would = judge(CASE, [RATE]).would_do
    assert would.devices == 3  # 2.35 of them
    assert would.token_budget == 14_080 * 7 * 86_400
    assert would.days == pytest.approx(16.4552, abs=1e-4)
    # A model of n parameters runs N/n as fast and wants 20 n tokens: n = N / sqrt(2.35075)
    assert would.parameters == pytest.approx(652.8e6, rel=1e-3)
    smaller = Goal(20 * would.parameters, 7, would.parameters, 20)
    assert budget.required_tokens_per_second(smaller) == pytest.approx(14_080 * 1.0009e9 / would.parameters)


@pytest.mark.parametrize(
    ("efficiency", "devices"),
    [(1.0, 3), (0.8, 3), (0.7836, 3), (0.7835, 4), (0.5, 5)],  # 2.35075 / efficiency, rounded up
)
def test_devices_needed_grow_as_their_scaling_falls(efficiency, devices):
    goal = Goal(CASE.token_budget, 7, scaling_efficiency=efficiency)
    assert judge(goal, [RATE]).would_do.devices == devices


def test_efficiency_counts_from_the_second_device_on():
    alone, two = (judge(Goal(20.018e9, 7, devices=n, scaling_efficiency=0.9), [RATE]).judged for n in (1, 2))
    assert alone.all_devices_tokens_per_second == 14_080
    assert two.all_devices_tokens_per_second == pytest.approx(25_344)
    # so that two devices at 0.4 are slower than one, and one is never said to need a second
    assert budget.devices_needed(100.0, 100.0, 0.4) == 1
    assert budget.devices_needed(100.0, 101.0, 0.4) == 3


def test_three_devices_reach_case_f():
    found = judge(Goal(20.018e9, 7, 1.0009e9, 20, devices=3), [RATE])
    assert found.verdict == NOW
    assert found.judged.lower_bound_days == pytest.approx(16.4552 / 3, abs=1e-4)


def test_overhead_takes_days_from_training_and_adds_them_to_the_bound():
    goal = Goal(864_000.0, 1, overheads=(Overhead("evaluation", 0.15), Overhead("checkpoint", 0.05)))
    found = judge(goal, [Rate("given", 5.0, "", "")])
    assert found.required_tokens_per_second == pytest.approx(12.5)  # 10 tokens/s over 80 % of the day
    assert found.judged.lower_bound_days == pytest.approx(2.5)
    assert found.would_do.token_budget == pytest.approx(5 * 0.8 * 86_400)
    assert found.excluded == ("optimizer", "input")
    assert judge(Goal(1.0, 1, overheads=(Overhead("other", 0.1),)), [RATE]).excluded == ()


def test_palm_s_published_utilisations_come_out():
    # PaLM 540B (Chowdhery et al. 2022, appendix B): 238.3k tokens/s on 6,144 TPU v4 of 275 TFLOP/s; 118 layers, 48
    # heads of 256, 2,048 tokens: 46.2 %, and 45.7 % without self-attention.
    tpu = Roof("TPU v4", "bf16", 275e12, None, "given", "")
    attention = Attention(2048, 118, 48 * 256)
    with_attention = utilisation(tpu, flops_per_token(540.35e9, attention), 238.3e3, 1.0, 6144)
    without = utilisation(tpu, flops_per_token(540.35e9), 238.3e3, 1.0, 6144)
    assert with_attention.now == pytest.approx(0.462, abs=5e-4)
    assert without.now == pytest.approx(0.457, abs=5e-4)


def test_smaller_model_keeps_attention_in_its_operations():
    # a = 12 x 1 x 1 x 0.5 = 6, so that F(n) = 6 n + 6. N = 9, budget 2 n, at a rate of 1 over 10 s and F(9) = 60:
    # 2 n (6 n + 6) = 600, n^2 + n = 50, n = (sqrt(201) - 1) / 2
    goal = Goal(18.0, 10 / 86_400, 9.0, 2.0, attention=Attention(0.5, 1, 1.0))
    assert judge(goal, [Rate("given", 1.0, "", "")]).would_do.parameters == pytest.approx((201**0.5 - 1) / 2)
    # With a fixed budget of 20 tokens the gap is 2: 6 n + 6 = 30
    fixed = Goal(20.0, 10 / 86_400, 9.0, attention=Attention(0.5, 1, 1.0))
    assert judge(fixed, [Rate("given", 1.0, "", "")]).would_do.parameters == pytest.approx(4.0)


def test_more_than_the_peak_is_not_on_this_device_however_small_the_gap():
    # 6 FLOP a token and parameter, 10 parameters: 60 FLOP a token; the peak allows 1.5 tokens/s, 1.6 are wanted
    roof = Roof("slow", "bf16", 90.0, None, "given", "")
    goal = Goal(1.6 * 86_400, 1, 10.0)
    found = judge(goal, [Rate("given", 1.4, "", "")], [roof])
    assert (found.verdict, found.why) == (NOT_HERE, "it would take 107 % of the bf16 peak of slow")
    measured = Roof("slow", "bf16", 90.0, None, "measured", "")
    assert judge(goal, [Rate("given", 1.4, "", "")], [measured]).verdict == IF_IDEAS_WIN


def test_case_b_has_no_single_family_that_reaches_the_gap_of_case_f():
    found = judge(CASE, [RATE], diagnosis=diagnosis())
    assert found.verdict == NOT_HERE
    assert max(one.removed for one in found.ceilings.families) == pytest.approx(1 / 0.752)
    recurrent = next(one for one in found.ceilings.families if one.family == "recurrent")
    assert recurrent.removed == pytest.approx(1.289, abs=5e-4)
    assert found.ceilings.families_needed == 3  # 1 - 1 / 2.35 = 57.5 % gone: 24.8 + 22.4 is too little
    assert "No single family reaches 2.35x" in found.why and "it takes 3 families gone" in found.why


def test_best_kernels_halve_every_family_and_leave_no_idle_time():
    found = judge(CASE, [RATE], diagnosis=diagnosis({"gemm": 80.0}, idle=20.0))
    assert found.ceilings.all_halved == pytest.approx(100 / 60)
    assert found.ceilings.best_kernels == pytest.approx(2.5)
    assert found.verdict == IF_IDEAS_WIN  # 2.35 is within it
    assert "none is open" in found.sentence


def test_the_fewest_ideas_that_claim_the_gap_are_named():
    ideas = [
        idea("a", "gemm", 1.2, 1 / 0.752),
        idea("b", "recurrent", 1.3, 1 / 0.776),
        idea("c", "pointwise", 1.1, 1 / 0.877),
    ]
    goal = Goal(14_080 * 1.5 * 86_400, 1)
    found = judge(goal, [RATE], diagnosis=diagnosis(ideas=ideas))
    assert found.verdict == IF_IDEAS_WIN
    # b counts for its ceiling of 1.2887; with a 1.546
    assert [one.hypothesis for one in found.ideas] == ["b", "a"]
    assert found.ideas_product == pytest.approx(1.2 / 0.776)
    assert found.ideas_allowed == pytest.approx(1 / (1 - 0.248 - 0.224))
    assert found.sentence == "reachable if these ideas win: b 1.29x, a 1.20x: 1.55x together, 1.50x is needed"


def test_ideas_that_act_on_one_family_share_its_ceiling():
    ideas = [idea("a", "gemm", 1.25, 1 / 0.752), idea("b", "gemm", 1.25, 1 / 0.752)]
    goal = Goal(14_080 * 1.5 * 86_400, 1)
    found = judge(goal, [RATE], diagnosis=diagnosis(ideas=ideas))
    assert found.ceilings.claimed == pytest.approx(1.5625)  # more than 1.5
    assert found.ceilings.allowed == pytest.approx(1 / 0.752)  # but all of it gone gives 1.33
    assert found.sentence.startswith("reachable if these ideas win more than they predict: a 1.25x, b 1.25x")


def test_idea_that_no_profile_bounds_counts_for_its_prediction():
    ideas = [idea("a", "recompute", 1.6, None, matched=[]), idea("b", "dispatch", 1.3, 1.2)]
    found = judge(Goal(14_080 * 1.9 * 86_400, 1), [RATE], diagnosis=diagnosis(ideas=ideas))
    assert found.ceilings.claimed == pytest.approx(1.92)
    assert found.ceilings.allowed == pytest.approx(1.92)
    assert [one.hypothesis for one in found.ideas] == ["a", "b"]


def test_ideas_that_are_struck_accepted_or_rejected_are_left_out_and_said():
    names = ("struck", "standing", "lost", "ruled", "slower", "open", "revoked")
    ideas = [idea(name, "gemm", 0.99 if name == "slower" else 1.1, 1.33, struck=name == "struck") for name in names]
    decisions = [decided("standing", "accept"), decided("lost", "reject"), decided("ruled", "accept", "reject"),
                 decided("revoked", "reject", revoked=True)]  # fmt: skip
    ideas.append(idea("aa_null", "nothing", 1.0, None, matched=[]))
    found = judge(CASE, [RATE], (), diagnosis(ideas=ideas, stack=("standing",)), decisions, decisions[:1])
    assert [one.hypothesis for one in found.ceilings.ideas] == ["open", "revoked"]
    assert [one.partition(":")[0] for one in found.ceilings.left_out] == [
        "struck",
        "standing",
        "lost",
        "ruled",
        "slower",
    ]
    assert found.notes == ()


def test_diagnosis_of_another_stack_is_said():
    found = judge(CASE, [RATE], diagnosis=diagnosis(stack=("gone",)))
    assert found.notes == ("the diagnosis is of the stack gone, which has moved: profile head again",)


def test_rate_that_is_exactly_enough_is_reachable_now():
    assert judge(Goal(14_080 * 86_400, 1), [RATE]).verdict == NOW


@pytest.mark.parametrize(
    ("text", "value"),
    [("14.08k", 14_080), ("14.08K tok/s", 14_080), ("1.0009e9", 1.0009e9), ("1.0009B", 1.0009e9), ("1.5T", 1.5e12),
     ("20", 20), (".5m", 5e5), ("14.08 k", 14_080), ("1e3k", 1e6)],
)  # fmt: skip
def test_large_numbers_are_read_with_their_units(text, value):
    assert quantities.large(text, "--x", "a count", 1, 1e15) == pytest.approx(value)


NO_NUMBERS = ("", "k", "1.2.3", "nan", "inf", "-1", "0", "0.9", "1e400", "1e16", "14,08k", "1 2", "1k k", "٣")


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number_is_refused_with_the_rule_and_a_command(text):
    with pytest.raises(BadInput, match=r"--x .*: a count, from 1 to 1e") as refused:
        quantities.large(text, "--x", "a count", 1, 1e15)
    assert refused.value.remedy.startswith("campaign feasibility --tokens-per-second 14.08k")


@pytest.mark.parametrize(("text", "value"), [("7", 7), ("7d", 7), ("36h", 1.5), ("2w", 14), ("7 days", 7)])
def test_days_are_read_with_their_units(text, value):
    assert quantities.days(text, "--days", 100) == pytest.approx(value)


@pytest.mark.parametrize(("text", "value"), [("3%", 0.03), ("0.03", 0.03), ("0", 0.0)])
def test_shares_are_read_as_parts_or_per_cent(text, value):
    assert quantities.part(text, "--x", "a share") == pytest.approx(value)


@pytest.mark.parametrize("text", ["3", "100%", "-1%", "x"])
def test_share_of_the_whole_or_more_is_refused(text):
    with pytest.raises(BadInput, match="from 0 to below 1"):
        quantities.part(text, "--x", "a share")


@pytest.mark.parametrize(
    ("value", "text"),
    [(20.018e9, "20.018B"), (1.0009e9, "1.0009B"), (999_999, "1M"), (14_080, "14.08k"), (512, "512"), (0.5, "0.5")],
)
def test_large_numbers_are_shown_as_a_person_reads_them(value, text):
    assert quantities.shown(value) == text


def test_limits_are_rounded_in_the_safe_direction():
    assert quantities.shown(652.89e6, 4, down=True) == "652.8M"
    assert quantities.shown(999_999, 4, down=True) == "999.9k"
    assert quantities.shown(8.5e9, 4, down=True) == "8.5B"
    assert quantities.shown_days(16.455, down=True) == "16.45 days"
    assert quantities.shown_days(16.451, down=False) == "16.46 days"
    assert quantities.shown_days(7.0, down=False) == quantities.shown_days(7.0, down=True) == "7 days"


@pytest.mark.parametrize("row", peaks.devices(), ids=lambda row: row["name"])
def test_every_device_names_its_maker_s_page_and_only_dense_rates_that_halve_by_format(row):
    assert row["source"].split("https://")[1].startswith(("www.nvidia.com", "resources.nvidia.com", "nvdam", "www.amd"))
    rates = row["teraflops"]
    assert set(rates) <= set(peaks.PRECISIONS)
    assert row["dram_gigabytes"] > 500
    for wide, narrow in (("bf16", "fp8"), ("fp8", "fp4"), ("tf32", "bf16")):
        if wide in rates and narrow in rates:  # a tensor core does twice as many of half the width
            assert rates[narrow] / rates[wide] == pytest.approx(2, rel=0.03)


def test_device_goes_by_several_names_and_an_unknown_one_names_the_nearest():
    assert peaks.roof("NVIDIA H100 SXM5", "bf16") == peaks.roof("h100", "bf16")
    assert peaks.roof("h100", "fp8").flops_per_second == 1979e12
    with pytest.raises(UnknownName, match="did you mean 'h100'"):
        peaks.roof("h1000", "bf16")
    with pytest.raises(BadInput, match="has no rate for it"):
        peaks.roof("a100", "fp8")
