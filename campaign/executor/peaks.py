"""What this machine's device does at most, asked of a fresh process. The device's lease is the caller's."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from campaign.errors import TrialFailed, Unavailable
from campaign.executor.process import TrialProcess
from campaign.records import Arm

DEADLINE_SECONDS = 180.0  # the import of torch and some seconds of work


def run_peaks(device: str, precision: str) -> dict[str, Any]:
    """The reply of `probe.peaks.measured_peaks`. Raises Unavailable for a device or a format that this machine lacks,
    TrialFailed with the end of the process's output in its message."""
    with tempfile.TemporaryDirectory(prefix="campaign-peaks-") as folder:
        log = Path(folder) / "peaks.log"
        try:
            with TrialProcess(Arm("peaks", "peaks", "", {}), log) as process:
                reply = process.ask("peaks", DEADLINE_SECONDS, device=device, precision=precision)
                process.ask("exit", DEADLINE_SECONDS)
                return reply
        except TrialFailed as failure:
            if failure.reason == "unavailable":
                raise Unavailable(f"--measure {device}: {failure.message}", remedy=failure.remedy) from failure
            last = log.read_text(errors="replace").strip().splitlines()[-1:] if log.exists() else []
            said = f"--measure {device}: {failure.message}" + (f" ({last[0]})" if last else "")
            raise TrialFailed(failure.reason, said, arm="peaks", log="", remedy=failure.remedy) from failure
