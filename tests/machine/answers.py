"""What nvidia-smi answers, as scripts that stand in its place, and a way to lay out a machine of files."""

from __future__ import annotations

from pathlib import Path

# What a driver of the 570 series prints for the one device of an H200 machine, and what it says when it cannot.
ANSWERS = """#!/bin/sh
case "$*" in
  *--loop-ms*) echo 0x0000000000000004; echo 0x0000000000000041; exec sleep 60 ;;
  *--query-gpu=uuid*)
    echo "GPU-5f3c, NVIDIA H200, 570.124.06, 143771, 700.00, 1980, Disabled, Enabled" ;;
  *--query-gpu=persistence_mode*) echo "Disabled, [N/A], 1980" ;;
  *--query-gpu=clocks_event_reasons.active*) echo 0x0000000000000001 ;;
  *--query-compute-apps*) cat "$(dirname "$0")/apps" ;;
esac
"""
OLD_DRIVER = """#!/bin/sh
case "$*" in
  *clocks_event_reasons*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; echo; exit 2 ;;
  *--loop-ms*) exec sleep 60 ;;
  *clocks_throttle_reasons.active*) echo 0x0000000000000008 ;;
esac
"""
NO_DRIVER = """#!/bin/sh
echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
exit 9
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
