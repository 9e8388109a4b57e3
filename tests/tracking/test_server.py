"""`campaign ui`: what it refuses, what it starts, and the view it opens."""

from __future__ import annotations

import json
import signal
import socket
import urllib.request

import pytest

from campaign.errors import BadInput
from campaign.tracking import review, ui_command, ui_environment, ui_url
from tests.tracking import campaigns
from tests.tracking.test_mirror import client_of, root_of
from tests.tracking.test_survival import python


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "example.org", "::"])
def test_a_host_that_others_can_reach_is_refused(mirrored, host):
    with pytest.raises(BadInput, match="not loopback") as failure:
        ui_command(root_of(mirrored), "demo", host=host, port=5000)
    assert "ssh -L 5000:127.0.0.1:5000" in failure.value.remedy


def test_a_port_in_use_is_refused_with_the_next_command(mirrored):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match="Address already in use") as failure:
            ui_command(root_of(mirrored), "demo", port=port)
    assert failure.value.remedy == f"campaign ui --port {port + 1}"


def test_a_campaign_without_a_mirror_is_refused_with_the_next_command(mirrored, tmp_path):
    for root, name in ((root_of(mirrored), "nothing"), (tmp_path, "demo")):
        with pytest.raises(BadInput) as failure:
            ui_url(root, name)
        assert failure.value.remedy == f"campaign sync --campaign {name}, then campaign ui --campaign {name}"


def test_the_server_is_small_local_and_knows_where_the_store_is(mirrored, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere")
    command = ui_command(root_of(mirrored), "demo", port=free_port())
    assert command[command.index("--workers") + 1] == "1"
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--backend-store-uri") + 1] == f"sqlite:///{root_of(mirrored)}/runs/mlflow.db"
    environment = ui_environment()
    assert environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] == "false"
    assert environment["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert "MLFLOW_TRACKING_URI" not in environment


def test_the_address_opens_a_view_of_decisions_with_columns_that_exist(mirrored):
    client = client_of(root_of(mirrored))
    experiment = client.get_experiment_by_name("demo")
    assert ui_url(root_of(mirrored), "demo", port=5001) == (
        f"http://127.0.0.1:5001/#/experiments/{experiment.experiment_id}/runs"
        "?workflowType=machine_learning&viewStateShareKey=campaign"
    )
    state = json.loads(experiment.tags["mlflow.sharedViewState.campaign"])
    found = client.search_runs([experiment.experiment_id], state["searchFilter"])
    assert len(found) == 6
    # The first accept was on an empty stack, the second has what it does alone and with the stack as well.
    second = next(run.data for run in found if run.data.metrics.get("sequence") == 3)
    first = next(run.data for run in found if run.data.metrics.get("sequence") == 1)
    metrics = first.metrics | second.metrics
    for column in review.COLUMNS:
        kind, _, key = column.partition(".")
        known = {"metrics": metrics, "tags": second.tags, "attributes": {"Description": 1}}[kind]
        assert key.strip("`") in known


SERVES = """
import sys
from pathlib import Path
from campaign.tracking import serve
sys.exit(serve(Path(sys.argv[1]), "demo", port=int(sys.argv[2]), show=lambda text: print(text, flush=True)))
"""


@pytest.mark.slow  # MLflow's server takes some 10 CPU seconds to start
def test_the_server_answers_with_the_campaign_and_ends_when_told(mirrored):
    port = free_port()
    process = python(SERVES, root_of(mirrored), str(port))
    try:
        assert process.stdout is not None
        while not (line := process.stdout.readline()).startswith("http"):
            assert line, process.communicate()
        assert line.strip() == ui_url(root_of(mirrored), "demo", port=port)
        address = f"http://127.0.0.1:{port}/api/2.0/mlflow/experiments/get-by-name?experiment_name=demo"
        with urllib.request.urlopen(address, timeout=60) as answer:
            tags = {tag["key"]: tag["value"] for tag in json.load(answer)["experiment"]["tags"]}
        assert tags["mlflow.note.content"].startswith(f"**{campaigns.CAMPAIGN}: 6 decisions")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
