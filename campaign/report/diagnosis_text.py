"""Diagnoses as text for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from campaign.diagnosis.found import Diagnosis
from campaign.report.diagnosis_sections import Top, diagnosis_paper
from campaign.report.section_text import paper_text


def diagnosis_text(
    diagnoses: Sequence[Diagnosis], *, terminal: bool, top: Top | None = None, width: int | None = None
) -> str:
    """The diagnoses one after another, without a last newline. `width` in characters: that of the terminal if None."""
    papers = [diagnosis_paper(one, top or Top()) for one in diagnoses]
    return "\n\n\n".join(paper_text(paper, terminal=terminal, width=width) for paper in papers)
