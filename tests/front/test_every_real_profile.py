"""Every real file of ../shared/data/traces, where it is there: a page in every form, or a refusal with what to type."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from campaign.cli import main
from tests.report.test_html import Page

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
FILES = sorted(path for path in TRACES.glob("*") if path.suffix != ".tsv") if TRACES.is_dir() else []
# What each refusal must say.
REFUSED = {
    "tracelens_rocprof_908_results.json.gz": "rocprofv3",
    "tracelens_jax_te.xplane.pb": "xplane",
}
LAST = "campaign hypothesis=NAME"

pytestmark = pytest.mark.skipif(not FILES, reason="the real profiles are not on this machine")


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_is_a_page_in_every_form_or_a_refusal(path, capsys):
    code = main(["diagnose", str(path), "--target", "1.5x"])
    said = capsys.readouterr()
    if code:
        assert code == 2 and said.out == ""
        assert path.name in said.err and "try:" in said.err and "Traceback" not in said.err
        assert path.name in REFUSED or path.suffix == ".ncu-rep", said.err
        assert REFUSED.get(path.name, "ncu --import") in said.err
        return
    assert path.name not in REFUSED
    # Paths and names without a blank may be longer than a line.
    assert [line for line in said.out.splitlines() if len(line) > 80 and " " in line.strip()] == []
    assert said.out.rstrip().endswith(f"{LAST}.")
    assert re.search(r"\bnan\b|\binf\b|\bNone\b", said.out) is None
    assert main(["diagnose", str(path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["diagnoses"]
    if found["families"]:
        charged = sum(one["charged_ns"] for one in found["families"]["shares"])
        assert charged == pytest.approx(found["families"]["busy_ns"], rel=1e-9)
        idle = sum(one["idle_ns"] for one in found["dispatch"]["devices"])
        assert sum(found["dispatch"]["idle_by_cause_ns"].values()) == idle
    assert main(["diagnose", str(path), "--export", "html"]) == 0
    page = Page(capsys.readouterr().out)
    assert page.open == [] and not {tag for tag, _ in page.tags} & {"script", "img", "iframe"}
