"""Figures as SVG and PNG: inert whatever the ledger's words are, readable on a phone, small, the same everywhere."""

from __future__ import annotations

import re
import struct
from itertools import combinations
from xml.etree import ElementTree

import pytest

from campaign.report.figures import WIDTH, Figure, figures, png, svg, svg_file, theme
from campaign.report.figures._palette import DARK, LIGHT
from campaign.report.figures._sheet import drawn
from campaign.report.figures._words import fitted, listed, plain
from campaign.report.reported import gather
from tests.report import figured, written

CAMPAIGNS = {
    "whole": figured.whole,
    "lively": figured.lively,
    "hostile": figured.hostile,
    "many": lambda ledger: figured.many(ledger, 200),
    "one": written.slower,
}
SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "g", "defs", "path", "use", "text", "clipPath", "rect"}
ATTRIBUTES = {
    *("viewBox", "width", "height", "role", "aria-label", "font-family", "stroke-linejoin", "style", "d", "x", "y"),
    *("transform", "id", "href", "clip-path", "fill"),
}  # fmt: skip


@pytest.fixture(scope="module", params=CAMPAIGNS)
def drawn_figures(request, tmp_path_factory):
    with written.opened(tmp_path_factory.mktemp(request.param)) as ledger:
        CAMPAIGNS[request.param](ledger)
        found = [one for one in figures(gather(ledger)) if isinstance(one, Figure)]
        yield {one: svg(one) for one in found}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    with written.opened(tmp_path_factory.mktemp("hostile")) as ledger:
        figured.hostile(ledger)
        yield {one.name: one for one in figures(gather(ledger)) if isinstance(one, Figure)}


def test_an_svg_holds_nothing_that_runs_loads_or_reaches_outside(drawn_figures):
    for one, text in drawn_figures.items():
        for element in ElementTree.fromstring(text).iter():
            assert element.tag.removeprefix(SVG) in ELEMENTS
            assert set(element.attrib) <= ATTRIBUTES, one.name
            assert element.get("href", "#").startswith(f"#{one.name}-" if "href" in element.attrib else "#")
        assert text.count("http") == 1 and 'xmlns="http://www.w3.org/2000/svg"' in text
        assert "<style" not in text and "<script" not in text and "<!--" not in text


def test_ids_begin_with_the_figures_name_and_are_all_used_once(drawn_figures):
    seen = []
    for one, text in drawn_figures.items():
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert all(id.startswith(f"{one.name}-") for id in ids)
        used = set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))
        assert used == set(ids)
        seen += ids
    assert len(seen) == len(set(seen))


def test_no_text_is_cut_by_the_paper_or_stands_on_other_text(drawn_figures):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for one in drawn_figures:
        with drawn(one) as drawing:
            renderer = FigureCanvasAgg(drawing).get_renderer()
            texts = [text for text in drawing.texts if text.get_text()]
            for axes in drawing.axes:
                texts += [label for axis in (axes.xaxis, axes.yaxis) for label in axis.get_ticklabels()]
            boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text()]
        assert len(boxes) > 2
        for said, box in boxes:
            assert box.x0 >= 0 and box.y0 >= 0, (one.name, said)
            assert box.x1 <= WIDTH and box.y1 <= one.height, (one.name, said)
        for (first, box), (second, other) in combinations(boxes, 2):
            across = min(box.x1, other.x1) - max(box.x0, other.x0)
            down = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert across < 1 or down < 3, (one.name, first, second)


def test_all_text_is_at_least_12_pixels_high_on_a_screen_of_390(drawn_figures):
    for text in drawn_figures.values():
        sizes = [float(size) for size in re.findall(r"font-size:([\d.]+)px", text)]
        assert min(sizes) * 390 / WIDTH >= 12


def test_200_decisions_come_to_little(drawn_figures):
    assert sum(len(text.encode()) for text in drawn_figures.values()) < 200_000


def test_a_hostile_name_is_drawn_as_it_is_spelt_and_cut(hostile):
    with drawn(hostile["forest"]) as drawing:
        names = [text.get_text() for text in drawing.texts if text.get_text().startswith("#")]
    assert [name[:12] for name in names] == ["#1 a<script>", "#2 b<script>", "#3 c<script>"]
    assert all(name.endswith("…") and len(name) < 40 for name in names)
    text = svg(hostile["forest"])
    assert "&lt;script&gt;" in text and "<script" not in text
    assert "<script" not in svg_file(hostile["families"])
    for one in hostile.values():
        assert len(one.alt + one.caption + one.evidence) < 3000
        assert not any(mark in one.alt for mark in "\n\t\x00\x1b\u202e")


def test_dollars_begin_no_formula(tmp_path):
    with written.opened(tmp_path) as ledger:
        written.slower(ledger, "$x^2$ costs $5", id="x-1")
        found = {one.name: one for one in figures(gather(ledger))}
        text = svg(found["forest"])
    assert "#1 $x^2$ costs $5<" in text


def test_marks_of_direction_and_control_characters_go():
    assert plain("a\u202eb\u2066c\x00d\ne\x1b[0m") == "abcd e[0m"
    assert plain("שלום עולם") == "שלום עולם"
    assert plain("e" + "\u0301" * 500) == "e\u0301\u0301"
    assert plain("n" * 10_000, 10) == "n" * 9 + "…"
    assert plain(" \n ") == ""


def test_a_name_fits_its_room():
    assert fitted("short", 200, 13) == "short"
    assert fitted("W" * 100, 100, 13).endswith("W…")
    assert len(fitted("W" * 100, 100, 13)) < len(fitted("i" * 100, 100, 13))
    assert fitted("漢" * 100, 70, 13) == "漢漢漢漢…"


def test_names_are_listed_without_a_rest_of_one():
    assert listed(["a", "b", "c", "d"], 3) == "a, b, c and d"
    assert listed(["a", "b", "c", "d", "e"], 3) == "a, b, c and 2 others"
    assert listed(["a"]) == "a" and listed([]) == ""


def test_a_page_switches_every_colour_and_a_file_has_its_own(hostile):
    one = hostile["waterfall"]
    page, light, dark = svg(one), svg_file(one), svg_file(one, dark=True)
    bare = re.sub(r"var\(--figure-\w+,\s*#\w+\)", "", page)
    assert not re.findall(r"(?:fill|stroke):\s*#", bare) and "var(--figure-blue,#0072b2)" in page
    assert "var(--figure-blue,#56b4e9)" in svg(one, dark=True)
    assert "var(" not in light + dark
    assert f'fill="{LIGHT["paper"]}"' in light and f'fill="{DARK["paper"]}"' in dark
    assert set(re.findall(r"--figure-(\w+)", page)) <= set(re.findall(r"--figure-(\w+):", theme()))
    assert light.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<svg')


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_words_stand_out_from_the_paper_by_4_5_and_marks_by_3(colours):
    def luminance(colour):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(colour):
        one, other = sorted((luminance(colour), luminance(colours["paper"])))
        return (other + 0.05) / (one + 0.05)

    assert min(contrast(colours[name]) for name in ("ink", "quiet")) >= 4.5
    assert min(contrast(colours[name]) for name in ("blue", "vermilion", "green", "purple")) >= 3


def test_a_png_has_two_pixels_a_unit(hostile):
    one = hostile["headline"]
    data = png(one)
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (2 * WIDTH, 2 * one.height)


def test_a_persons_matplotlib_settings_change_nothing(hostile):
    import matplotlib

    before = svg(hostile["power"])
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "lines.linewidth": 9}):
        assert svg(hostile["power"]) == before
        assert matplotlib.rcParams["font.size"] == 30
