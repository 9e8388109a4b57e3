"""Too many invalid rounds make the whole result invalid (DESIGN 5: above 20 %), named by their most frequent fault.

Invalid rounds are kept, not counted, replaced. With limit q (`invalid_share_limit`):
- a stage survives i = max(1, floor(n q / (1 - q))) invalid rounds, n being the screen's last look or a
  confirmation's rounds: the most with which i / (i + n) is at most q, and always one. One more ends the result;
- a look of n rounds decides only with at most that many invalid rounds before it, for its own n; otherwise it is
  passed over and the next look decides. Why a round is invalid never depends on treatment's speed, and a look passed
  over spends no alpha, so this is no peeking.
So a decision never stands on more than a share q (one round excepted), and a result takes at most the last look's
rounds + i of them, and each confirmation's + its own i.
"""

from __future__ import annotations

from collections import Counter

from campaign.records import INVALID, Verdict
from campaign.stability import most_frequent, most_invalid
from campaign.verdicts._case import Case

ORDER = 60


def rule(case: Case) -> Verdict | None:
    fresh = case.confirm_rounds
    for stage, rounds in (("screen", max(2, case.protocol.looks[-1])), ("confirm", fresh), ("reconfirm", fresh)):
        invalid = [faults for _, faults in case.sorted.invalid(stage)]
        most = most_invalid(rounds, case.protocol.invalid_share_limit)
        fault = most_frequent(invalid)
        if fault is None or len(invalid) <= most:
            continue
        codes = Counter(faults[0].code for faults in invalid)
        told = ", ".join(f"{count} {code}" for code, count in codes.most_common())
        taken = len(invalid) + len(case.sorted.valid(stage))
        return case.verdict(
            INVALID,
            fault.code,
            f"{len(invalid)} of {taken} {stage} rounds were invalid ({told}); {rounds} rounds survive {most}."
            f" The most frequent: {fault.sentence}",
            fault.remedy,
        )
    return None
