"""Damaged and hostile traces: a clear error that names the offset, or what could be read with what was lost."""

from __future__ import annotations

import gzip
import json

import msgspec
import pytest

from campaign.errors import BadInput
from campaign.traces import kineto, open_profile
from campaign.traces.timeline import LONGEST_NAME
from tests.traces.kineto_files import codes, intervals, kernel, laid, read_events, said, swept, written

A, B, C = (json.dumps(kernel(name, ts, 1)) for name, ts in (("a", 1), ("b", 3), ("c", 5)))


def names(timeline) -> list[str]:
    return [name for name, _, _ in intervals(timeline)]


def lowered(timeline) -> bool:
    return any(notice.lowers_confidence for notice in timeline.notices)


@pytest.mark.parametrize(
    ("damage", "name", "what"),
    [
        ("b\x01\tx", "b\x01\tx", "2 control characters"),
        ("C:\\qernels\\zoo", "C:\\qernels\\zoo", "2 bad escapes"),
        ("b\\ud800", "b\ufffd", "1 bad escapes"),
        ("b\\\\ud800", "b\\ud800", None),
        ("b\\ud83d\\ude00", "b\U0001f600", None),
        ("b\\u12", "b\\u12", "1 bad escapes"),
    ],
)
def test_a_fault_in_a_name_is_mended_and_said(tmp_path, damage, name, what):
    event = B.replace('"b"', f'"{damage}"')
    timeline = kineto.read(written(tmp_path, f'{{"traceEvents":[{A},{event},{C}]}}'))
    assert names(timeline) == ["a", name, "c"]
    assert codes(timeline) == ([] if what is None else ["repaired"])
    if what:
        assert what in said(timeline, "repaired")


def test_text_that_is_not_utf8_is_mended_and_said(tmp_path):
    text = f'{{"traceEvents":[{A},{B},{C}]}}'.encode().replace(b'"b"', b'"b\xff\xfe"')
    timeline = kineto.read(written(tmp_path, text))
    assert names(timeline) == ["a", "b\ufffd\ufffd", "c"]
    assert "2 stretches that are not UTF-8" in said(timeline, "repaired")


@pytest.mark.parametrize("value", ["NaN", "nan", "N/A", "Infinity", "-Infinity", "-inf"])
def test_what_is_not_a_number_is_mended_and_said(tmp_path, value):
    event = B.replace('"correlation": 1', f'"correlation": 1, "est. achieved occupancy %": {value}')
    timeline = kineto.read(written(tmp_path, f'{{"traceEvents":[{A},{event},{C}]}}'))
    assert names(timeline) == ["a", "b", "c"]
    assert "1 values that are not numbers" in said(timeline, "repaired")


def test_a_comma_before_the_bracket_is_mended_and_said(tmp_path):
    timeline = kineto.read(written(tmp_path, f'{{"traceEvents":[{A},{B},],"traceName":"x"}}'))
    assert names(timeline) == ["a", "b"]
    assert "1 commas before a bracket" in said(timeline, "repaired")


def test_an_event_that_cannot_be_read_costs_no_other(tmp_path):
    broken = '{"ph":"X","cat":"kernel","name":"no end,"ts":3}'
    text = f'{{"traceEvents":[{A},{broken},{B},{C}],"traceName":"x"}}'
    timeline = kineto.read(written(tmp_path, text))
    assert names(timeline) == ["a", "b", "c"]
    assert said(timeline, "events_lost") == (
        f"1 events could not be read and are left out, the first near offset {text.index(broken)}"
    )
    assert lowered(timeline)


@pytest.mark.parametrize("cut", [1, 10, 40, len(C) - 1])
def test_a_file_that_ends_in_the_middle_of_an_event_is_read_up_to_it(tmp_path, cut):
    text = f'{{"traceEvents":[{A},{B},{C}'
    timeline = kineto.read(written(tmp_path, text[:-cut]))
    assert names(timeline) == ["a", "b"]
    assert f"near offset {text.index(C)}" in said(timeline, "truncated")
    assert lowered(timeline)


