"""An MLflow server or UI among the processes of this machine: it answers a browser's polling while blocks are timed."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, Answer, Look

NAME, GROUP = "MLflow server", "machine"


def check(look: Look) -> Answer:
    for pid, _, command in look.host.processes():
        if _serves(command.split()):
            return Answer(
                DOUBTFUL, f"process {pid}", "it works whenever a browser asks it, beside the arms", f"kill {pid}"
            )
    return Answer(FIT, "none runs here")


def _serves(words: list[str]) -> bool:
    """Whether a command is `mlflow ui`, `mlflow server`, the same by `python`, or a web server of its application."""
    interpreted = bool(words) and words[0].rsplit("/", 1)[-1].startswith("python")
    for place, word in enumerate(words[: 3 if interpreted else 1]):
        if word.rsplit("/", 1)[-1] == "mlflow" and words[place + 1 : place + 2] in (["ui"], ["server"]):
            return True
    return any(word.startswith("mlflow.server") for word in words)
