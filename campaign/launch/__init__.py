"""A training command of the person's own as a workload: `Script` stops at the gates of `campaign.loop`, `Command` is
only watched.

A class of this package is named by `workload._target_`, as any workload is. It has `launch(root, config)` in place of
a constructor: the command runs in processes below the trial's, which answer the trial's commands (`answer(request)`)
themselves. `command` makes the command line, `script` and `ranks` speak to gated processes, `observed` watches a
command that knows nothing of us, and `readings` has the places where it tells its steps.
"""

from campaign.launch.observed import Command
from campaign.launch.script import Script

__all__ = ["IN_TURN", "Command", "Script"]
# Targets that cannot be held at a gate: the arms of a round are whole processes, one after another.
IN_TURN = ("campaign.launch.Command",)
