"""`kernels.build`: one build per machine, whole objects only, and an answer where there is no compiler."""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from kernels import build
from kernels.errors import Unavailable

ROOT = Path(__file__).resolve().parents[2]
ANSWER = 'extern "C" int answer() { return VALUE; }\n'


def _compiler_or_skip() -> str:
    try:
        return build.find_compiler()[0]
    except Unavailable as error:
        pytest.skip(error.reason)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source that says 42, a cache of its own, and a compiler that counts how often it compiles."""
    real = _compiler_or_skip()
    counting = tmp_path / "counting-c++"
    counting.write_text(
        f'#!/bin/sh\ncase "$*" in *--version*) ;; *) echo compiled >> "{tmp_path}/count"; sleep 0.3;; esac\n'
        f'exec "{real}" "$@"\n'
    )
    counting.chmod(0o755)
    monkeypatch.setenv("CXX", str(counting))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    written = tmp_path / "answer.cpp"
    written.write_text(ANSWER.replace("VALUE", "42"))
    return written


def _compilations(source: Path) -> int:
    count = source.with_name("count")
    return len(count.read_text().splitlines()) if count.exists() else 0


def _answer(built: Path) -> int:
    return ctypes.CDLL(str(built)).answer()


def _in_another_process(program: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


LOAD = "import sys, pathlib; from kernels import build; print(build.load(pathlib.Path(sys.argv[1])).answer())"


def test_an_object_is_built_once_and_then_taken_from_the_cache(source: Path) -> None:
    first = build.build(source)
    assert _answer(first) == 42
    assert build.build(source) == first
    assert _compilations(source) == 1
    assert first.parent == build.cache_directory()


def test_processes_that_start_together_build_once(source: Path) -> None:
    started = [_in_another_process(LOAD, str(source)) for _ in range(4)]
    told = [process.communicate(timeout=60) for process in started]
    assert [out.strip() for out, _ in told] == ["42"] * 4, told
    assert _compilations(source) == 1
    left = {path.suffix for path in build.cache_directory().iterdir()}
    assert left == {".so", ".sha256", ".lock"}


@pytest.mark.parametrize("keep", [0, 1000])
def test_a_truncated_object_is_built_again(source: Path, keep: int) -> None:
    built = build.build(source)
    whole = built.read_bytes()
    # A new file, because cutting one that is mapped into a process would kill that process.
    built.unlink()
    built.write_bytes(whole[:keep])
    out, err = _in_another_process(LOAD, str(source)).communicate(timeout=60)
    assert out.strip() == "42", err
    assert _compilations(source) == 2


def test_an_object_without_its_sum_is_built_again(source: Path) -> None:
    built = build.build(source)
    built.with_suffix(".sha256").unlink()
    build.build(source)
    assert _compilations(source) == 2


def test_an_object_that_has_its_sum_but_does_not_load_is_built_again(source: Path) -> None:
    import hashlib

    built = build.build(source)
    built.unlink()
    built.write_bytes(b"not an object")
    built.with_suffix(".sha256").write_text(hashlib.sha256(b"not an object").hexdigest())
    out, err = _in_another_process(LOAD, str(source)).communicate(timeout=60)
    assert out.strip() == "42", err
    assert _compilations(source) == 2


def test_the_key_changes_with_the_flags_the_source_and_the_compiler(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [build.object_key(source), build.object_key(source, (*build.FLAGS, "-DX=1"))]
    # The same characters split in another way are other flags.
    keys += [build.object_key(source, ("-DX", "Y")), build.object_key(source, ("-D", "XY"))]
    source.write_text(ANSWER.replace("VALUE", "43"))
    keys.append(build.object_key(source))
    monkeypatch.setenv("CXX", f"{os.environ['CXX']} -DX=1")
    keys.append(build.object_key(source))
    assert len(set(keys)) == len(keys)
    assert build.object_key(source) == keys[-1]


def test_a_changed_source_gives_its_own_object(source: Path) -> None:
    assert _answer(build.build(source)) == 42
    source.write_text(ANSWER.replace("VALUE", "43"))
    assert _answer(build.build(source)) == 43


def test_no_compiler_is_told_with_what_to_install(tmp_path: Path) -> None:
    program = (
        "import pathlib; from kernels import build; from kernels.errors import Unavailable\n"
        "try: build.build(pathlib.Path('x.cpp'))\n"
        "except Unavailable as error: print(error.reason); print(error.remedy)\n"
    )
    out, err = _in_another_process(program, PATH=str(tmp_path), CXX="").communicate(timeout=60)
    reason, remedy = out.splitlines()
    assert reason == "There is no C++ compiler on the PATH (looked for c++, g++, clang++).", err
    assert "apt-get install g++" in remedy


def test_a_compiler_named_by_cxx_that_is_not_there_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -m64")
    with pytest.raises(Unavailable, match="no-such-compiler") as caught:
        build.find_compiler()
    assert "CXX" in caught.value.remedy


def test_a_source_that_does_not_compile_shows_what_the_compiler_said(source: Path) -> None:
    source.write_text('extern "C" int answer() { return undeclared_name; }\n')
    with pytest.raises(Unavailable) as caught:
        build.build(source)
    assert "undeclared_name" in caught.value.reason
    assert str(source) in caught.value.remedy
    assert {path.suffix for path in build.cache_directory().iterdir()} == {".lock"}


def test_a_cache_that_cannot_be_made_is_told_with_the_variable_to_set(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(Unavailable, match="cannot be written") as caught:
        build.build(source)
    assert "XDG_CACHE_HOME" in caught.value.remedy


def test_a_relative_cache_home_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert build.cache_directory() == tmp_path / ".cache" / "campaign" / "kernels"


def test_unavailable_survives_the_way_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(Unavailable(reason="No compiler.", remedy="Install one.")))
    assert (error.reason, error.remedy, str(error)) == ("No compiler.", "Install one.", "No compiler. Install one.")
