"""The report of a campaign whose every word wants to be something else: it is shown, and it does nothing."""

from __future__ import annotations

import pytest

from campaign.ledger import Ledger
from campaign.report.review import Review
from tests.browser.looks import OVERFLOWING, column
from tests.report import figured, written

SCRIPT = "<script>window.ran=1</script>"
FORMULA = "=cmd|' /C calc'!A0"
ATTRIBUTE = "\" onmouseover='window.ran=1' x=\"</td></table><img src=x onerror=window.ran=1>"
MARKDOWN = "[go](javascript:window.ran=1) ![i](http://127.0.0.1:9/x.png) <http://127.0.0.1:9> # x\n\n| a |\n|---|\n<b>"
NOTE = f"{SCRIPT} </script> ]]> --> " + "because it was so, " * 530 + "\u202eend of it"
WORD = "n" * 10_000


def fill(ledger: Ledger) -> None:
    written.faster(ledger, SCRIPT, id="a", claim=MARKDOWN, workload=ATTRIBUTE, machine_line=SCRIPT)
    written.slower(ledger, FORMULA, id="b", claim=ATTRIBUTE)
    decision = written.slower(ledger, ATTRIBUTE, id="c", claim=WORD)
    ledger.rule(decision.id, "reject", NOTE)


@pytest.fixture(scope="module")
def review_of(reported) -> Review:
    return reported(fill)


def test_nothing_of_it_runs_loads_or_becomes_an_element(page, address):
    opened = page(address)
    assert (opened.told, opened.asked) == ([], [address])
    opened.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    opened.evaluate("document.querySelectorAll('td, code').forEach((one) => one.dispatchEvent(new Event('mouseover')))")
    assert opened.evaluate("window.ran === undefined")
    assert opened.evaluate("document.querySelectorAll('script').length") == 1
    assert opened.evaluate("document.querySelectorAll('img, iframe, object, embed, form, base, b').length") == 0
    assert (
        opened.evaluate(
            "[...document.querySelectorAll('*')].flatMap((one) => [...one.attributes])"
            ".filter((one) => one.name.startsWith('on') || /script:|https?:/.test(one.value) && one.name !== 'xmlns'"
            " && one.name !== 'aria-label').map((one) => one.name)"
        )
        == []
    )
    links = opened.evaluate("[...document.querySelectorAll('a')].map((one) => one.getAttribute('href'))")
    assert all(link.startswith(("#", "figures/")) for link in links)


def test_the_names_stand_there_as_they_are_and_a_spreadsheet_sees_no_formula(page, address):
    opened = page(address)
    names = opened.evaluate("[...document.querySelectorAll('#decisions tbody td:nth-child(2) > code')]"
                            ".map((one) => one.textContent)")  # fmt: skip
    assert names == [SCRIPT, f"'{FORMULA}", ATTRIBUTE]
    claims = opened.evaluate("[...document.querySelectorAll('#decisions tbody td:nth-child(2) > div')]"
                             ".map((one) => one.textContent)")  # fmt: skip
    assert claims[:2] == [MARKDOWN, ATTRIBUTE]
    cells = opened.evaluate("[...document.querySelectorAll('td')].map((one) => one.innerText.trim())")
    assert not [cell for cell in cells if cell.startswith(("=", "@", "\t"))]


def test_a_long_note_is_cut_and_all_of_it_can_be_unfolded(page, address):
    opened = page(address)
    shown, whole = opened.evaluate(
        "(() => { const one = [...document.querySelectorAll('#decisions .long')]"
        ".find((each) => each.textContent.includes('because it was so'));"
        "const before = one.innerText; one.open = true; return [before, one.querySelector('p').innerText] })()"
    )
    assert len(shown) < 300 and "characters)" in shown
    assert " ".join(NOTE.split()).replace("\u202e", "\\u202e") in " ".join(whole.split())
    assert opened.evaluate(column("edit"))[2].count("n") >= len(WORD)


@pytest.mark.parametrize("width", [390, 1280])
def test_it_is_no_wider_than_the_window(page, address, width):
    opened = page(address, width=width)
    opened.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.evaluate(OVERFLOWING) == []


def test_sorting_and_finding_take_it_as_text(page, address):
    opened = page(address)
    opened.click("#decisions thead th:nth-child(2) button")
    names = opened.evaluate("[...document.querySelectorAll('#decisions tbody th')].map((one) => one.textContent)")
    assert sorted(names) == ["#1", "#2", "#3"]
    assert opened.told == []


def test_the_figures_files_are_inert_too(page, review_of):
    for one in review_of.drawn:
        opened = page((review_of.folder / "figures" / f"{one.name}.svg").as_uri())
        assert opened.evaluate("document.querySelectorAll('script, image, foreignObject, a').length") == 0
        assert opened.told == []
        assert len(opened.asked) == 1


def test_figures_of_hostile_names_do_nothing_either(page, reported):
    opened = page(reported(figured.hostile).page.as_uri(), width=390)
    assert (opened.told, len(opened.asked)) == ([], 1)
    assert opened.evaluate("document.querySelectorAll('script').length") == 1
    assert opened.evaluate("document.querySelectorAll('figure').length") >= 8
    assert opened.evaluate(OVERFLOWING) == []
