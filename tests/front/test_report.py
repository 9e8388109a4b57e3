"""`campaign report` on a real ledger: what it writes and answers, what it replaces and what it leaves alone."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.cli import main
from campaign.errors import BadInput
from campaign.report.review_files import MARK, check_folder, marked_png, write_report
from tests.report.written import faster, opened, slower


@pytest.fixture
def decided(project, add):
    """A project with one accept and one reject in campaign `demo`."""
    with opened(project) as ledger:
        faster(ledger)
        slower(ledger, stack=("prenorm_fusion",))
    return project


def test_it_answers_with_its_files_their_sizes_and_every_figures_sources(decided, capsys):
    assert main(["report", "--campaign", "demo", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    page = Path(said["page"])
    assert (said["schema"], said["decisions"], said["findings"]) == (1, 2, 0)
    assert page == decided / "runs/demo/report/index.html" and page.stat().st_size == said["bytes"]
    assert {one["name"] for one in said["figures"]} >= {"waterfall", "forest", "traces"}
    for one in said["figures"]:
        assert one["evidence"] and one["alt"] and one["rows"]
        for file in one["files"]:
            path = Path(file["path"])
            assert path.stat().st_size == file["bytes"]
            assert path.read_bytes().startswith(b"\x89PNG" if path.suffix == ".png" else b"<?xml")
    assert {"interactions", "families"} <= {one["name"] for one in said["absent"]}
    assert all(one["why"].endswith(".") for one in said["absent"])
    written = {path.name for path in (page.parent / "figures").iterdir()}
    assert written == {Path(file["path"]).name for one in said["figures"] for file in one["files"]}
    assert sorted(path.name for path in page.parent.iterdir()) == ["figures", "index.html"]
    forest = next(one for one in said["figures"] if one["name"] == "forest")
    assert forest["rows"] == ["#1", "#2"]


def test_the_same_ledger_gives_the_same_page_again_and_the_browser_is_shown_it(decided, capsys, monkeypatch):
    viewer = decided / "viewer.sh"
    viewer.write_text(f'#!/bin/sh\necho "$1" > {decided}/shown\n')
    viewer.chmod(0o755)
    assert main(["report", "--campaign", "demo", "--out", "out"]) == 0
    first = capsys.readouterr().out
    assert first.startswith("written: out/index.html (") and "2 decisions, 0 findings" in first
    assert "no families: No profile" in first
    sums = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in Path("out").rglob("*.*")}
    old = Path("out/figures/gone.svg")
    old.write_text(f"<!-- {MARK} -->\n<svg/>")
    kept = Path("out/figures/mine.svg")
    kept.write_text("<svg/>")
    monkeypatch.setenv("BROWSER", f"{viewer} %s")
    monkeypatch.delitem(sys.modules, "webbrowser", raising=False)
    assert main(["report", "--campaign", "demo", "--out", "out", "--open"]) == 0
    assert (decided / "shown").read_text().strip() == (decided / "out/index.html").as_uri()
    assert {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in sums} == sums
    assert not old.exists() and kept.read_text() == "<svg/>"


@pytest.mark.parametrize("name", ["index.html", "figures/forest.png"])
def test_a_file_of_somebody_else_is_left_as_it_is_and_nothing_is_written(decided, capsys, name):
    mine = decided / "out" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("<h1>mine</h1>")
    assert main(["report", "--campaign", "demo", "--out", "out"]) == 2
    said = capsys.readouterr().err
    assert f"out/{name} is there and was not made by campaign report" in said
    assert "try: campaign report --campaign demo --out DIR" in said
    assert mine.read_text() == "<h1>mine</h1>"
    assert [path for path in (decided / "out").rglob("*") if path.is_file()] == [mine]


def test_a_folder_that_cannot_be_written_is_bad_input(decided, capsys):
    (decided / "file").touch()
    for place in ("file", "file/deeper", "/proc/self/report"):
        assert main(["report", "--campaign", "demo", "--out", place, "--json"]) == 2
        answer = json.loads(capsys.readouterr().out)
        assert answer["exit_code"] == 2 and f"into {place}" in answer["message"]
        assert answer["remedy"].startswith("campaign report --campaign demo --json --out DIR")


def test_a_campaign_that_is_not_there_or_not_begun_is_bad_input(project, add, capsys):
    assert main(["report"]) == 2
    said = capsys.readouterr().err
    assert "campaign default has no ledger yet" in said and "try: campaign hypothesis=aa_null" in said
    with opened(project) as ledger:
        ledger.append("note", "n-1", {"text": "begun"})
    assert main(["report", "--campaign", "demi"]) == 2
    assert "did you mean 'demo'?" in capsys.readouterr().err
    assert not list((project / "runs").rglob("report"))


def test_a_ledger_without_a_decision_has_a_page_that_says_so(project, add, capsys):
    with opened(project) as ledger:
        ledger.append("note", "n-1", {"text": "begun"})
    assert main(["report", "--campaign", "demo", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["decisions"] == 0 and said["figures"] == []
    assert "No decision has been made yet." in Path(said["page"]).read_text()


def test_a_link_is_no_file_of_ours_and_what_it_leads_to_stays(tmp_path):
    target = tmp_path / "elsewhere.html"
    target.write_text(f"<!-- {MARK} -->")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/index.html").symlink_to(target)
    with pytest.raises(BadInput, match="not made by campaign report"):
        check_folder(tmp_path / "out", ["index.html"])
    (tmp_path / "out/index.html").unlink()
    (tmp_path / "out/index.html").symlink_to("nowhere")
    with pytest.raises(BadInput, match="not made by campaign report"):
        write_report(tmp_path / "out", {"index.html": b"new"})


def test_a_write_that_fails_leaves_the_old_page_and_no_half_of_the_new(tmp_path):
    page = f"<!-- {MARK} -->old".encode()
    write_report(tmp_path, {"index.html": page})
    name = "figures/" + "n" * 248 + ".svg"  # a name that leaves no room for the passing one
    with pytest.raises(BadInput, match="cannot write the report into"):
        write_report(tmp_path, {"index.html": b"new", "figures/a.svg": b"new", name: b"new"})
    assert (tmp_path / "index.html").read_bytes() == page
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["index.html"]


def test_a_full_disk_is_no_bad_input(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    (tmp_path / "figures").mkdir()
    passing = tmp_path / f".index.html.{os.getpid()}"
    passing.symlink_to("/dev/full")  # where the new page is written before it gets its name
    with pytest.raises(OSError, match="No space left") as caught:
        write_report(tmp_path, {"index.html": b"new" * 100_000})
    assert not isinstance(caught.value, BadInput)
    assert not (tmp_path / "index.html").exists()


def test_the_mark_of_a_picture_is_a_chunk_that_readers_know(tmp_path):
    from matplotlib.image import imread, imsave
    from PIL import Image

    path = tmp_path / "x.png"
    imsave(path, [[0.0, 1.0], [1.0, 0.0]])
    before = imread(path)
    path.write_bytes(marked_png(path.read_bytes()))
    with Image.open(path) as image:
        image.verify()
    with Image.open(path) as image:
        image.load()
        assert image.text["Comment"] == MARK
    assert (imread(path) == before).all()


def test_an_environment_in_which_matplotlib_does_not_start_is_bad_input(decided):
    command = [sys.executable, "-m", "campaign", "report", "--campaign", "demo"]
    done = subprocess.run(
        command, cwd=decided, env={**os.environ, "MPLBACKEND": "nope"}, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert "unset MPLBACKEND" in done.stderr and "Traceback" not in done.stderr
