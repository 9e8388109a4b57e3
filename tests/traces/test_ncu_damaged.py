"""Nsight Compute CSV that is not whole: what can be read is, what cannot is refused by its line, in bounded memory."""

from __future__ import annotations

import csv
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaign.errors import BadInput
from campaign.traces import ncu_csv, open_profile
from tests.traces.ncu_files import BANNER, FIGURES, Launch, codes, details, only, put, raw


def test_a_cut_file_loses_its_last_row_and_says_so(tmp_path):
    text = raw([Launch("a", FIGURES), Launch("b", FIGURES)])
    report = open_profile(put(tmp_path / "k.csv", text[:-60]))
    assert [one.name for one in report.launches] == ["a"]
    assert codes(report) == ["cut"] and report.notices[0].lowers_confidence and "line 4" in report.notices[0].text


def test_rows_of_another_length_are_read_as_far_as_they_go_and_reported(tmp_path):
    lines = raw([Launch("a", FIGURES), Launch("b", FIGURES)]).splitlines()
    lines[2] = lines[2].rpartition(",")[0]
    report = open_profile(put(tmp_path / "k.csv", "\n".join(lines) + "\n"))
    assert (report.launches[0].registers_per_thread, report.launches[0].dynamic_shared_bytes) == (40, None)
    assert codes(report) == ["ragged-rows"] and "line 3" in report.notices[0].text


def test_a_row_whose_quote_does_not_close_costs_only_itself(tmp_path):
    lines = raw([Launch("a", FIGURES), Launch("b", FIGURES), Launch("c", FIGURES)]).splitlines()
    lines[3] = lines[3][:-1]
    report = open_profile(put(tmp_path / "k.csv", "\n".join(lines) + "\n"))
    assert [one.name for one in report.launches] == ["a", "c"] and codes(report) == ["cut"]


@pytest.mark.parametrize("ending", ['"\n', ""])
def test_a_cell_of_100_mb_is_refused_by_its_line_in_bounded_memory(tmp_path, ending):
    path = tmp_path / "k.csv"
    with path.open("w") as file:
        file.write(raw([Launch("a", FIGURES)]) + '"1","')
        for _ in range(100):
            file.write("x" * (1 << 20))
        file.write(ending)
    tracemalloc.start()
    with pytest.raises(BadInput, match="line 4: longer than"):
        open_profile(path)
    assert tracemalloc.get_traced_memory()[1] < 80 << 20
    tracemalloc.stop()


def test_a_quote_that_never_closes_is_refused_by_the_line_where_it_opened(tmp_path):
    path = tmp_path / "k.csv"
    with path.open("w") as file:
        file.write(raw([Launch("a", FIGURES)]) + '"1","\n')
        for _ in range(100):
            file.write(("x" * 1023 + "\n") * 100)
    with pytest.raises(BadInput, match="line 4: a row without end"):
        open_profile(path)


def test_the_limit_of_the_csv_module_is_given_back(tmp_path):
    before = csv.field_size_limit()
    only(put(tmp_path / "k.csv", raw([Launch("k" * 200_000, FIGURES)])))
    assert csv.field_size_limit() == before


def test_launches_beyond_the_most_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(ncu_csv, "MOST_LAUNCHES", 2)
    report = open_profile(put(tmp_path / "k.csv", raw([Launch(f"k{i}", FIGURES) for i in range(5)])))
    assert len(report.launches) == 2 and codes(report) == ["launches-beyond"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_read_in_part_or_refused(tmp_path, data):
    """Cut, or with bytes put in anywhere: launches, or BadInput, and no other end."""
    whole = (BANNER + data.draw(st.sampled_from([raw, details]))([Launch("a", FIGURES), Launch("b", FIGURES)])).encode()
    place = data.draw(st.integers(0, len(whole)))
    alphabet = st.sampled_from(
        ['"', ",", "\n", '""', "\0", "9", ".", "-", "\x1b", '"ID","Kernel Name"\n', ";", "\u00e9"]
    )
    put_in = "".join(data.draw(st.lists(alphabet, max_size=12))).encode()
    rest = whole[place + data.draw(st.integers(0, 40)) :] if data.draw(st.booleans()) else b""
    path = tmp_path / "k.csv"
    path.write_bytes(whole[:place] + put_in + rest)
    try:
        assert open_profile(path).launches
    except BadInput as error:
        assert "k.csv" in str(error) and error.remedy
