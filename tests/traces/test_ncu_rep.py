"""Nsight Compute reports: through NVIDIA's own reader where it is installed, else refused with the next command."""

from __future__ import annotations

import importlib.util
from dataclasses import fields

import pytest

from campaign.errors import BadInput
from campaign.traces import open_profile

HERE = importlib.util.find_spec("ncu_report") is not None
needs_reader = pytest.mark.skipif(not HERE, reason="ncu_report is not installed: pip install -e '.[ncu]'")
# Of figures that are printed with decimals, the half of the last one (6 on the raw page, 2 with --print-units base and
# on the details page).
ROUNDED = {"raw": 5.1e-7, "rawbase": 5.1e-3, "details": 5.1e-3}


@pytest.mark.skipif(HERE, reason="ncu_report is installed")
def test_without_the_reader_the_export_and_the_extra_are_named(tmp_path):
    path = tmp_path / "my step.data"
    path.write_bytes(b"NVR\0" + bytes(60))
    with pytest.raises(BadInput, match="only NVIDIA's reader opens") as error:
        open_profile(path)
    table = tmp_path / "my step.csv"
    assert f"ncu --import '{path}' --csv --page raw > '{table}'" in error.value.remedy
    assert "pip install -e '.[ncu]'" in error.value.remedy


@needs_reader
@pytest.mark.parametrize("page", ["raw", "rawbase", "details"])
def test_a_report_and_its_exports_give_the_same_counters(real_traces, page):
    report = open_profile(real_traces / "esmm_profile_b.ncu-rep")
    export = open_profile(real_traces / f"esmm_profile_b.{page}.csv")
    assert report.source.format == "ncu-rep" and len(report.launches) == len(export.launches) == 4
    for one, printed in zip(report.launches, export.launches, strict=True):
        for field in fields(one):
            mine, theirs = getattr(one, field.name), getattr(printed, field.name)
            if field.name in ("source_row", "failed"):  # a record and a line; each page has its own names
                continue
            if page == "details" and field.name in ("pipes_percent", "multiprocessors"):  # not on that page
                continue
            if field.name == "duration_seconds" and mine is not None:
                assert theirs == pytest.approx(mine, abs=5.1e-6), field.name  # 139.91 msecond
            elif field.name == "waves" and mine is not None:
                assert theirs == pytest.approx(mine, abs=5.1e-3)
            elif isinstance(mine, float):
                assert theirs == pytest.approx(mine, abs=ROUNDED[page]), field.name
            elif isinstance(mine, dict):
                assert theirs == pytest.approx(mine, abs=ROUNDED[page]), field.name
            else:
                assert theirs == mine, field.name
    assert [notice.code for notice in report.notices] == ["not-profiled"]


@needs_reader
@pytest.mark.parametrize("kept", [4, 64, 5000])
def test_a_cut_report_is_refused(real_traces, tmp_path, kept):
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes((real_traces / "esmm_profile_b.ncu-rep").read_bytes()[:kept])
    with pytest.raises(BadInput, match=r"cut\.ncu-rep"):
        open_profile(path)


@needs_reader
def test_damage_inside_a_report_ends_in_launches_or_a_refusal(real_traces, tmp_path):
    whole = (real_traces / "esmm_profile_b.ncu-rep").read_bytes()
    path = tmp_path / "damaged.ncu-rep"
    for seed in range(30):
        damaged = bytearray(whole)
        for place in range(64 + 37 * seed, len(whole), 4001):
            damaged[place] ^= 1 + seed
        path.write_bytes(damaged)
        try:
            assert open_profile(path).launches
        except BadInput as error:
            assert "damaged.ncu-rep" in error.message and error.remedy
