"""A diagnosis in a terminal and in a pipe: the issue's order, readable units, nothing that steers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from campaign import units
from campaign.diagnosis import found
from campaign.report.diagnosis_sections import Top
from campaign.report.diagnosis_text import diagnosis_text
from campaign.report.kernel_names import shown
from campaign.traces import timeline
from campaign.traces.timeline import Notice
from tests.report import diagnosed

HOSTILE = "\x1b[2J\x1b]0;owned\x07evil \x9b31m \u202egnp.exe \r[bold red]x[/] kernel"


def text(*diagnoses, **asked) -> str:
    asked = {"terminal": False, "width": 120} | asked
    return diagnosis_text(diagnoses or [diagnosed.diagnosis()], **asked)


def line(said: str, start: str) -> list[str]:
    """The words of the line that begins with `start`."""
    return next(one for one in said.splitlines() if one.strip().startswith(start)).split()


def test_sections_stand_in_the_order_in_which_they_are_read():
    titles = [one for one in text().splitlines() if re.match(r"\d\. ", one)]
    assert titles == ["1. Dispatch", "2. Families", "3. Ceilings", "4. Copies", "5. Kernels", "6. What to try"]


def test_dispatch_has_the_figures_of_case_a_with_units():
    said = text()
    # 12.810 s - 12.789 s = 21 ms idle, 21/12,810 = 0.164 %, over 10 steps 2.10 ms; 49,480 / 10 = 4,948.
    assert line(said, "0 NVIDIA H100")[3:11] == ["12.81", "s", "12.79", "s", "21.00", "ms", "0.164", "%"]
    assert "2.100 ms    49,480   4,948" in said
    assert "device-bound: the device is busy 99.836 % of the range" in said
    assert "overlap: compare them, never add them" in said


def test_notices_come_first_and_those_that_lower_confidence_before_the_rest():
    said = text()
    order = [said.index(words) for words in ("LOWER CONFIDENCE: the profiler dropped 12 events", "may be too large",
                                             "note: 2 control characters", "1. Dispatch")]  # fmt: skip
    assert order == sorted(order)


def test_unclassified_share_is_always_said_and_its_kernels_are_named():
    assert "Unclassified: 29.6 % of the busy time" in text()
    assert "mystery_kernel        10  3.786 s  29.6 %" in text()
    clean = replace(diagnosed.families(), unclassified_share=0.0, unclassified=())
    assert "Unclassified: 0 % of the busy time." in text(diagnosed.diagnosis(families=clean))


def test_families_beyond_the_first_ten_are_one_line_so_that_shares_add_up():
    shares = tuple(diagnosed.share(f"f{place}", f"Family {place}", 0.05, 10) for place in range(20))
    made = diagnosed.diagnosis(families=replace(diagnosed.families(), shares=shares))
    said = text(made)
    assert line(said, "10 more")[:4] == ["10", "more", "50.0", "%"]
    assert "Family 9 " in said and "Family 10" not in said
    assert "Family 19" in text(made, top=Top(20, 20)) and "more" not in text(made, top=Top(20, 20)).split("3. ")[0]


def test_target_names_the_cheapest_sets_or_says_that_there_is_none():
    said = text()
    assert "2.350x by removing  Other + GEMM bf16 + Recurrent, convolution, gating (4.310x)" in said
    assert "2.350x by halving   no set of families" in said


def test_kernel_has_recomputed_and_reported_occupancy_beside_each_other_and_what_not_to_try():
    said = text()
    assert "recomputed 16.7 % (limited by registers), the tool says 16.7 % theoretical, 15.9 % achieved" in said
    assert "long_scoreboard 56.0 %, wait 12.0 %, barrier 3.00 %, sleeping 2.00 %" in said and "lg_thr" not in said
    assert line(said, "do not try") == "do not try a lower register cap: it would spill more".split()
    assert "3.38 % of the busy time, ceiling 1.035x, 1 launch profiled, 480 traced" in said


def test_what_the_counters_lack_is_left_out_and_never_zero():
    bare = replace(diagnosed.kernel(), counters=replace(diagnosed.counters(), spill_requests=None, waves=None),
                   wave_efficiency=None)  # fmt: skip
    said = text(diagnosed.diagnosis(kernels=(bare,)))
    assert "    spills" not in said and "    waves" not in said


def test_idea_that_cannot_exceed_the_floor_is_struck_out_with_the_reason():
    said = text()
    assert "struck out: 1.0016x cannot exceed 1.010x" in said
    terminal = text(terminal=True)
    assert "\x1b[" in terminal  # colours, and a line through it where the terminal can
    assert "struck out:" in terminal


def test_reports_alone_have_kernels_and_neither_dispatch_nor_ideas():
    said = text(diagnosed.kernels_only())
    assert [one for one in said.splitlines() if re.match(r"\d\. ", one)] == ["1. Kernels"]
    assert "1 launch profiled" in said and "ceiling" not in said.split("This is profile")[0]


def test_several_profiles_are_several_diagnoses():
    other = diagnosed.diagnosis(source=replace(diagnosed.SOURCE, file="other.sqlite"))
    said = text(diagnosed.diagnosis(), other)
    assert said.count("Diagnosis of") == said.count("This is profile evidence") == 2


@pytest.mark.parametrize("made", [diagnosed.diagnosis(), diagnosed.kernels_only()])
def test_every_answer_ends_with_what_it_is_and_the_command_that_measures(made):
    end = " ".join(text(made).split())[-330:]
    assert "nothing here is a speedup" in end and end.endswith("campaign hypothesis=NAME.")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_longer_than_the_terminal_and_a_pipe_has_no_colours(width):
    long = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, " + "x" * 900 + ">()"
    kernel = replace(diagnosed.kernel(), name=long, verdict="tail effect")
    shares = (diagnosed.share("pointwise", "Pointwise", 1.0, 3, found.KernelShare(long, "pointwise", 3, 9, 9)),)
    made = diagnosed.diagnosis(kernels=(kernel,), families=replace(diagnosed.families(), shares=shares))
    said = text(made, width=width)
    assert "\x1b" not in said
    if width >= 80:
        assert [one for one in said.splitlines() if len(one) > width] == []
    assert not [one for one in said.splitlines() if one != one.rstrip()]


def test_columns_that_do_not_fit_are_named():
    assert "(left out on 80 columns: alone, a step)" in text(width=80)
    assert "left out" not in text(width=160)


def test_hostile_names_are_shown_and_not_obeyed():
    hostile = found.KernelShare(HOSTILE, "other", 1, 5, 5)
    families = replace(
        diagnosed.families(), shares=(diagnosed.share("other", HOSTILE, 1.0, 1, hostile),), unclassified=(hostile,)
    )
    dispatch = replace(
        diagnosed.dispatch(),
        gaps=(found.Gap(0, 5_000, 9_000, HOSTILE, HOSTILE, "host", HOSTILE),),
        passes=(found.Pass(HOSTILE, 1, 1, None),),
        metrics=(timeline.Metric(0, HOSTILE, 1, 1.0, 1.0),),
        sentence=HOSTILE,
        steps=found.Steps(None, HOSTILE, HOSTILE),
    )
    kernel = replace(diagnosed.kernel(), name=HOSTILE, numbers=(HOSTILE,), missing=(HOSTILE,),
                     counters=replace(diagnosed.counters(), name=HOSTILE, spill_counter=HOSTILE + "{} {0}",
                                      stalls_percent={HOSTILE: 9.0}))  # fmt: skip
    made = diagnosed.diagnosis(
        source=replace(diagnosed.SOURCE, file=HOSTILE, tool=HOSTILE),
        families=families,
        dispatch=dispatch,
        kernels=(kernel,),
        notices=(Notice("x", HOSTILE),),
        ideas=(found.IdeaCeiling(HOSTILE, HOSTILE, (HOSTILE,), None, None, 1.1, True, HOSTILE),),
        unjoined=(HOSTILE,),
    )
    said = text(made)
    assert {one for one in said if not one.isprintable()} - {"\n"} == set()
    assert said.count("\\x1b[2J") >= 12 and "[bold red]x[/]" in said
    colours = set(re.findall(r"\x1b\[[0-9;]*[A-Za-z]", text(made, terminal=True)))
    assert all(code.endswith("m") for code in colours)


@pytest.mark.parametrize(
    ("name", "room", "expected"),
    [
        ("void flash::flash_fwd_kernel<Traits<128> >(Params)", 60, "flash::flash_fwd_kernel<Traits<128>>"),
        ("void a::b::c::kernel<d::E>(int)", 12, "kernel<E>"),
        ("k" * 100, 20, "k" * 17 + "..."),
        ("", 20, ""),
    ],
)
def test_name_gives_way_from_its_least_telling_parts(name, room, expected):
    assert shown(name, room) == expected


def test_instances_of_one_template_are_still_told_apart():
    start = "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, "
    one, other = (
        shown(f"{start}at::native::{op}<float> >, std::array<char*, 3ul> >(int)", 60) for op in ("Mul", "Add")
    )
    assert one != other and max(len(one), len(other)) <= 60


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0 ns"), (640, "640 ns"), (0.5, "0.500 ns"), (999.99, "1.000 us"), (12_345, "12.35 us"), (2.1e6, "2.100 ms"),
     (12.81e9, "12.81 s"), (1.281e12, "1,281 s"), (-640, "-640 ns")],
)  # fmt: skip
def test_nanoseconds_take_the_unit_that_reads_well(value, expected):
    assert units.nanoseconds(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0 %"), (1, "100 %"), (0.248, "24.8 %"), (0.0338, "3.38 %"), (0.00164, "0.164 %"), (1e-6, "<0.001 %"),
     (0.9996, ">99.9 %"), (0.1, "10.0 %")],
)  # fmt: skip
def test_shares_never_round_to_all_or_nothing(value, expected):
    assert units.share(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0"), (49_480, "49,480"), (12.5, "12.5"), (9.65e6, "9.65M"), (999.99, "1,000"), (0.25, "0.25"), (-96, "-96")],
)
def test_counts_have_their_thousands_apart(value, expected):
    assert units.many(value) == expected
