"""The beginning of a program that runs in a process of its own and says how much memory that took it."""

# VmHWM, since what getrusage tells of a process holds the peak of the one that started it.
PEAK = """
import re, sys
from pathlib import Path
def peak_kib():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
