"""Where MLflow keeps its rows: a file that comes into being once and only once, or a server that is there already.

`runs/mlflow.db` is created under a lock, beside its final name, and renamed when whole: a cold SQLite store opened by
eight processes at once is destroyed by MLflow's own migrations, and one killed half-way stays unusable. Every URI is
absolute and is passed explicitly, so that neither the working directory nor MLFLOW_TRACKING_URI can redirect a mirror.
What a server asks for to let someone in, MLflow's client takes from its own variables.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from campaign.destination import EMBEDDED, SECRETS, is_server
from campaign.errors import TrackingFailed

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

REMEDY = "campaign sync"
NOT_THERE = "the decision is in the ledger but not in MLflow"
LOCK_SECONDS = 120.0
# For a server, unless the person's own environment says otherwise: MLflow would try each request for many minutes.
PATIENCE = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}
_LOCK_POLL_SECONDS = 0.05
# What another release of MLflow, SQLAlchemy or matplotlib may raise; none of it may end a sweep.
_SURPRISES = (OSError, ImportError, sqlite3.Error, ValueError, TypeError, AttributeError, LookupError, RuntimeError)


def database(root: Path) -> Path:
    """`runs/mlflow.db`, absolute."""
    return root.resolve() / "runs" / "mlflow.db"


def database_uri(path: Path) -> str:
    """The SQLAlchemy URI of an absolute path: four slashes."""
    return f"sqlite:///{path}"


def artifact_uri(root: Path) -> str:
    """`runs/artifacts` as an absolute file URI."""
    return "file://" + quote(str(root.resolve() / "runs" / "artifacts"))


@contextlib.contextmanager
def failures(destination: str = EMBEDDED, remedy: str = REMEDY) -> Iterator[None]:
    """Turn whatever MLflow, its database, its server or the disk raises into TrackingFailed with the cause and what to
    type; `remedy` is what repeats the mirror."""
    try:
        yield
    except TrackingFailed:
        raise
    except _SURPRISES as error:
        raise TrackingFailed(_cause(error, destination), remedy=_remedy(error, destination, remedy)) from error
    except _library_errors() as error:
        raise TrackingFailed(_cause(error, destination), remedy=_remedy(error, destination, remedy)) from error


def _library_errors() -> tuple[type[BaseException], ...]:
    """The exception classes of MLflow's stack. Only a library that is loaded can have raised; none is loaded here."""
    names = {
        "mlflow.exceptions": "MlflowException",
        "sqlalchemy.exc": "SQLAlchemyError",
        "alembic.util": "CommandError",
    }
    loaded = ((sys.modules.get(module), name) for module, name in names.items())
    return tuple(getattr(module, name) for module, name in loaded if module is not None)


def hidden(text: str) -> str:
    """`text` without the secrets that MLflow's variables hold: a server's answer may repeat what it was sent."""
    user, password, token = (
        os.environ.get(f"MLFLOW_TRACKING_{name}", "") for name in ("USERNAME", "PASSWORD", "TOKEN")
    )
    both = base64.b64encode(f"{user}:{password}".encode()).decode() if password else ""
    for secret in filter(None, (both, password, token)):
        text = text.replace(secret, "***")
    return text


def _cause(error: BaseException, destination: str) -> str:
    text = hidden(" ".join(str(error).split()))
    if isinstance(error, ImportError):
        return f"{NOT_THERE}: {error.name or 'a package'} cannot be imported ({text})"
    if is_server(destination):
        if _refused(text):
            text = f"{destination} does not let this person in ({text})"
        elif "Max retries" in text or isinstance(error, OSError):
            text = f"{destination} does not answer ({text.rpartition('Caused by ')[2]})"
    elif "database is locked" in text:
        text = "runs/mlflow.db is locked by another process (waited 20 s)"
    elif "not a database" in text or "malformed" in text:
        text = f"runs/mlflow.db is damaged ({text})"
    elif "database schema" in text or "locate revision" in text:
        text = f"runs/mlflow.db was written by another MLflow version ({text})"
    return f"{NOT_THERE}: {text[:600]}"


def _refused(text: str) -> bool:
    return any(sign in text for sign in ("error code 401", "error code 403", "UNAUTHENTICATED", "PERMISSION_DENIED"))


def _remedy(error: BaseException, destination: str, remedy: str) -> str:
    text = str(error)
    if isinstance(error, ImportError):
        return f"pip install {(error.name or 'mlflow').partition('.')[0]}, then {remedy}"
    if is_server(destination):
        return f"{SECRETS}, then {remedy}" if _refused(text) else remedy
    if any(sign in text for sign in ("not a database", "malformed", "database schema", "locate revision")):
        return f"mv runs/mlflow.db runs/mlflow.db.old, then {remedy} (it rebuilds the view from the ledger)"
    return remedy


@contextlib.contextmanager
def writing(root: Path, wait_seconds: float = LOCK_SECONDS, remedy: str = REMEDY) -> Iterator[None]:
    """Hold `runs/.mlflow.lock`: one mirror writes at a time. Raises TrackingFailed when the wait is over."""
    path = database(root).with_name(".mlflow.lock")
    with failures(remedy=remedy):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TrackingFailed(
                        f"another process has been writing to MLflow for {wait_seconds:.0f} s (it holds {path.name})",
                        remedy=remedy,
                    ) from None
                time.sleep(_LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def open_client(root: Path, destination: str = EMBEDDED) -> MlflowClient:
    """A client of `runs/mlflow.db`, which is created when absent, or of a server. Call it while holding `writing`.

    Raises what MLflow, SQLite and the disk raise; `failures` translates.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    if is_server(destination):
        for name, value in PATIENCE.items():
            os.environ.setdefault(name, value)
        return _import_client()(tracking_uri=destination, registry_uri=destination)
    path = database(root)
    if path.exists():
        _check_readable(path)
    client_class = _import_client()
    if not path.exists():
        _create(path, artifact_uri(root))
    return client_class(tracking_uri=database_uri(path), registry_uri=database_uri(path))


def _import_client() -> type[MlflowClient]:
    from mlflow.tracking import MlflowClient

    # What goes wrong is raised as well, and reaches the person as a TrackingFailed and not as a traceback.
    for name in ("mlflow", "alembic", "urllib3"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return MlflowClient


def _create(path: Path, artifacts: str) -> None:
    """Migrate an empty file beside `path`, switch it to WAL, and rename it: no reader ever sees a part of it."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    fresh = path.with_name(".mlflow.db.new")
    # A log left beside a file that was moved away would be replayed into the new one.
    for suffix in ("", "-wal", "-shm", "-journal"):
        fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    store = SqlAlchemyStore(database_uri(fresh), artifacts)
    store.engine.dispose()
    with contextlib.closing(sqlite3.connect(fresh)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    fresh.replace(path)


def _check_readable(path: Path) -> None:
    """Raise sqlite3.DatabaseError at once for a file that is no database; MLflow would retry it for 100 seconds."""
    with contextlib.closing(sqlite3.connect(path, timeout=20)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
