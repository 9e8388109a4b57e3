"""The project's git state: whether the code that is measured can be brought back (commit, and the patch on top of it).

It blurs no measurement. A decision without it cannot be replayed (`campaign replay`)."""

from __future__ import annotations

from campaign import units
from campaign.machine.checks._look import DOUBTFUL, FIT, Answer, Look

NAME, GROUP = "git", "project"
COST = "decisions cannot be replayed from their own code"
MEND = {
    "no_git": "apt-get install git",
    "no_repository": "git init && git add -A && git commit -m begin",
    "no_commit": "git add -A && git commit -m begin",
    "unsafe": "git config --global --add safe.directory DIR",
    "error": "git status",
}


def check(look: Look) -> Answer | None:
    if look.project is None:
        return None
    source = look.project.source
    status = str(source.get("status", ""))
    if status != "ok":
        return Answer(DOUBTFUL, str(source.get("reason") or status), COST, MEND.get(status, "git status"))
    where = f"commit {str(source.get('commit', ''))[:12]}"
    where += f" on {source['branch']}" if source.get("branch") else ", detached"
    if left := source.get("left_out"):
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        return Answer(
            DOUBTFUL,
            f"{where}, with changes that no patch holds: {left[0]}{more}",
            COST,
            "git add and commit what belongs to the code; name the rest in .gitignore",
        )
    if source.get("dirty"):
        size = units.size(float(source.get("patch_bytes") or 0))
        return Answer(FIT, f"{where}, with changes or new files: a patch of {size} is kept with each plan")
    return Answer(FIT, f"{where}, clean")
