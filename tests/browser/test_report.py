"""The report page in Chromium, from a disk: what it asks for, how its tables sort, what can be read and reached."""

from __future__ import annotations

import itertools

import pytest

from campaign.report.review import Review
from tests.browser.looks import BROKEN, CONTRAST, OUT_OF_REACH, OVERFLOWING, column
from tests.report import figured

# Of `figured.whole`: an A/A at 1, edits at logs .10 and .08, a slowdown at -.10, one at a mean of .05, one without.
FALLING = ["#2", "#3", "#5", "#1", "#4", "#6"]
RISING = ["#4", "#1", "#5", "#3", "#2", "#6"]
THIRD = "#decisions thead th:nth-child(4) button"  # the measured ratio


@pytest.fixture(scope="module")
def review_of(reported) -> Review:
    return reported(figured.whole)


def rows(page) -> list[str]:
    return page.evaluate("[...document.querySelectorAll('#decisions tbody th')].map((one) => one.textContent)")


def test_it_opens_from_a_disk_says_nothing_on_the_console_and_asks_for_nothing(page, address):
    opened = page(address)
    assert opened.told == []
    assert opened.asked == [address]
    assert opened.evaluate("performance.getEntriesByType('resource').length") == 0
    assert opened.evaluate("document.title") == "Campaign demo: report"


@pytest.mark.parametrize(
    ("attempt", "refused"),
    [
        ("new Image().src = 'http://127.0.0.1:9/x.png'", "img-src"),
        ("fetch('http://127.0.0.1:9/x').catch(() => 0)", "connect-src"),
        ("document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))",
         "script-src-elem"),
        ("document.body.setAttribute('onclick', 'window.ran = 1'); document.body.click()", "script-src-attr"),
        ("document.head.append(Object.assign(document.createElement('link'), {rel: 'stylesheet', "
         "href: 'http://127.0.0.1:9/x.css'}))", "style-src-elem"),
    ],
)  # fmt: skip
def test_what_would_ask_or_run_is_refused(page, address, attempt, refused):
    opened = page(address)
    said = opened.evaluate(
        "new Promise((done) => { addEventListener('securitypolicyviolation', (one) => done(one.effectiveDirective), "
        f"{{once: true}}); setTimeout(() => done('nothing was refused'), 5000); {attempt} }})"
    )
    assert said == refused
    assert opened.evaluate("window.ran === undefined")


def test_a_click_on_a_title_sorts_by_number_and_another_turns_it_round(page, address):
    opened = page(address)
    assert rows(opened) == ["#1", "#2", "#3", "#4", "#5", "#6"]
    opened.click(THIRD)
    assert rows(opened) == RISING
    assert opened.evaluate("[...document.querySelectorAll('#decisions [aria-sort]')].map((one) => one.ariaSort)") == [
        "ascending"
    ]
    assert opened.evaluate("document.querySelector('.told').textContent") == (
        "Sorted by measured, marginal, ascending."
    )
    opened.click(THIRD)
    assert rows(opened) == FALLING  # what has no number is last again
    assert opened.told == []


@pytest.mark.parametrize("key", ["Enter", " "])
def test_a_key_on_a_title_sorts_too(page, address, key):
    opened = page(address)
    opened.evaluate(f"document.querySelector('{THIRD}').focus()")
    opened.press(key, text="\r" if key == "Enter" else " ")
    assert rows(opened) == RISING
    assert opened.evaluate("document.activeElement.closest('th').getAttribute('aria-sort')") == "ascending"
    opened.press(key, text="\r" if key == "Enter" else " ")
    assert rows(opened) == FALLING


def test_bytes_sort_by_what_they_are_and_words_by_the_alphabet(page, address):
    opened = page(address)
    titles = opened.evaluate("[...document.querySelectorAll('#decisions thead th')].map((one) => one.textContent)")
    opened.click(f"#decisions thead th:nth-child({1 + titles.index('peak memory')}) button")
    # half takes 420 to 390 MiB, the others nothing, and what was not probed has no number.
    memory = opened.evaluate(column("peak memory"))
    assert memory[0].startswith("-30.0 MiB") and set(memory[1:-1]) == {"0 B (400.0 MiB to 400.0 MiB)"}
    assert memory[-1] == ""
    opened.click(f"#decisions thead th:nth-child({1 + titles.index('verdict')}) button")
    words = [text.split("superseded")[0].strip() for text in opened.evaluate(column("verdict"))]
    assert words == ["accept", "accept", "inconclusive", "inconclusive", "invalid", "reject"]


