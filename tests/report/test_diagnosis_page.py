"""A diagnosis as Markdown and HTML: the same numbers as in the terminal, and names that stay names."""

from __future__ import annotations

from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from campaign.diagnosis import found
from campaign.report.diagnosis_page import diagnosis_page
from campaign.traces import timeline
from campaign.traces.timeline import Notice
from tests.report import diagnosed
from tests.report.test_html import HOSTILE, Page

NAME = "evil`|" + HOSTILE + "\x1b[2J"


def hostile():
    kernel = found.KernelShare(NAME, "other", 1, 5, 5)
    dispatch = replace(
        diagnosed.dispatch(),
        gaps=(found.Gap(0, 5_000, 9_000, NAME, NAME, "host", NAME),),
        passes=(found.Pass(NAME, 1, 1, None),),
        metrics=(timeline.Metric(0, NAME, 1, 1.0, 1.0),),
        steps=found.Steps(3, NAME, NAME),
    )
    return diagnosed.diagnosis(
        source=replace(diagnosed.SOURCE, file=NAME, tool=NAME),
        dispatch=dispatch,
        families=replace(
            diagnosed.families(), shares=(diagnosed.share("other", NAME, 1.0, 1, kernel),), unclassified=(kernel,)
        ),
        kernels=(replace(diagnosed.kernel(), name=NAME, numbers=(NAME,)),),
        notices=(Notice("x", NAME),),
        ideas=(found.IdeaCeiling(NAME, NAME, (), None, None, 1.1, True, NAME),),
    )


def test_html_is_well_formed_needs_nothing_and_links_to_its_own_sections():
    page = Page(diagnosis_page([diagnosed.diagnosis()], "html"))
    assert page.open == []
    policy = next(attributes for _, attributes in page.tags if attributes.get("http-equiv"))
    assert policy["content"].startswith("default-src 'none'")
    places = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert places == ["#dispatch", "#families", "#ceilings", "#copies", "#kernels", "#what-to-try"]
    anchors = {f"#{attributes['id']}" for tag, attributes in page.tags if tag == "h2"}
    assert anchors == set(places)


@pytest.mark.parametrize("cell", ["0.164 %", "2.100 ms", "4,948", "1.289x", "compute-heavy conversion"])
def test_numbers_are_those_of_the_terminal(cell):
    made = [diagnosed.diagnosis()]
    assert cell in Page(diagnosis_page(made, "html")).cells
    assert f"| {cell} " in diagnosis_page(made, "md")


@pytest.mark.parametrize("form", ["md", "html"])
def test_page_ends_with_what_it_is_and_the_command_that_measures(form):
    said = diagnosis_page([diagnosed.diagnosis()], form)
    assert "nothing here is a speedup" in said and "campaign hypothesis=NAME" in said


def test_hostile_names_stay_text_in_html():
    text = diagnosis_page([hostile()], "html")
    page = Page(text)
    assert page.open == []
    assert not {tag for tag, _ in page.tags} & {"script", "img", "iframe", "object", "form", "link", "base", "input"}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes), tag
        assert tag != "a" or str(attributes["href"]).startswith("#")
    assert "\x1b" not in text
    assert sum("<script>alert(1)</script>" in cell for cell in page.cells) >= 5


def test_hostile_names_stay_text_where_raw_html_is_allowed():
    """Markdown goes where others render it, as GitHub does with HTML, links and images on."""
    text = diagnosis_page([hostile()], "md")
    assert "\x1b" not in text
    page = Page(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text))
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "img", "iframe", "a", "form"}
    assert page.open == []


def test_a_line_that_is_struck_out_is_struck_in_every_cell_but_its_reason():
    text = diagnosis_page([diagnosed.diagnosis()], "md")
    (row,) = [line for line in text.splitlines() if "graph_replay" in line]
    *struck, reason = (cell.strip() for cell in row.strip("|").split("|"))
    assert len(struck) == 5 and all(cell.startswith("~~") and cell.endswith("~~") for cell in struck)
    assert reason.startswith("struck out: ")


def test_several_diagnoses_are_one_page_whose_sections_say_whose_they_are():
    page = Page(diagnosis_page([diagnosed.diagnosis(), diagnosed.kernels_only()], "html"))
    places = [str(attributes["href"]) for tag, attributes in page.tags if tag == "a"]
    assert len(places) == len(set(places)) == 7
    assert places[-1] == "#kernels-2"
