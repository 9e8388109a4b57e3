"""What `campaign init` does: look at a folder, choose how its training is measured, and lay down a project.

Read in this order: `search` (which files train, and how they are started), `script` (what one file says of itself),
`surroundings` (interpreter, device, git), `choice` (all of it in one answer), `project` (the files and how they are
written). Nothing is imported or run for it: scripts are parsed, not executed.
"""

from campaign.starting.choice import Choice, choose
from campaign.starting.project import LaidDown, lay_down, refuse_where_it_cannot

__all__ = ["Choice", "LaidDown", "choose", "lay_down", "refuse_where_it_cannot"]