def test_without_scripts_it_is_a_plain_page_with_every_row(page, address):
    opened = page(address, scripts=False)
    assert rows(opened) == ["#1", "#2", "#3", "#4", "#5", "#6"]
    assert opened.evaluate("document.querySelectorAll('button, input').length") == 0
    titles = opened.evaluate("[...document.querySelectorAll('#decisions thead th')].map((one) => one.textContent)")
    assert titles[:5] == ["", "edit", "verdict", "measured, marginal", "predicted"]
    assert opened.evaluate(column("measured, marginal"))[1] == "1.105x [1.085, 1.126]"


def test_a_link_of_a_figure_leads_to_its_row(page, address):
    opened = page(address)
    opened.click("#figure-waterfall a[href='#decision-3']")
    assert opened.evaluate("document.querySelector('tr:target th').textContent") == "#3"
    top = opened.evaluate("document.querySelector('tr:target').getBoundingClientRect().top")
    assert 0 < top < 900
    opened.click("#figure-headline a[href='#finding-1']")
    assert opened.evaluate("document.querySelector('tr:target th').textContent") == "finding 1"
    opened.click("#figure-families a[href='#diagnosis-2']")
    assert opened.evaluate("document.querySelector('tr:target th').textContent") == "diagnosis 2"


def test_every_figure_has_a_name_an_alternative_its_evidence_and_its_files(page, address, review_of):
    found = page(address).evaluate(
        "[...document.querySelectorAll('figure')].map((one) => { const svg = one.querySelector('svg'); return {"
        "name: document.getElementById(one.getAttribute('aria-labelledby')).textContent,"
        "role: svg.getAttribute('role'), alt: svg.getAttribute('aria-label'), said: one.textContent,"
        "files: [...one.querySelectorAll('a[href^=figures]')].map((link) => link.getAttribute('href')) } })"
    )
    assert [one["name"] for one in found] == [one.title for one in review_of.drawn]
    assert len(found) >= 8
    for told, figure in zip(found, review_of.drawn, strict=True):
        assert (told["role"], told["alt"]) == ("img", figure.alt)
        assert f"Evidence: {figure.evidence}" in told["said"]
        assert all(row in told["said"] for row in figure.rows)
        assert all((review_of.folder / file).is_file() for file in told["files"]) and len(told["files"]) == 2


def test_ids_are_unique_links_lead_somewhere_and_headings_step_by_one(page, address):
    opened = page(address)
    assert opened.evaluate(BROKEN) == []
    levels = opened.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((one) => Number(one.tagName[1]))")
    assert levels.count(1) == 1 and levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_the_headline_stands_first_and_the_contents_name_every_section(page, address):
    opened = page(address)
    headings = opened.evaluate("[...document.querySelectorAll('main h2')].map((one) => one.textContent)")
    assert headings[:4] == ["Headline", "Figures", "Every decision", "Findings and profiles"]
    assert headings[-1] == "What this does not show"
    assert opened.evaluate("[...document.querySelectorAll('nav > ol > li > a')].map((one) => one.textContent)") == (
        headings
    )
    # root against head at log .15 over 100 tokens a second, as `tests.report.together` plants it
    assert opened.evaluate("document.querySelector('main p').textContent").startswith(
        "100 -> 116 tokens/s, 1.162x [1.141, 1.183]"
    )


def test_the_first_tab_offers_to_skip_to_the_report(page, address):
    opened = page(address)
    opened.press("Tab")
    assert opened.evaluate("document.activeElement.textContent") == "Skip to the report"
    box = opened.evaluate("document.activeElement.getBoundingClientRect().toJSON()")
    assert box["x"] >= 0 and box["width"] > 0
    opened.press("Enter", text="\r")
    assert opened.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_is_wider_than_the_window_but_what_scrolls_by_itself(page, address, width):
    opened = page(address, width=width)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.evaluate(OVERFLOWING) == []
    assert opened.evaluate(OUT_OF_REACH) == []


def test_at_390_pixels_figures_keep_letters_of_ten_pixels(page, address):
    smallest = page(address, width=390).evaluate(
        "Math.min(...[...document.querySelectorAll('figure svg text')].map((one) =>"
        "parseFloat(getComputedStyle(one).fontSize) * one.ownerSVGElement.getBoundingClientRect().width"
        " / one.ownerSVGElement.viewBox.baseVal.width))"
    )
    assert smallest >= 9.5


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_word_stands_out_from_its_ground(page, address, dark, width):
    opened = page(address, width=width, height=16_000, dark=dark)
    ground = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")
    opened.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    found = opened.evaluate(CONTRAST)
    assert found["poor"] == []
    assert found["seen"] > 300


def test_what_a_figure_only_refers_to_is_not_drawn_itself(page, address):
    assert (
        page(address).evaluate(
            "[...document.querySelectorAll('figure svg path[id], figure svg g[id]')].filter((one) =>"
            "!one.closest('defs, clipPath')).map((one) => one.id)"
        )
        == []
    )
