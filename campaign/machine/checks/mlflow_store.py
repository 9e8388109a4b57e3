"""The MLflow view: whether its store can be written, and whether it has every decision of the ledger.

It blurs no measurement: a mirror that fails is a warning, and `campaign sync` repeats it."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, Answer, Look

NAME, GROUP = "MLflow", "project"
SYNC = "campaign sync"


def check(look: Look) -> Answer | None:
    project = look.project
    if project is None:
        return None
    if project.tracking == "none":
        return Answer(FIT, "not asked for (tracking=none)")
    if look.packages.get("mlflow") is None:
        return Answer(
            DOUBTFUL, "not installed", "decisions stand in the ledger alone", f"pip install 'mlflow>=3.17', then {SYNC}"
        )
    if project.store == "none":
        return Answer(FIT, "no store yet; the first decision makes it")
    if project.store != "ok":
        return Answer(DOUBTFUL, project.store, "decisions stand in the ledger alone until it is mended", SYNC)
    if project.unmirrored:
        seen = f"{project.unmirrored} of {project.decisions} decisions are not in it, or half"
        return Answer(FIT, seen, "none for a measurement", SYNC)
    return Answer(FIT, f"{project.decisions} of {project.decisions} decisions are in it")
