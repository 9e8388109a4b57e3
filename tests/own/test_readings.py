"""Steps of a watched command as TensorBoard and MLflow keep them: files and stores that they wrote themselves."""

from __future__ import annotations

import pytest

from campaign.errors import TrialFailed
from campaign.tracking.metrics import store
from tests.own.conftest import ask

WATCHED = {"target": "campaign.launch.Command", "tokens": 10}
# Steps of 0.25 s by the events' own clock, written as fast as it goes: the clock that counts is the event's.
EVENTS = """
import sys, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.summary.writer.event_file_writer import EventFileWriter

def value(tag, number, tensor):
    if not tensor:
        return Summary.Value(tag=tag, simple_value=number)
    held = TensorProto(dtype="DT_FLOAT", float_val=[number], tensor_shape=TensorShapeProto())
    return Summary.Value(tag=tag, tensor=held)

def write(writer, begun, steps, losses, tensor):
    for step in steps:
        for tag, number in (("train/loss", losses(step)), ("train/lr", 9.0)):
            summary = Summary(value=[value(tag, number, tensor)])
            writer.add_event(Event(wall_time=begun + 0.25 * step, step=step, summary=summary))
    writer.flush()
"""
WRITTEN = """
writer = EventFileWriter("logs/run")
write(writer, time.time(), range(1, 9), lambda step: 2.0 ** -step, {tensor})
time.sleep(1.2)  # longer than it is looked for between two looks
write(writer, time.time(), range(9, 41), lambda step: 2.0 ** -step, {tensor})
time.sleep(60)
"""


@pytest.mark.parametrize("tensor", [False, True], ids=["a plain number", "a tensor"])
def test_scalars_of_event_files_are_steps_at_the_times_that_they_carry(trial, tensor):
    node = {**WATCHED, "steps": {"from": "tensorboard", "folder": "logs", "loss": "train/loss"}}
    folder = trial("", build=False, **node).log.parent
    earlier = EVENTS + 'write(EventFileWriter("logs/earlier"), time.time() - 99, [500], lambda step: 500.0, False)\n'
    exec(compile(earlier.replace('"logs/', f'"{folder}/logs/'), "earlier", "exec"), {})
    process = trial(EVENTS + WRITTEN.replace("{tensor}", str(tensor)), **node)
    block = ask(process, "block", steps=4)
    assert (block["steps"], block["tokens"]) == (4, 40)
    assert block["wall_seconds"] == pytest.approx(1.0, abs=1e-3), "steps 2 to 5, of 0.25 s each"
    assert block["loss"] == 2.0**-5
    later = ask(process, "block", steps=3, lead=1)
    assert (later["lead_steps"], later["steps"], later["loss"]) == (1, 3, 2.0**-9), "events that came later are read on"


def test_every_fifth_step_that_is_told_stands_for_five(trial):
    node = {**WATCHED, "steps": {"from": "tensorboard", "folder": "logs", "loss": "train/loss"}}
    script = EVENTS + (
        'writer = EventFileWriter("logs")\n'
        "write(writer, time.time(), range(5, 500, 5), lambda step: float(step), False)\ntime.sleep(60)\n"
    )
    block = ask(trial(script, **node), "block", steps=7)
    assert (block["steps"], block["tokens"], block["loss"]) == (10, 100, 15.0)
    assert block["wall_seconds"] == pytest.approx(2.5, abs=1e-3)


def test_a_scalar_of_another_name_is_no_step(trial):
    node = {**WATCHED, "steps": {"from": "tensorboard", "folder": "logs", "loss": "loss"}}
    script = EVENTS + (
        'writer = EventFileWriter("logs")\n'
        "write(writer, time.time(), [1, 2], lambda step: 1.0, False)\nwriter.close()\n"
    )
    with pytest.raises(TrialFailed, match=r"exited with 0 before its first step; does workload\.steps fit"):
        trial(script, **node)


LOGGED = """
import time
import mlflow

mlflow.set_tracking_uri("sqlite:///kept.db")
mlflow.set_experiment("mine")
begun = int(time.time() * 1000)
client = mlflow.MlflowClient()
earlier = client.create_run(client.get_experiment_by_name("mine").experiment_id, start_time=begun - 100_000)
client.log_metric(earlier.info.run_id, "loss", 500.0, timestamp=begun - 99_000, step=500)
with mlflow.start_run() as run:
    for step in range(1, 25):
        client.log_metric(run.info.run_id, "loss", 2.0 ** -step, timestamp=begun + 250 * step, step=step)
        client.log_metric(run.info.run_id, "lr", 9.0, timestamp=begun + 250 * step, step=step)
    time.sleep(60)
"""


def test_metrics_of_an_mlflow_store_are_steps_at_the_times_that_they_carry(trial):
    """The store is made by the command itself, in its own folder, while it is looked for; it has an old run too."""
    node = {**WATCHED, "steps": {"from": "mlflow", "uri": "sqlite:///kept.db", "experiment": "mine", "loss": "loss"}}
    process = trial(LOGGED, **node)
    block = ask(process, "block", steps=4)
    assert (block["steps"], block["tokens"], block["loss"]) == (4, 40, 2.0**-5)
    assert block["wall_seconds"] == pytest.approx(1.0, abs=2e-3)
    assert ask(process, "block", steps=8)["loss"] == 2.0**-13, "the store's numbers go on where they were read"


def test_a_store_is_where_the_command_finds_it(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert store(None, tmp_path) == f"sqlite:///{tmp_path}/mlflow.db", "MLflow's default"
    assert store("sqlite:///kept/a.db", tmp_path) == f"sqlite:///{tmp_path}/kept/a.db"
    assert store("sqlite:////elsewhere/a.db", tmp_path) == "sqlite:////elsewhere/a.db"
    assert store("http://127.0.0.1:5000", tmp_path) == "http://127.0.0.1:5000"
    (tmp_path / "mlruns" / "0").mkdir(parents=True)
    assert store(None, tmp_path) == str(tmp_path / "mlruns"), "the default where runs are kept already"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5001")
    assert store(None, tmp_path) == "http://127.0.0.1:5001"
