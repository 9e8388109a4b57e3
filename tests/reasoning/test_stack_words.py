"""What is said of the stack as a set of edits."""

from __future__ import annotations

import pytest

from campaign import stack


def row(hypothesis: str, *neighbours: str) -> dict:
    return {"hypothesis": hypothesis, "stack": list(neighbours)}


def test_an_edit_whose_neighbours_are_the_same_has_nothing_said_of_it() -> None:
    assert stack.neighbours_changed(row("C", "A", "B"), ["A", "B"]) == ""
    assert stack.neighbours_changed(row("A"), []) == ""


def test_edits_that_joined_and_left_since_are_named() -> None:
    assert stack.neighbours_changed(row("C", "A"), ["A", "B", "D"]) == "joined since: B, D"
    assert stack.neighbours_changed(row("C", "A", "B"), ["A"]) == "left since: B"
    assert stack.neighbours_changed(row("C", "A", "B"), ["B", "D"]) == "joined since: D; left since: A"


def test_an_edits_own_place_in_the_stack_is_no_neighbour() -> None:
    assert stack.neighbours_changed(row("B", "A"), ["A", "B"]) == ""


def test_the_order_of_the_neighbours_alone_changes_nothing() -> None:
    assert stack.neighbours_changed(row("C", "A", "B"), ["B", "A"]) == ""


def test_product_and_sum_stand_beside_the_measured_whole_with_their_word() -> None:
    assert stack.parts_line(1.635, 1.520, 1.358, "synergy") == (
        "The parts, each measured by leaving it out of the whole, multiply to 1.635x and add to 1.520x; the whole was"
        " measured at 1.358x: synergy."
    )
    assert "each measured alone on root" in stack.parts_line(1.2, 1.2, 1.1, "redundancy", "isolated")


def test_an_unknown_kind_of_part_is_refused() -> None:
    with pytest.raises(KeyError):
        stack.parts_line(1.2, 1.2, 1.1, "synergy", "guessed")
