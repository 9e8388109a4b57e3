"""The page as one HTML file: nothing in it runs or asks for anything, whatever a person wrote into a claim."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from campaign.report.export import export
from campaign.report.html import parser
from tests.report import together, written

HOSTILE = (
    "<script>alert(1)</script> [go](javascript:alert(2)) ![i](http://elsewhere/x.png) <http://elsewhere> "
    "<img src=x onerror=alert(3)> `</code><script>` [r] &lt;b&gt; </details><!-- <!-- --> @maintainer #12"
)
VOID = {"meta", "line", "circle", "br", "hr"}


class Page(HTMLParser):
    """The tags, attributes, texts by tag and cells of a page; `open` is empty at the end of a well-formed one."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.cells: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if "td" in self.open:
            self.cells[-1] += data


def test_the_page_is_well_formed_and_has_the_numbers_of_the_markdown(ledger):
    together.two_edits(ledger)
    together.leave_one_out(ledger)
    together.headline(ledger)
    page = Page(export(ledger, "html"))
    assert page.open == []
    assert "1.083x [1.064, 1.103], 0 B" in page.cells
    assert any("100 -> 116 tokens/s, 1.162x [1.141, 1.183]" in text for text in page.texts)
    headings = [text for text in page.texts if text in ("Headline", "Protocol", "Machine", "Accepted", "Rejected")]
    assert headings[-5:] == ["Headline", "Protocol", "Machine", "Accepted", "Rejected"]  # after the links to them


def test_hostile_text_stays_text(ledger):
    written.faster(ledger, claim=HOSTILE, command=f"python -m campaign hypothesis=x '{HOSTILE}'")
    decision = written.slower(ledger, claim="[x]: javascript:alert(4)")
    ledger.rule(decision.id, "reject", HOSTILE)
    text = export(ledger, "html")
    page = Page(text)
    assert page.open == []
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "img", "iframe", "object", "form", "link", "base", "input"}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes), tag
        assert not {"src", "srcset", "action", "data"} & set(attributes), tag
        assert tag != "a" or str(attributes["href"]).startswith("#")
    assert "prenorm_fusion: " + " ".join(HOSTILE.split()) in page.cells[1]


@pytest.mark.parametrize(
    "text",
    [
        "[x](http://e)",
        "![x](http://e)",
        "<http://e>",
        "<b onclick=x>y</b>",
        "[x]\n\n[x]: http://e",
        "<script>x</script>",
    ],
)
def test_even_markup_that_escaped_escaping_links_to_nothing_and_loads_nothing(text):
    page = Page(parser().render(text))
    assert {tag for tag, _ in page.tags} <= {"p"}


def test_the_file_needs_nothing_and_forbids_what_could_ask_for_something(ledger):
    written.faster(ledger)
    page = Page(export(ledger, "html"))
    policy = next(attributes for tag, attributes in page.tags if attributes.get("http-equiv"))
    assert policy["content"].startswith("default-src 'none'")
    style = "".join(page.texts)
    assert "url(" not in style and "@import" not in style
    assert "light-dark(" in style


def test_marks_that_part_a_number_from_its_sign_on_github_are_not_seen(ledger):
    written.faster(ledger, claim="see #12 of @someone")
    assert "<!-- -->" in export(ledger, "md")
    page = Page(export(ledger, "html"))
    assert page.cells[1] == "prenorm_fusion: see #12 of @someone"


def test_ratios_are_drawn_with_their_intervals_about_one(ledger):
    together.two_edits(ledger)
    page = Page(export(ledger, "html"))
    [(_, axis)] = [(tag, at) for tag, at in page.tags if tag == "line" and at["class"] == "axis"]
    dots = [float(at["cx"]) for tag, at in page.tags if tag == "circle"]
    bars = [(float(at["x1"]), float(at["x2"])) for tag, at in page.tags if tag == "line" and at["class"] == "bar"]
    one = float(axis["x1"])
    # On a log axis: .10 +- .0183738 and .08 +- .0183738
    scale = (dots[0] - one) / 0.10
    assert (dots[1] - one) / scale == pytest.approx(0.08, abs=2e-4)
    assert [((high - low) / scale / 2) for low, high in bars] == pytest.approx([0.0183738] * 2, abs=2e-4)


def test_a_campaign_without_decisions_is_a_page_too(ledger):
    ledger.append("note", "n-1", {"text": "started"})
    page = Page(export(ledger, "html"))
    assert page.open == [] and "No decision has been made yet." in page.texts
