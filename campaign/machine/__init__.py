"""What the machine is, what else it does, and what about it will blur a measurement. Imports no torch.

`fingerprint` is what must be equal for two measurements to be compared, `Watch` what happened beside one of them,
`warnings` what a person can mend before.
"""

from campaign.machine.clocks import clocks
from campaign.machine.fingerprint import describe, fingerprint, fingerprint_hash
from campaign.machine.host import HERE, Host, process_tree
from campaign.machine.quiet import warnings
from campaign.machine.watch import Watch

__all__ = ["HERE", "Host", "Watch", "clocks", "describe", "fingerprint", "fingerprint_hash", "process_tree", "warnings"]