@pytest.mark.parametrize("end", ["", ",", ",\n ", "]"])
def test_a_file_that_ends_after_a_whole_event_keeps_it_and_says_what_is_missing(tmp_path, end):
    timeline = kineto.read(written(tmp_path, f'{{"traceEvents":[{A},{B},{C}{end}'))
    assert names(timeline) == ["a", "b", "c"]
    assert codes(timeline) == (["unread"] if end == "]" else ["truncated"])


def test_a_file_that_ends_before_its_first_event_is_refused(tmp_path):
    with pytest.raises(BadInput, match="ends before its first whole event"):
        kineto.read(written(tmp_path, f'{{"traceEvents":[{A[:40]}'))


def test_a_truncated_gzip_is_read_as_far_as_it_goes(tmp_path):
    events = [kernel(f"kernel number {place * 7919 % 10007}", 2 * place, 1) for place in range(4000)]
    packed = gzip.compress(laid(tmp_path, events).read_bytes())
    path = tmp_path / "trace.json.gz"
    path.write_bytes(packed[: len(packed) // 2])
    timeline = open_profile(path)
    count = len(timeline.events)
    assert 1000 < count < 3000
    assert intervals(timeline) == [
        (f"kernel number {n * 7919 % 10007}", 2000 * n, 2000 * n + 1000) for n in range(count)
    ]
    assert said(timeline, "truncated").startswith("the gzip stream ends early")
    assert lowered(timeline)


def test_a_damaged_gzip_is_said_to_be_one(tmp_path):
    events = [kernel(f"kernel number {place * 7919 % 10007}", 2 * place, 1) for place in range(20_000)]
    packed = bytearray(gzip.compress(laid(tmp_path, events).read_bytes()))
    packed[-6] ^= 1  # its checksum
    path = tmp_path / "trace.json.gz"
    path.write_bytes(packed)
    timeline = open_profile(path)
    assert "the gzip stream is damaged" in said(timeline, "truncated")
    assert 0 < len(timeline.events) < 20_000 and lowered(timeline)


@pytest.mark.parametrize(
    ("field", "value"),
    [("dur", -1), ("dur", None), ("dur", 1e300), ("dur", 2**70), ("dur", "nan"), ("dur", "x"), ("dur", [1, 2])],
)
def test_an_event_without_a_usable_duration_is_a_launch_without_time(tmp_path, field, value):
    timeline = read_events(tmp_path, kernel("a", 1, 1), {**kernel("b", 3, 1), field: value}, kernel("c", 5, 1))
    assert intervals(timeline) == [("a", 1000, 2000), ("b", 3000, 3000), ("c", 5000, 6000)]
    assert said(timeline, "bad_durations").startswith("1 events have no usable `dur`") and lowered(timeline)


def test_a_missing_duration_is_one_too(tmp_path):
    event = kernel("b", 3, 1)
    del event["dur"]
    timeline = read_events(tmp_path, kernel("a", 1, 1), event)
    assert intervals(timeline)[1] == ("b", 3000, 3000)
    assert "bad_durations" in codes(timeline)


@pytest.mark.parametrize("value", [None, "soon", 1e300, 2**80, "inf", {}])
def test_an_event_without_a_usable_start_is_left_out_and_counted(tmp_path, value):
    timeline = read_events(tmp_path, kernel("a", 1, 1), kernel("b", value, 1), kernel("c", 5, 1))
    assert names(timeline) == ["a", "c"]
    assert said(timeline, "bad_times").startswith("1 events have no usable `ts`") and lowered(timeline)


def test_a_start_of_zero_or_below_is_a_time_like_any_other(tmp_path):
    assert intervals(read_events(tmp_path, kernel("a", -2, 1), kernel("b", 0, 1))) == [
        ("a", -2000, -1000),
        ("b", 0, 1000),
    ]


def test_a_number_beyond_any_float_is_a_bad_one(tmp_path):
    text = f'{{"traceEvents":[{A},{B},{C}]}}'.replace('"ts": 3, "dur": 1', '"ts": 3, "dur": 1e999')
    timeline = kineto.read(written(tmp_path, text))
    assert intervals(timeline)[1] == ("b", 3000, 3000)
    assert "bad_durations" in codes(timeline)


def test_fields_of_other_types_cost_only_themselves(tmp_path):
    odd = [
        {**kernel("a", 1, 1), "args": []},
        {**kernel("b", 3, 1), "args": {"device": 0, "stream": 7, "correlation": {}, "bytes": True, "grid": "x"}},
        {**kernel("c", 5, 1), "name": None},
        {**kernel("d", 7, 1), "pid": [], "tid": {}},
        None,
        "text",
        {**kernel("e", 9, 1), "cat": 5},
    ]
    timeline = read_events(tmp_path, *odd)
    assert intervals(timeline) == [("a", 1000, 2000), ("b", 3000, 4000), ("", 5000, 6000), ("d", 7000, 8000)]


def test_of_a_key_given_twice_the_last_counts(tmp_path):
    text = f'{{"traceEvents":[{A},{B}]}}'.replace('"ts": 3', '"ts": 100, "ts": 3')
    assert intervals(kineto.read(written(tmp_path, text)))[1] == ("b", 3000, 4000)


def test_begin_and_end_events_are_counted_and_said(tmp_path):
    pair = [{**kernel("b", ts, 0), "ph": ph} for ph, ts in (("B", 3), ("E", 4))]
    timeline = read_events(tmp_path, kernel("a", 1, 1), *pair)
    assert said(timeline, "begin_end").startswith("2 events of phase B or E")


def test_a_long_name_is_cut_and_said(tmp_path):
    timeline = read_events(tmp_path, kernel("x" * (LONGEST_NAME + 1), 1, 1))
    assert names(timeline) == ["x" * LONGEST_NAME]
    assert "long_names" in codes(timeline)


def test_json_without_events_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no array traceEvents"):
        open_profile(written(tmp_path, '{"schemaVersion": 1, "traceEvents": null}'))


def test_what_follows_the_events_is_never_dropped_silently(tmp_path):
    whole = f'{{"traceEvents":[{A}]}}'
    timeline = kineto.read(written(tmp_path, whole + whole.replace('"a"', '"b"')))
    assert names(timeline) == ["a"]
    assert codes(timeline) == ["unread"] and lowered(timeline)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "\0" * 3_000_000, "garbage " * 1000, '"' * 5001])
