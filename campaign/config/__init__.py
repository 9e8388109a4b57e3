"""From what the person typed to a checked `Job`; Hydra and OmegaConf stop here.

Read in this order: `app` (the command line through Hydra), `load` (one job from its overrides), `compose` (Hydra's
config as plain values), `schema`, `protocol`, `hypothesis`, `evidence`, `parameters` and `workload` (what each part
must look like), `edits` (overrides of a hypothesis), `search` (Optuna's sweeper),
`ideas` (every hypothesis there is), `explain` (Hydra's errors in this
project's words). Everything is resolved and checked before any process is started.
"""

from campaign.config.app import fitting, jobs, read_line
from campaign.config.ideas import ideas
from campaign.config.job import Job
from campaign.config.load import load
from campaign.config.search import Search, is_search, search_for

__all__ = ["Job", "Search", "fitting", "ideas", "is_search", "jobs", "load", "read_line", "search_for"]
