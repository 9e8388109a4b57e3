"""Diagnoses as Markdown or as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence

from campaign.diagnosis.found import Diagnosis
from campaign.report.diagnosis_sections import Top, diagnosis_paper
from campaign.report.section_page import papers_page


def diagnosis_page(diagnoses: Sequence[Diagnosis], form: str, top: Top | None = None) -> str:
    """The diagnoses as a page in `form`, "md" or "html". Raises Unavailable for HTML without markdown-it-py."""
    return papers_page([diagnosis_paper(one, top or Top()) for one in diagnoses], form)
