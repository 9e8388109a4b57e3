"""An MLflow server that is there already: the same as the project's own store, and never in a measurement's way.

One real `mlflow server` on loopback for all tests; what goes wrong on the way to it is done by `proxy.Proxy`.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign.cli import main
from campaign.errors import BadInput, TrackingFailed
from campaign.ledger import open_ledger
from campaign.tracking import page, send, store, sync, ui_environment
from tests.builders import PROJECT, laid_down
from tests.tracking import campaigns
from tests.tracking.proxy import Proxy
from tests.tracking.test_server import free_port

pytestmark = pytest.mark.slow  # a server takes some 10 CPU seconds to start, and each writer of its own imports MLflow

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
USER, PASSWORD = "reviewer", "s3cret-of-the-server"
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
NO_SLEEP = ["workload=tiny", "hypothesis=no_sleep", "workload.sleep=0.01"]
DECISION = "prenorm_fusion-plan-1-decision"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Iterator[str]:
    """The address of a server with an empty store of its own."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(template, folder / "mlflow.db")
    address = f"http://127.0.0.1:{(port := free_port())}"
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        *("--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", f"file://{folder}/kept"),
    ]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            command, cwd=folder, env=ui_environment(), stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 90
        while not answers(address):
            assert process.poll() is None and time.monotonic() < deadline, (folder / "said").read_text()
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5):
            return True
    except OSError:
        return False