def test_an_array_of_something_else_is_refused_with_its_offset(tmp_path, text):
    with pytest.raises(BadInput, match=r"offset 17|before its first whole event"):
        kineto.read(written(tmp_path, '{"traceEvents": [' + text))


def test_an_event_nested_too_deeply_costs_only_itself(tmp_path):
    deep = B.replace('"correlation": 1', '"correlation": 1, "deep": ' + 100_000 * '{"a":' + "1" + 100_000 * "}")
    timeline = kineto.read(written(tmp_path, f'{{"traceEvents":[{A},{deep},{C}]}}'))
    assert names(timeline) == ["a", "c"]
    assert "events_lost" in codes(timeline)


def test_memory_is_bounded_where_every_event_must_be_mended(tmp_path):
    bad = B.replace('"b"', '"b\x01"')
    timeline = kineto.read(written(tmp_path, f'{{"traceEvents":[{",".join([bad] * 20_000)}]}}'))
    assert swept(timeline).devices[0].events == 20_000
    assert "20,000 control characters" in said(timeline, "repaired")


def test_msgspec_says_where_an_array_ends_and_when_it_is_cut_off():
    # _json_chunks goes by these words; a release of msgspec that says it otherwise must be noticed
    text = b'[{"ph":"X"}]'
    with pytest.raises(msgspec.DecodeError, match=r"trailing characters \(byte 13\)"):
        msgspec.json.decode(text + b',"traceName":"x"}')
    with pytest.raises(msgspec.DecodeError, match="truncated"):
        msgspec.json.decode(text[:-1])
