"""Runs trials: fresh processes, one arm each, stepping one at a time. Imports no torch; holds no device context.

`process` is one trial's process, `rounds` the interleaved round, `probes` the untimed look before the first round.
"""

from campaign.executor.probes import run_probe
from campaign.executor.process import TrialProcess
from campaign.executor.rounds import run_round

__all__ = ["TrialProcess", "run_probe", "run_round"]