@pytest.fixture
def proxy(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    found = Proxy(server)
    yield found
    found.close()


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[campaigns.Ledger]:
    """The accepted `prenorm_fusion` in a project that has no MLflow store."""
    with campaigns.open_ledger(tmp_path / "project", campaigns.CAMPAIGN, writable=True) as ledger:
        campaigns.prenorm(ledger)
        yield ledger


def root_of(ledger: campaigns.Ledger) -> Path:
    return ledger.folder.parent.parent


def experiment_of(ledger: campaigns.Ledger, address: str) -> str:
    return page(root_of(ledger), ledger.folder, address).partition("/experiments/")[2].partition("/")[0]


def runs_of(ledger: campaigns.Ledger, address: str, condition: str = "tags.`campaign.kind` = 'decision'") -> list:
    client = store.open_client(root_of(ledger), address)
    return list(client.search_runs([experiment_of(ledger, address)], condition))


def test_a_server_gets_what_the_projects_own_store_gets(bare, server):
    assert send(bare, [DECISION], server) == [DECISION]
    (run,) = runs_of(bare, server)
    assert run.info.run_name == "01 ACCEPT +4.1 % prenorm_fusion" and run.info.status == "FINISHED"
    assert run.data.tags["speed"] == "1.041x [1.022, 1.060]"
    assert run.data.tags["memory"] == "480.0 MiB (-32.0 MiB)" and run.data.tags["floor"] == "3.0 %, measured"
    assert run.data.metrics["ratio"] == 1.0408
    assert len(runs_of(bare, server, f"tags.`mlflow.parentRunId` = '{run.info.run_id}'")) == 8
    client = store.open_client(root_of(bare), server)
    paths = {one.path for one in client.list_artifacts(run.info.run_id)}
    assert {"decision.md", "code.patch.txt", "figures", "logs", "evidence.json"} <= paths
    note = client.get_experiment(experiment_of(bare, server)).tags["mlflow.note.content"]
    assert note.startswith("**demo: 1 decision, accepted: prenorm_fusion**")
    assert not (root_of(bare) / "runs" / "mlflow.db").exists()
    assert sync(bare, None, server) == []


def test_the_workload_is_the_recorded_dataset_of_a_run(bare, server):
    sync(bare, None, server)
    (run,) = runs_of(bare, server)
    (given,) = run.inputs.dataset_inputs
    plan = bare.plans()[0]
    assert (given.dataset.name, given.dataset.digest) == ("hybrid_tiny", plan.control.hash[:16])
    # 512 tokens in each block of one step, from the blocks themselves; `batch` is of the recorded configuration.
    assert json.loads(given.dataset.profile) == {"tokens_per_step": 512, "batch": 2}
    tags = json.loads(given.dataset.source)["tags"]
    assert tags["mlflow.source.name"] == "models.HybridStep" and tags["campaign.arm"] == "root"


def test_two_projects_with_campaigns_of_one_name_do_not_mix(bare, server, tmp_path):
    sync(bare, None, server)
    with campaigns.open_ledger(tmp_path / "other" / "project", campaigns.CAMPAIGN, writable=True) as other:
        campaigns.parity_red(other)
        sync(other, None, server)
        assert [run.data.tags["hypothesis"] for run in runs_of(other, server)] == ["precision_tail"]
        assert experiment_of(other, server) != experiment_of(bare, server)
    assert [run.data.tags["hypothesis"] for run in runs_of(bare, server)] == ["prenorm_fusion"]


def test_a_campaign_that_the_server_does_not_have_is_refused_with_the_next_command(bare, server):
    with pytest.raises(BadInput, match="has nothing of campaign 'demo'") as failure:
        page(root_of(bare), bare.folder, server)
    assert failure.value.remedy == f"campaign sync --campaign demo --uri {server}, then campaign ui --campaign demo"


def test_the_password_comes_from_mlflows_own_variables_and_is_written_nowhere(bare, proxy, monkeypatch, tmp_path):
    proxy.authorization = f"Basic {BASIC}"
    with pytest.raises(TrackingFailed, match="does not let this person in") as failure:
        send(bare, [DECISION], proxy.address)
    assert failure.value.remedy.startswith("export MLFLOW_TRACKING_USERNAME=... MLFLOW_TRACKING_PASSWORD=...")
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", USER)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "wrong-" + PASSWORD)
    with pytest.raises(TrackingFailed) as failure:
        send(bare, [DECISION], proxy.address)
    assert "***" in str(failure.value), "the proxy repeats what it was sent"
    assert not any(secret in str(failure.value) for secret in (PASSWORD, BASIC))
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    assert send(bare, [DECISION], proxy.address) == [DECISION]
    assert whole_and_alone(bare, proxy.address)
    for path in (path for path in tmp_path.parent.rglob("*") if path.is_file()):
        assert not any(secret.encode() in path.read_bytes() for secret in (PASSWORD, BASIC)), path


def test_a_token_works_as_a_password_does(bare, proxy, monkeypatch):
    proxy.authorization = f"Bearer {PASSWORD}"
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", PASSWORD)
    assert sync(bare, None, proxy.address) == [DECISION]


def whole_and_alone(ledger: campaigns.Ledger, address: str) -> bool:
    """The decision has one run, whole, and nothing says RUNNING."""
    (run,) = runs_of(ledger, address)
    return run.data.tags["campaign.mirror"] == "whole" and not runs_of(ledger, address, "attributes.status = 'RUNNING'")


@pytest.mark.parametrize("passes", [0, 12], ids=["at once", "after twelve requests"])
def test_a_server_that_dies_is_a_warning_and_the_next_sync_completes(bare, proxy, passes):
    proxy.passes = passes
    with pytest.raises(TrackingFailed, match="does not answer") as failure:
        send(bare, [DECISION], proxy.address)
    assert failure.value.exit_code == 0
    assert failure.value.remedy == f"campaign sync --campaign demo --uri {proxy.address}"
    proxy.passes = None
    assert sync(bare, None, proxy.address) == [DECISION]
    assert whole_and_alone(bare, proxy.address)


def test_a_server_that_hangs_is_left_when_its_time_is_over_and_the_next_sync_completes(bare, proxy):
    proxy.passes, proxy.then = 8, "hang"
    began = time.monotonic()
    with pytest.raises(TrackingFailed, match="took longer than 8 s"):
        send(bare, [DECISION], proxy.address, limit_seconds=8)
    assert time.monotonic() - began < 8 + 5
    proxy.passes = None
    assert sync(bare, None, proxy.address) == [DECISION]
    assert whole_and_alone(bare, proxy.address)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_page_opens_on_decisions_with_verdict_speed_memory_and_floor(bare, server, tmp_path):
    sync(bare, None, server)
    url, row = page(root_of(bare), bare.folder, server), f"runs/{runs_of(bare, server)[0].info.run_id}"
    table = seen(url, tmp_path, until=row)
    for text in ("verdict", "speed", "memory", "floor", "1.041x [1.022, 1.060]", "480.0 MiB (-32.0 MiB)", "3.0 %, mea"):
        assert text in table
    assert "01 ACCEPT +4.1 % prenorm_fusion" in table and "screen 01 control" not in table
    assert "demo: 1 decision, accepted: prenorm_fusion" in table
    charts = seen(url + "&compareRunsMode=CHART", tmp_path, until="The campaign")
    assert "The campaign" in charts and "peak_memory_mib/treatment" in charts


def seen(url: str, folder: Path, until: str) -> str:
    """The page's DOM in headless Chromium, once `until` stands in it; the last one after four looks."""
    command = [
        *(str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/chromium"),
        *("--window-size=1800,1000", "--dump-dom", "--virtual-time-budget=30000", url),
    ]
    for _ in range(4):
        found = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout
        if until in found:
            break
    return found


def test_the_sync_that_a_failed_run_names_completes_its_mirror(server, tmp_path, monkeypatch, capfd):
    root = laid_down(PROJECT, tmp_path, monkeypatch)
    assert main([*NO_SLEEP, f"tracking.uri=http://127.0.0.1:{free_port()}"]) == 0
    with open_ledger(root, "default", writable=False) as ledger:
        made = ledger.decisions()[0].id
        assert main(["ui", "--uri", server]) == 2
        capfd.readouterr()
        assert main(["sync", "--uri", server, "--json"]) == 0
        assert json.loads(capfd.readouterr().out) == {"schema": 1, "mirrored": [made], "destination": server}
        assert main(["ui", "--uri", server]) == 0
        assert capfd.readouterr().out.strip() == page(root, ledger.folder, server)
    assert not (root / "runs" / "mlflow.db").exists()
