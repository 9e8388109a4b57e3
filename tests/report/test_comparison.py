"""A comparison of two traces: launches and time a step, and never a speedup."""

from __future__ import annotations

from dataclasses import replace

import pytest

from campaign.diagnosis import found
from campaign.report.comparison_text import comparison_page, comparison_text
from tests.report import diagnosed
from tests.report.test_html import HOSTILE, Page


def text(**changed) -> str:
    return comparison_text(diagnosed.comparison(**changed), terminal=False, width=120)


def test_total_and_targeted_changes_stand_side_by_side():
    said = text()
    # 4,948 - 4,852 = 96 launches of 4,948 are 2 %, and all of the family.
    assert "all  4,948 -> 4,852     -96" in said
    assert "Norm          96 -> 0     -96      9.600 ms -> 0 ns    -9.600 ms" in said
    assert "Only after: fused_norm_kernel" in said and "Only before: rms_norm_kernel" in said
    assert "same_kernel" not in said


def test_difference_of_traced_time_is_never_called_a_speedup():
    for said in (
        text(),
        comparison_page(diagnosed.comparison(), "md"),
        comparison_page(diagnosed.comparison(), "html"),
    ):
        flat = " ".join(said.split())
        assert "no difference here is a speedup" in flat
        assert "What gives a speedup: campaign hypothesis=NAME" in flat
        assert "faster" not in flat.replace("above 1 is faster", "")


def test_ranges_that_do_not_match_say_so_in_the_titles_and_why():
    said = text(matched=False, why="10 graph launches against 7", before_steps=found.Steps(None, "", "nothing says"))
    assert "10 graph launches against 7" in said
    assert "Families, in the whole range" in said and "a step\n" not in said
    assert "steps not known: nothing says" in said


def test_equal_traces_have_no_list_of_kernels():
    same = tuple(found.Change(f"k{place}", "other", 5.0, 5.0, 7.0, 7.0) for place in range(3))
    said = text(kernels=same, appeared=(), vanished=())
    assert "No kernel's launches or time differ." in said and "k0" not in said


def test_many_changes_are_cut_with_the_number_of_the_rest():
    many = tuple(found.Change(f"k{place:02}", "other", 0.0, 1.0, 0.0, 100.0 - place) for place in range(25))
    said = text(kernels=many)
    assert "k19" in said and "k20" not in said and "5 more changed" in said


@pytest.mark.parametrize("form", ["md", "html"])
def test_hostile_names_stay_text(form):
    change = found.Change(HOSTILE + "\x1b[2J", "other", 0.0, 1.0, 0.0, 9.0)
    made = diagnosed.comparison(
        kernels=(change,), families=(change,), appeared=(HOSTILE,), why=HOSTILE, matched=False,
        before=replace(diagnosed.SOURCE, file=HOSTILE),
    )  # fmt: skip
    said = comparison_page(made, form)
    assert "\x1b" not in said
    if form == "html":
        page = Page(said)
        assert page.open == [] and not {tag for tag, _ in page.tags} & {"script", "img", "iframe", "form"}
