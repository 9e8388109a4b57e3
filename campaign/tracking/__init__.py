"""The MLflow view of a ledger: a mirror that can be deleted and rebuilt at any time.

Read in this order: `mirror` (what is written, and when), `mapping`, `trials`, `found` and `profiles` (decisions, their
trials, findings and profiles as metrics, params and tags), `note`, `finding_note` and `scoreboard` (as prose), `figure`
and `finding_figure` (as pictures), `tables` (as CSV), `runs` (MLflow's own terms), `store` (the SQLite file and its
lock), `shared` (a server that is there already), `sender` (what a run calls, in bounded time), `address` (which of
them), `review` (the runs table and its URL), `server` (`campaign ui`). MLflow and matplotlib are
imported inside functions only: `import campaign.tracking` is cheap.
"""

from campaign.tracking.address import chosen
from campaign.tracking.mirror import sync
from campaign.tracking.review import ui_url
from campaign.tracking.runs import reconcile
from campaign.tracking.sender import send
from campaign.tracking.server import SWITCHES, serve, ui_command, ui_environment
from campaign.tracking.shared import page

__all__ = ["SWITCHES", "chosen", "page", "reconcile", "send", "serve", "sync", "ui_command", "ui_environment", "ui_url"]
