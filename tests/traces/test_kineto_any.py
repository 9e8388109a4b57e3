"""Any trace in any pieces is the same trace; any damage is an error that is meant, or a timeline."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaign.errors import BadInput
from campaign.traces import _json_chunks, kineto
from tests.traces.kineto_files import rows

ALL = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
CATEGORIES = ["kernel", "gpu_memcpy", "cuda_runtime", "cpu_op", "user_annotation", "ac2g", "Kernel", "cuda_sync"]
TEXTS = st.one_of(
    st.sampled_from(["a", "b", '},{"', "]}", "},\n{", "\\", "{[", ""]),
    st.text(st.characters(codec="utf-8"), max_size=8),
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "ph": st.sampled_from(["X", "X", "X", "i", "M"]),
            "cat": st.sampled_from(CATEGORIES),
            "name": TEXTS,
            "ts": st.integers(0, 2_000_000).map(lambda ns: ns / 1000),
            "dur": st.integers(0, 5000).map(lambda ns: ns / 1000),
            "pid": st.integers(0, 2),
            "tid": st.integers(0, 2),
            "args": st.fixed_dictionaries(
                {"stream": st.integers(0, 2), "correlation": st.integers(0, 9), "more": ANYTHING}
            ),
        }
    ),
    max_size=12,
)


def seen(path: Path) -> list[list[tuple]]:
    """Everything that a timeline holds, in words."""
    timeline = kineto.read(path)
    names, streams, threads = timeline.names, timeline.streams, timeline.threads
    events = [
        (int(row["start"]), int(row["end"]), names[row["name"]], streams[row["stream"]].label, int(row["correlation"]),
         int(row["kind"]), timeline.devices[row["device"]].ordinal)
        for row in rows(timeline.events)
    ]  # fmt: skip
    calls = [
        (int(row["start"]), int(row["end"]), names[row["name"]], threads[row["thread"]], int(row["kind"]))
        for row in rows(timeline.calls)
    ]
    return [sorted(events), sorted(calls), sorted((notice.code, notice.text) for notice in timeline.notices)]


@ALL
@given(events=EVENTS, piece=st.integers(16, 3000), after=st.booleans(), indent=st.sampled_from([None, 1]))
def test_a_trace_in_any_pieces_is_the_same_trace(tmp_path, events, piece, after, indent):
    around = {"deviceProperties": [{"id": 0, "name": "GPU", "a": [{}, {}]}], "baseTimeNanoseconds": 5}
    whole = {"traceEvents": events, **around} if after else {**around, "traceEvents": events}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(whole, indent=indent))
    at_once = seen(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_json_chunks, "PIECE_BYTES", piece)
        patch.setattr(_json_chunks, "TAIL_BYTES", 64)
        assert seen(path) == at_once
    wanted = sorted(
        event["name"] for event in events if event["ph"] == "X" and event["cat"] in ("kernel", "Kernel", "gpu_memcpy")
    )
    if wanted:
        assert sorted(event[2] for event in at_once[0]) == wanted
    assert {code for code, _ in at_once[2]} <= {"cpu_only", "no_device_work", "coarse_clock", "overlaps_in_stream"}


@ALL
@given(
    events=EVENTS,
    damage=st.lists(
        st.tuples(
            st.floats(0, 1), st.one_of(st.binary(max_size=3), st.sampled_from([b'"', b"}", b"]", b"\\", b"NaN"]))
        ),
        min_size=1,
        max_size=3,
    ),
    cut=st.floats(0, 1),
    packed=st.booleans(),
    piece=st.integers(64, 5000),
)
def test_any_damage_is_an_error_that_is_meant_or_a_timeline(tmp_path, events, damage, cut, packed, piece):
    content = bytearray(json.dumps({"schemaVersion": 1, "traceEvents": events, "traceName": "x"}).encode())
    for where, by in damage:
        place = int(where * len(content))
        content[place : place + len(by)] = by
    content = content[: max(20, int(cut * 2 * len(content)))]
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_json_chunks, "PIECE_BYTES", piece)
        try:
            seen(path)
        except BadInput as error:
            assert error.remedy and str(path) in error.message


@ALL
@given(events=EVENTS, where=st.floats(0, 1), flip=st.integers(1, 255), end=st.floats(0, 1))
def test_a_damaged_gzip_is_an_error_that_is_meant_or_a_timeline(tmp_path, events, where, flip, end):
    packed = bytearray(gzip.compress(json.dumps({"traceEvents": events * 20}).encode()))
    packed[2 + int(where * (len(packed) - 3))] ^= flip
    path = tmp_path / "trace.json.gz"
    path.write_bytes(packed[: max(4, int(end * 2 * len(packed)))])
    try:
        seen(path)
    except BadInput as error:
        assert error.remedy and str(path) in error.message


@ALL
@given(
    events=st.lists(
        st.dictionaries(st.sampled_from(["ph", "cat", "name", "ts", "dur", "pid", "tid", "args"]), ANYTHING), max_size=6
    )
)
def test_events_of_any_shape_are_read_or_left_out(tmp_path, events):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [{"ph": "X", "cat": "kernel", **event} for event in events]}))
    kineto.read(path)
