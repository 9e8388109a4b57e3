"""What comes with profiling and cannot be read is named, with a next command."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import shlex
import zipfile
from pathlib import Path

import pytest

from campaign.errors import BadInput
from campaign.traces import open_profile, readers, refused


def refusal(path: Path, content: bytes) -> BadInput:
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        open_profile(path)
    assert str(path) in caught.value.message
    assert caught.value.remedy
    return caught.value


def test_report_of_nsys_gets_the_export_that_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "my step.nsys-rep"
    error = refusal(path, b"\x00\x01NVIDIA Tegra Profiler Report\x00" + bytes(500))
    out = shlex.quote(str(tmp_path / "my step.sqlite"))
    export = f"nsys export --type sqlite --output {out} {shlex.quote(str(path))}"
    assert error.remedy == f"{export} && campaign diagnose {out}"


def test_report_of_nsys_under_a_wrong_name_is_moved_before_its_export(tmp_path: Path) -> None:
    path = tmp_path / "odd.sqlite"
    error = refusal(path, b"NVIDIA Tegra Profiler Report" + bytes(500))
    assert error.remedy.startswith(f"mv {path} {tmp_path}/odd.nsys-rep && nsys export --type sqlite")
    assert f"--output {path} {tmp_path}/odd.nsys-rep" in error.remedy


@pytest.mark.parametrize(
    ("name", "word", "command"),
    [
        ("tracelens_jax_te.xplane.pb", "XLA profile", "nsys profile -t cuda,nvtx"),
        ("tracelens_rocprof_908_results.json.gz", "rocprofv3", "campaign profile hypothesis=NAME"),
    ],
)
def test_real_files_of_other_makers_are_named(real_traces: Path, name: str, word: str, command: str) -> None:
    with pytest.raises(BadInput, match=word) as caught:
        open_profile(real_traces / name)
    assert caught.value.remedy.startswith(command)


def test_real_profiles_are_read_by_a_reader_and_never_refused(real_traces: Path) -> None:
    from campaign.traces import _head

    for path in sorted(real_traces.iterdir()):
        if path.suffix == ".tsv" or "rocprof" in path.name or "xplane" in path.name:
            continue
        reader = next(one for one in readers() if one.recognises(_head(path), path))
        assert reader.FORMAT, path.name


def test_refusals_come_after_every_reader() -> None:
    assert readers()[-1] is refused
    assert [one.__name__ for one in readers() if not one.FORMAT] == ["campaign.traces.refused"]


def test_memory_snapshot_is_told_from_other_pickles(tmp_path: Path) -> None:
    snapshot = pickle.dumps({"segments": [{"device": 0}], "device_traces": [[]]})
    assert "memory snapshot" in refusal(tmp_path / "snapshot.pickle", snapshot).message
    assert "never opened" in refusal(tmp_path / "other.pt", pickle.dumps([1, 2, 3])).message


def test_zip_is_refused_with_the_command_that_lists_it(tmp_path: Path) -> None:
    path = tmp_path / "traces.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("trace.json", "{}")
    assert refusal(path, path.read_bytes()).remedy == f"python -m zipfile -l {path}"


@pytest.mark.parametrize(
    ("name", "content", "command"),
    [
        ("t.json.xz", lzma.compress(b'{"traceEvents": []}'), "xz -dc"),
        ("t.json.bz2", bz2.compress(b'{"traceEvents": []}'), "bzip2 -dc"),
        ("t.json.zst", b"\x28\xb5\x2f\xfd" + bytes(40), "zstd -dc"),
    ],
)
def test_other_compression_gets_the_command_that_undoes_it(
    tmp_path: Path, name: str, content: bytes, command: str
) -> None:
    path = tmp_path / name
    out = tmp_path / "t.json"
    assert refusal(path, content).remedy == f"{command} {path} > {out} && campaign diagnose {out}"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"<!DOCTYPE html><html><body>report</body></html>", "markup"),
        (b'{"args": {"alpha": 1}, "runs": []}', "no trace"),
        (b"[1, 2, 3]", "no trace"),
        (b"step,seconds\n1,0.5\n2,0.4\n", "text, and no table"),
        ("Zeile für Zeile, wie es war\n".encode() * 4000, "text, and no table"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "an image"),
        (b"\x7fELF" + bytes(100), "an executable"),
        (b"PAR1" + bytes(100), "columnar"),
        (b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x05", "Perfetto"),
        (b"\x18\x00\x00\x00\x00\x00\x00\x00abcd\x09\x80\x80\x1a\x0dbrain.Event:2" + bytes(30), "TensorBoard"),
    ],
)
def test_common_files_are_named(tmp_path: Path, content: bytes, word: str) -> None:
    assert word in refusal(tmp_path / "given", content).message


def test_content_decides_also_inside_gzip(tmp_path: Path) -> None:
    error = refusal(tmp_path / "trace.json.gz", gzip.compress(b'{"rocprofiler-sdk-tool":[{"metadata":{}}]}'))
    assert "rocprofv3" in error.message


def test_what_nobody_knows_is_refused_with_the_formats_that_are_read(tmp_path: Path) -> None:
    error = refusal(tmp_path / "noise", bytes([0, 255, 7, 200] * 64))
    assert "not a profile that can be read" in error.message
    assert "Nsight Systems export (.sqlite)" in error.remedy
    assert ", ," not in error.remedy and not error.remedy.endswith(", ")
