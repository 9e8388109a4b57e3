"""Which decisions are shown: by verdict, age, hypothesis; in the listing and in every export."""

from __future__ import annotations

import csv
import io
import json
import time

import pytest

from campaign.errors import BadInput, UnknownName
from campaign.report import listing
from campaign.report.export import export
from campaign.report.filters import read
from tests.report import written
from tests.report.test_page import section, tables


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """Decisions of 12:01, 12:02 and 12:03 on 1 December 2026."""
    with written.opened(tmp_path_factory.mktemp("filtered")) as ledger:
        written.faster(ledger)
        written.slower(ledger, stack=("prenorm_fusion",))
        written.slower(ledger, "another", stack=("prenorm_fusion",))
        yield ledger


def kept(ledger, **asked):
    options = {"verdict": None, "since": None, "hypothesis": None} | asked
    return [row["sequence"] for row in read(**options).keep(listing.rows(ledger))]


def test_nothing_asked_is_no_filter():
    assert read(None, None, None) is None


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ({"verdict": "accept"}, [1]),
        ({"verdict": "reject, inconclusive"}, [2, 3]),
        ({"hypothesis": "another,prenorm_fusion"}, [1, 3]),
        ({"since": "2026-12-01"}, [1, 2, 3]),
        ({"since": "2026-12-02"}, []),
        ({"since": "2026-12-01T12:02"}, [2, 3]),
        ({"since": "2026-12-01T12:02:01Z"}, [3]),
        ({"verdict": "reject", "since": "2026-12-01 12:03"}, [3]),
    ],
)
def test_a_row_is_kept_when_every_filter_keeps_it(ledger, asked, numbers):
    assert kept(ledger, **asked) == numbers


@pytest.mark.parametrize(
    ("age", "moment"),
    [("90m", "2026-12-01T12:02:00"), ("3h", "2026-12-01T10:32:00"), ("3d", "2026-11-28T13:32:00"),
     ("2w", "2026-11-17T13:32:00")],
)  # fmt: skip
def test_an_age_is_counted_back_from_now(monkeypatch, age, moment):
    monkeypatch.setattr(time, "time", lambda: 1796131920.0)  # 2026-12-01T13:32:00Z
    assert read(None, age, None).since == moment


@pytest.mark.parametrize("since", ["yesterday", "3x", "d", "-3d", "2026-13-01", "99999999999w", ""])
def test_a_moment_that_is_none_is_refused_with_the_forms_there_are(since):
    with pytest.raises(BadInput, match="neither a day nor an age") as caught:
        read(None, since, None)
    assert "3d" in caught.value.remedy


def test_a_misspelt_verdict_or_hypothesis_names_the_nearest(ledger):
    with pytest.raises(UnknownName, match="did you mean 'accept'"):
        read("acept", None, None)
    with pytest.raises(UnknownName, match="did you mean 'another'"):
        kept(ledger, hypothesis="anoter")
    with pytest.raises(BadInput, match="empty name"):
        read("accept,,reject", None, None)


def test_every_export_has_the_wanted_rows_and_the_totals_of_all(ledger):
    wanted = read("reject", None, None)
    page = export(ledger, "md", wanted)
    assert [row[0] for one in tables(page) for row in one[2:]] == ["2", "3"]
    assert "2 of 3 decisions are shown: --verdict reject" in section(page, "Headline")
    assert "Tests run: 3." in section(page, "Totals")
    assert "The accepted stack: root + `prenorm_fusion`." in section(page, "Headline")
    assert [row["sequence"] for row in csv.DictReader(io.StringIO(export(ledger, "csv", wanted)))] == ["2", "3"]
    document = json.loads(export(ledger, "json", wanted))
    assert [row["decision"]["sequence"] for row in document["decisions"]] == [2, 3]
    assert (document["totals"]["decisions"], document["stack"]) == (3, ["prenorm_fusion"])
    assert document["filtered"] == "2 of 3 decisions are shown: --verdict reject"


def test_a_page_of_nothing_wanted_still_has_headline_and_limits(ledger):
    page = export(ledger, "md", read(None, "2026-12-02", None))
    assert "0 of 3 decisions are shown" in page
    assert "Anything: the filter leaves no decision." in page
