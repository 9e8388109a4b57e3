"""`campaign ui`: MLflow's server on loopback, small and quiet, opened on the campaign's own view.

One worker and no job runners: MLflow's default starts ten processes and takes over a gigabyte. Do not leave it up while
measuring on a small machine.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from campaign.errors import BadInput, TrackingFailed
from campaign.tracking.review import ui_url
from campaign.tracking.store import artifact_uri, database, database_uri

START_SECONDS = 180.0
_REDIRECTING = ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI", "MLFLOW_BACKEND_STORE_URI", "MLFLOW_RUN_ID")


def ui_command(root: Path, campaign: str, host: str = "127.0.0.1", port: int = 5000) -> list[str]:
    """The server's command line; run it with `ui_environment()`.

    Raises BadInput for a host that is not loopback (the server has no password), a port in use, and a campaign of
    which MLflow has nothing.
    """
    _check_loopback(host, port)
    ui_url(root, campaign, host, port)
    _check_free(host, port)
    return [
        *(sys.executable, "-m", "mlflow", "server"),
        *("--host", host, "--port", str(port), "--workers", "1"),
        *("--backend-store-uri", database_uri(database(root))),
        *("--default-artifact-root", artifact_uri(root)),
    ]


SWITCHES = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


def ui_environment() -> dict[str, str]:
    """This process's environment without what would point the server elsewhere, no telemetry, no job runners."""
    return {key: value for key, value in os.environ.items() if key not in _REDIRECTING} | SWITCHES


def serve(
    root: Path, campaign: str, host: str = "127.0.0.1", port: int = 5000, show: Callable[[str], None] = print
) -> int:
    """Run the server until it ends or Ctrl-C, and `show` the address once it answers; returns an exit code.

    Raises BadInput as `ui_command` does, and TrackingFailed when the server ends or does not answer in time.
    """
    command = ui_command(root, campaign, host, port)
    show(f"starting MLflow on {host}:{port} (10 to 30 s) ...")
    # Its own session, so that Ctrl-C reaches it once, from here, and its worker ends with it.
    with (
        _terminated_like_interrupted(),
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            command, env=ui_environment(), stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        ) as server,
    ):
        try:
            _wait_until_up(server, host, port, said)
            show(f"{ui_url(root, campaign, host, port)}\nCtrl-C stops it; stop it before measuring on a small machine.")
            return server.wait()
        except KeyboardInterrupt:
            return 0
        finally:
            _stop(server)


@contextlib.contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt, as Ctrl-C does: dying of it at once would leave the server behind."""

    def interrupt(signal_number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _wait_until_up(server: subprocess.Popen[bytes], host: str, port: int, said: IO[bytes]) -> None:
    shown = f"[{host}]" if ":" in host else host
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            said.seek(0)
            last = said.read().decode(errors="replace").strip()[-600:]
            raise TrackingFailed(
                f"MLflow's server ended with code {server.returncode}: {last}", remedy=f"campaign ui --port {port + 1}"
            )
        with contextlib.suppress(urllib.error.URLError, OSError):
            with urllib.request.urlopen(f"http://{shown}:{port}/health", timeout=2):
                return
        time.sleep(0.2)
    raise TrackingFailed(f"MLflow did not answer on {host}:{port} in {START_SECONDS:.0f} s", remedy="campaign ui")


def _stop(server: subprocess.Popen[bytes]) -> None:
    """End the server and its worker: terminate the group, and after ten seconds kill it."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(timeout=10)
            return


def _check_loopback(host: str, port: int) -> None:
    try:
        allowed = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        allowed = False
    if not allowed:
        raise BadInput(
            f"host {host!r} is not loopback, and MLflow's server asks for no password: anyone there could change runs",
            remedy=f"campaign ui, and from the other machine: ssh -L {port}:127.0.0.1:{port} <this machine>",
        )


def _check_free(host: str, port: int) -> None:
    if not 1 <= port <= 65535:
        raise BadInput(f"port {port}: a port is a number from 1 to 65535", remedy="campaign ui --port 5000")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise BadInput(
                f"port {port} on {host} cannot be used: {error.strerror}", remedy=f"campaign ui --port {port + 1}"
            ) from None
