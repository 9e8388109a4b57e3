"""A comparison of two profiles as text, or as a page."""

from __future__ import annotations

from campaign.diagnosis.found import Comparison
from campaign.report.comparison_sections import comparison_paper
from campaign.report.diagnosis_sections import Top
from campaign.report.section_page import papers_page
from campaign.report.section_text import paper_text


def comparison_text(found: Comparison, *, terminal: bool, top: Top | None = None, width: int | None = None) -> str:
    """For a terminal or a pipe, without a last newline."""
    return paper_text(comparison_paper(found, top or Top()), terminal=terminal, width=width)


def comparison_page(found: Comparison, form: str, top: Top | None = None) -> str:
    """A page in `form`, "md" or "html". Raises Unavailable for HTML without markdown-it-py."""
    return papers_page([comparison_paper(found, top or Top())], form)
