"""Which MLflow a campaign is mirrored to, and a run whose server is not there."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from campaign.cli import main
from campaign.config import load
from campaign.destination import address, again, destination_of
from campaign.errors import BadInput, TrackingFailed, UnknownName
from campaign.ledger import open_ledger
from campaign.tracking import send
from campaign.tracking.address import chosen, declared, of_command
from tests.builders import PROJECT, laid_down
from tests.tracking import campaigns
from tests.tracking.test_server import free_port

CONFIG = "tracking: {uri: null}"


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    return laid_down(PROJECT, tmp_path, monkeypatch)


def configured(root: Path, text: str) -> None:
    path = root / "conf" / "config.yaml"
    before = path.read_text()
    assert CONFIG in before
    path.write_text(before.replace(CONFIG, text))


@pytest.mark.parametrize(
    ("words", "destination"),
    [
        ([], "mlflow"),
        (["tracking=none"], "none"),
        (["tracking=mlflow"], "mlflow"),
        (["tracking.uri=http://host:5000/"], "http://host:5000"),
        (["tracking.uri=https://host/mlflow"], "https://host/mlflow"),
        (["tracking.uri=http://host:5000", "tracking=none"], "none"),
        (["tracking.uri=null"], "mlflow"),
    ],
)
def test_a_run_and_the_verbs_after_it_mean_the_same_place(project, words, destination):
    job = load(project, ["workload=tiny", *words])
    assert job.tracking == destination
    assert (of_command(job.command) or declared(project)) == destination


@pytest.mark.parametrize(
    ("config", "destination"),
    [
        ("tracking: none", "none"),
        ("tracking: mlflow", "mlflow"),
        ("tracking: {uri: 'http://host:5000'}", "http://host:5000"),
        ("tracking: {}", "mlflow"),
    ],
)
def test_the_config_says_it_to_hydra_and_to_a_plain_reader_alike(project, config, destination):
    configured(project, config)
    assert load(project, ["workload=tiny"]).tracking == declared(project) == destination
    assert load(project, ["workload=tiny", "tracking=none"]).tracking == "none"


def test_what_is_typed_wins_over_the_newest_run_and_that_over_the_config(project):
    configured(project, "tracking: {uri: 'http://config:1'}")
    with campaigns.open_ledger(project, "default", writable=True) as ledger:
        assert chosen(project, ledger) == "http://config:1"
        campaigns.parity_red(ledger)  # its command says nothing of tracking
        assert chosen(project, ledger) == "http://config:1"
        assert chosen(project, ledger, "mlflow") == "mlflow"
        assert chosen(project, ledger, "http://typed:2/") == "http://typed:2"
    assert of_command("python -m campaign hypothesis=x tracking.uri=http://run:3 workload=y") == "http://run:3"


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("http://me:hush@host:5000", "holds a user, a password or a query"),
        ("http://hush@host:5000", "holds a user, a password or a query"),
        ("https://host/?token=hush", "holds a user, a password or a query"),
        ("https://host/#hush", "holds a user, a password or a query"),
        ("postgresql://me:hush@host/db", "holds a user, a password or a query"),
        ("sqlite:///runs/other.db", "must be an MLflow server's address"),
        ("host:5000", "must be an MLflow server's address"),
        ("http://", "must be an MLflow server's address"),
        ("http://host:hush", "its host or port cannot be read"),
        ("http://host name", "must be an MLflow server's address"),
        (5000, "must be an MLflow server's address"),
    ],
)
def test_an_address_that_holds_a_secret_or_is_none_is_refused_without_repeating_the_secret(uri, said):
    with pytest.raises(BadInput, match=said) as failure:
        address(uri)
    assert "hush" not in str(failure.value)


def test_a_secret_in_an_address_starts_nothing_and_writes_nothing(project, capfd):
    assert main(["workload=tiny", "tracking.uri=http://me:hush@127.0.0.1:1"]) == 2
    assert "hush" not in capfd.readouterr().err
    assert list((project / "runs").iterdir()) == []


def test_a_misspelt_key_and_a_word_that_is_no_place_are_refused():
    with pytest.raises(UnknownName, match=r"did you mean 'tracking\.uri'"):
        destination_of({"url": "http://host"})
    with pytest.raises(BadInput, match="must be one of mlflow, none"):
        destination_of("wandb")


def test_the_command_that_completes_a_mirror_names_campaign_and_server_where_it_must():
    assert again("default") == "campaign sync"
    assert again("demo") == "campaign sync --campaign demo"
    assert again("default", "http://host:5000") == "campaign sync --uri http://host:5000"


@pytest.mark.slow
def test_a_run_whose_server_is_down_decides_and_names_the_sync(project, capfd):
    uri = f"http://127.0.0.1:{free_port()}"
    assert main(["workload=tiny", "hypothesis=no_sleep", "workload.sleep=0.01", f"tracking.uri={uri}"]) == 0
    said = "".join(capfd.readouterr())
    assert f"{uri} does not answer (Connection refused)" in said
    (line,) = [line.strip() for line in said.splitlines() if line.strip().startswith("try:")]
    assert line == f"try: campaign sync --uri {uri}"
    with open_ledger(project, "default", writable=False) as ledger:
        assert len(ledger.decisions()) == 1
        assert chosen(project, ledger) == uri, "the verbs after it try the run's own server"
    assert main(["sync"]) == 3
    assert f"{uri} does not answer" in capfd.readouterr().err
    assert not (project / "runs" / "mlflow.db").exists()


def test_a_server_that_takes_the_connection_and_says_nothing_is_left_in_seconds(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with campaigns.open_ledger(tmp_path, "demo", writable=True) as ledger:
            decision, began = campaigns.prenorm(ledger), time.monotonic()
            with pytest.raises(TrackingFailed, match="does not answer") as failure:
                send(ledger, [decision.id], uri)
    assert time.monotonic() - began < 3 + 5
    assert failure.value.remedy == f"campaign sync --campaign demo --uri {uri}"
