"""The project's hypotheses against a profile: the most that each could win, the highest first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from campaign import units
from campaign.diagnosis.busy import Busy
from campaign.diagnosis.ceilings import ratio
from campaign.diagnosis.families import members
from campaign.diagnosis.found import Dispatch, IdeaCeiling
from campaign.diagnosis.names import normal
from campaign.diagnosis.question import IdeaClaim
from campaign.errors import BadInput

DISPATCH = "dispatch"
UNSEEN = {"recompute": "recomputed work runs in every family: a profile does not tell it apart", "nothing": "a null"}
KERNEL = "kernel:"


def rank(
    claims: Sequence[IdeaClaim], busy: Busy, dispatch: Dispatch, names: Sequence[str], floor: float | None
) -> tuple[IdeaCeiling, ...]:
    """The claims by ceiling. `floor` is d: an idea whose ceiling does not exceed 1 + d is struck.

    Raises BadInput for a `kernel:` pattern that does not compile.
    """
    ranked = [_bounded(one, busy, dispatch, names, floor) for one in claims]
    return tuple(sorted(ranked, key=lambda one: (one.ceiling is None, -(one.ceiling or 0.0), one.hypothesis)))


def _bounded(
    claim: IdeaClaim, busy: Busy, dispatch: Dispatch, names: Sequence[str], floor: float | None
) -> IdeaCeiling:
    whole = busy.range_ns
    matched: tuple[str, ...]
    if claim.acts_on == DISPATCH:
        matched, most = (DISPATCH,), dispatch.aggregation_ceiling
        share = 1 - 1 / most if most else None
    elif claim.acts_on.startswith(KERNEL):
        ids = _matching(claim, busy, names)
        saved = int(busy.alone_ns[ids].sum())
        matched, share, most = tuple(normal(names[one]) for one in ids), saved / whole, ratio(whole, saved)
    else:
        wanted = members(claim.acts_on) or (claim.acts_on,)
        matched = tuple(one for one in busy.families if one in wanted)
        saved = busy.removed_ns(set(matched))
        share, most = saved / whole, ratio(whole, saved)
        if not matched:
            # The work may run under another family's kernels (an unfused norm is pointwise and reductions).
            why = UNSEEN.get(claim.acts_on, f"no kernel of this profile is known as {claim.acts_on}: no bound")
            return IdeaCeiling(claim.name, claim.acts_on, (), None, None, claim.predicted_ratio, False, why)
    struck, why = False, f"all of {', '.join(matched[:4]) or claim.acts_on} gone would give {units.bound(most)}"
    if most is not None and floor is not None and most <= 1 + floor:
        struck, why = True, f"{why}, not above the {units.ratio(1 + floor)} that this machine resolves"
    elif most is not None and claim.predicted_ratio > most:
        why = f"{why}, less than the {units.ratio(claim.predicted_ratio)} that it predicts"
    return IdeaCeiling(claim.name, claim.acts_on, matched, share, most, claim.predicted_ratio, struck, why)


def _matching(claim: IdeaClaim, busy: Busy, names: Sequence[str]) -> list[int]:
    pattern = claim.acts_on.removeprefix(KERNEL)
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise BadInput(
            f"hypothesis {claim.name}: acts_on {claim.acts_on!r} does not compile: {error}",
            remedy=f"correct acts_on in conf/hypothesis/{claim.name}.yaml",
        ) from error
    return [int(one) for one in busy.names() if found.search(names[one])]
