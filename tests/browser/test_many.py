"""The report of many decisions: numbers sort as numbers, rows can be found, and the page stays small."""

from __future__ import annotations

import pytest

from campaign.report.review import Review
from campaign.report.review_cells import WHOLE
from tests.report import figured, written

DECISIONS = 12


@pytest.fixture(scope="module")
def review_of(reported) -> Review:
    def fill(ledger) -> None:
        figured.many(ledger, DECISIONS - 1)
        written.slower(ledger, "talkative", claim="word " * 900)

    return reported(fill)


def shown(page) -> list[str]:
    return page.evaluate(
        "[...document.querySelectorAll('#decisions tbody tr')].filter((one) => one.checkVisibility())"
        ".map((one) => one.querySelector('th').textContent)"
    )


def test_twelve_comes_after_nine(page, address):
    opened = page(address)
    opened.click("#decisions thead th button")
    assert shown(opened) == [f"#{number}" for number in range(DECISIONS, 0, -1)]
    opened.click("#decisions thead th button")
    assert shown(opened) == [f"#{number}" for number in range(1, DECISIONS + 1)]


def test_rows_are_found_by_what_they_hold_and_a_link_to_a_hidden_one_shows_it(page, address):
    opened = page(address)
    opened.evaluate("document.querySelector('input[type=search]').focus()")
    opened.call("Input.insertText", text="Idea_1")
    # idea_1, idea_10 and idea_11; every later row names idea_1 in what it was measured on
    assert shown(opened)[:2] == ["#1", "#2"] and "#12" not in shown(opened)
    assert opened.evaluate("document.querySelector('.told').textContent") == f"{len(shown(opened))} of 12 rows."
    opened.evaluate("location.hash = '#decision-12'")
    opened.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert len(shown(opened)) == DECISIONS
    assert opened.evaluate("document.querySelector('tr:target').checkVisibility()")


def test_the_head_of_a_long_table_stays_while_its_rows_move(page, address):
    opened = page(address, height=500)
    opened.evaluate("document.querySelector('.region').scrollTo(400, 300)")
    head, first, region = opened.evaluate(
        "['.region thead th:nth-child(3)', '.region tbody tr:last-child th', '.region'].map((one) => {"
        "const box = document.querySelector(one).getBoundingClientRect(); return [box.x, box.y] })"
    )
    assert abs(head[1] - region[1]) <= 2
    assert abs(first[0] - region[0]) <= 2


def test_a_text_is_cut_at_a_word(page, address):
    summary = page(address).evaluate("document.querySelector('#decisions td:nth-child(2) .long summary').textContent")
    assert summary.startswith("word word") and len(summary) < WHOLE
    assert summary.endswith("word… (all 4,499 characters)")


@pytest.mark.slow
def test_two_hundred_decisions_stay_under_two_megabytes(reported):
    made = reported(lambda ledger: figured.many(ledger, 200))
    assert made.page.stat().st_size < 2_000_000
