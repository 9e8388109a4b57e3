"""Rows come back in order of start, whether they stayed in memory or went to the disk."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest

from campaign.errors import BadInput
from campaign.traces.spool import Spool

ROW = np.dtype([("start", "<i8"), ("label", "<i4")])


def some(starts: list[int]) -> np.ndarray:
    rows = np.zeros(len(starts), ROW)
    rows["start"], rows["label"] = starts, np.arange(len(starts))
    return rows


def filled(rows: np.ndarray, limit: int, block: int) -> Spool:
    spool = Spool(ROW, rows_in_memory=limit)
    for first in range(0, len(rows), block):
        spool.append(rows[first : first + block])
    return spool


@pytest.mark.parametrize("limit", [1 << 20, 5000, 1000, 64])
@pytest.mark.parametrize("order", ["sorted", "reversed", "shuffled", "alike"])
def test_rows_come_back_in_order_of_start(limit, order):
    starts = np.random.default_rng(3).integers(-50_000, 50_000, 12_000)
    starts = {"sorted": np.sort(starts), "reversed": -np.sort(-starts), "alike": starts // 20_000}.get(order, starts)
    spool = filled(some(starts.tolist()), limit, 700)
    assert len(spool) == 12_000
    found = np.concatenate(list(spool.batches()))
    assert found["start"].tolist() == sorted(starts.tolist())
    assert sorted(found["label"].tolist()) == list(range(12_000))
    assert (starts[found["label"]] == found["start"]).all()


def test_rows_can_be_read_several_times_and_added_to_in_between():
    spool = filled(some([5, 3, 9, 1] * 500), 300, 100)
    first = np.concatenate(list(spool.batches()))
    assert (np.concatenate(list(spool.batches())) == first).all()
    spool.append(some([4]))
    again = np.concatenate(list(spool.batches()))
    assert again["start"].tolist() == sorted([*first["start"].tolist(), 4])


def test_two_readings_at_once_do_not_disturb_each_other():
    spool = filled(some(list(range(9000, 0, -1))), 2000, 500)
    pairs = [
        (int(one["start"][0]), int(other["start"][0]))
        for one, other in zip(spool.batches(), spool.batches(), strict=True)
    ]
    assert all(one == other for one, other in pairs) and len(pairs) > 2


def test_batches_are_never_empty_and_of_bounded_length():
    spool = filled(some(np.random.default_rng(4).integers(0, 10**9, 50_000).tolist()), 4000, 999)
    lengths = [len(batch) for batch in spool.batches()]
    assert min(lengths) > 0 and sum(lengths) == 50_000
    assert max(lengths) <= 4000 + 13 * 1024  # what is held of each of 12 runs and of the tail


def test_an_empty_spool_has_no_batches():
    spool = Spool(ROW)
    spool.append(some([]))
    assert len(spool) == 0 and list(spool.batches()) == []


def test_a_closed_spool_is_empty():
    spool = filled(some([3, 1, 2] * 400), 100, 50)
    spool.close()
    assert len(spool) == 0 and list(spool.batches()) == []


def test_nothing_is_left_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spool = filled(some([3, 1, 2] * 400), 100, 50)
    assert list(tmp_path.iterdir()) == []
    assert len(spool) == 1200


def test_a_directory_that_cannot_be_written_is_an_error_that_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(BadInput, match="gone: no room for the trace's rows") as raised:
        filled(some([3, 1, 2] * 400), 100, 50)
    assert raised.value.remedy.startswith("TMPDIR=")
