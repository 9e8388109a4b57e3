"""An MLflow server that others use as well: whether it answers, which of its experiments is this ledger, its page.

The experiment is known by a tag with the ledger's key and not by its name: two projects may both have a campaign
`default`. Credentials are MLflow's own business, from its own variables; nothing here reads or writes one.
"""

from __future__ import annotations

import hashlib
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.destination import again
from campaign.errors import BadInput
from campaign.ledger import LEDGER_FILE
from campaign.tracking import review
from campaign.tracking.store import failures, open_client

if TYPE_CHECKING:
    from mlflow.entities import Experiment
    from mlflow.tracking import MlflowClient

PROBE_SECONDS = 3.0
LEDGER_TAG = "campaign.ledger"


def flaw(address: str, seconds: float = PROBE_SECONDS) -> str:
    """Why nobody answers at `address`, in a few words; '' when somebody does, whatever it says: a server may ask for a
    password, or for a certificate that MLflow's own variables name."""
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=seconds):
            return ""
    except urllib.error.HTTPError as error:
        return f"it answers {error.code}" if error.code >= 500 else ""
    except (OSError, ValueError) as error:  # urllib's errors are OSErrors
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLError):
            return ""
        if isinstance(reason, TimeoutError):
            return f"no answer in {seconds:.0f} s"
        return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__


def ledger_key(folder: Path) -> str:
    """What tells a ledger from every other: a hash of its first line, which never changes."""
    with (folder / LEDGER_FILE).open("rb") as file:
        return hashlib.sha256(file.readline()).hexdigest()[:16]


def experiment_of(client: MlflowClient, root: Path, folder: Path) -> str:
    """The id of the ledger's experiment on the server, created or restored. The server says where artifacts lie."""
    found = _find(client, folder)
    if found is not None:
        if found.lifecycle_stage == "deleted":
            client.restore_experiment(found.experiment_id)
        return str(found.experiment_id)
    key = ledger_key(folder)
    name = f"{root.name}/{folder.name}"
    if client.get_experiment_by_name(name) is not None:
        name += f" ({key[:6]})"
    tags = {
        "mlflow.experimentKind": "custom_model_development",
        review.VIEW_TAG: review.view_state(),
        LEDGER_TAG: key,
    }
    return str(client.create_experiment(name, tags=tags))


def page(root: Path, folder: Path, address: str) -> str:
    """The address of the campaign's runs table on the server. Raises BadInput when nothing of it is there,
    TrackingFailed when the server does not answer."""
    remedy = again(folder.name, address)
    with failures(address, remedy):
        if not (folder / LEDGER_FILE).exists():
            found = None
        else:
            found = _find(open_client(root, address), folder)
    if found is None or found.lifecycle_stage == "deleted":
        named = "" if folder.name == "default" else f" --campaign {folder.name}"
        raise BadInput(
            f"{address} has nothing of campaign {folder.name!r} yet", remedy=f"{remedy}, then campaign ui{named}"
        )
    return f"{address}/{review.place(str(found.experiment_id))}"


def _find(client: MlflowClient, folder: Path) -> Experiment | None:
    from mlflow.entities import ViewType

    tagged = f"tags.`{LEDGER_TAG}` = '{ledger_key(folder)}'"
    found = client.search_experiments(ViewType.ALL, filter_string=tagged)
    return min(found, key=lambda one: one.lifecycle_stage) if found else None  # active before deleted
