"""A campaign's report, made whole: the page, its figures as files, and what there is to say about them.

JSON, schema 1 (keys are only ever added under one schema number):

    {"schema": 1, "campaign": str, "page": path, "bytes": int, of the page,
     "decisions": int, "findings": int,
     "figures": [{"name", "title", "caption", "alt", "evidence": str, "rows": [row name, ...],
                  "files": [{"path": path, "bytes": int}, ...]}, ...],
     "absent": [{"name", "title", "why": str}, ...]}
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from campaign import units
from campaign.report.figures import Absent, Figure, figures, output
from campaign.report.json_text import as_text
from campaign.report.plain import plain
from campaign.report.reported import Reports, gather
from campaign.report.review_files import FIGURES, INDEX, check_folder, marked_png, marked_svg, write_report
from campaign.report.review_page import review_page

if TYPE_CHECKING:
    from campaign.ledger import Ledger

SCHEMA = 1
FORMS = ("svg", "png")


@dataclass(frozen=True)
class Review:
    """A report that has been written into `folder`; `sizes` are bytes by path within it."""

    reports: Reports
    found: tuple[Figure | Absent, ...]
    folder: Path
    sizes: dict[str, int]

    @property
    def page(self) -> Path:
        return self.folder / INDEX

    @property
    def drawn(self) -> list[Figure]:
        return [one for one in self.found if isinstance(one, Figure)]

    def text(self) -> str:
        """Where it is, how large, and which figures it has and why not the others."""
        names = ", ".join(one.name for one in self.drawn) or "none"
        lines = [
            f"written: {self.page} ({units.size(self.sizes[INDEX])}, one file that needs nothing else)",
            f"  {units.counted(len(self.reports.rows), 'decision')}, "
            f"{units.counted(len(self.reports.findings), 'finding')}",
            f"  figures, also as SVG and PNG in {self.folder / FIGURES}: {names}",
        ]
        lines += [f"  no {one.name}: {plain(one.why)}" for one in self.found if isinstance(one, Absent)]
        return "\n".join(lines)

    def as_json(self) -> str:
        """The document of this module's docstring."""
        return as_text(
            {
                "schema": SCHEMA,
                "campaign": self.reports.campaign,
                "page": str(self.page),
                "bytes": self.sizes[INDEX],
                "decisions": len(self.reports.rows),
                "findings": len(self.reports.findings),
                "figures": [self._told(one) for one in self.drawn],
                "absent": [
                    {"name": one.name, "title": one.title, "why": one.why}
                    for one in self.found
                    if isinstance(one, Absent)
                ],
            }
        )

    def _told(self, one: Figure) -> dict[str, object]:
        paths = [f"{FIGURES}/{one.name}.{form}" for form in FORMS]
        return {
            "name": one.name,
            "title": one.title,
            "caption": one.caption,
            "alt": one.alt,
            "evidence": one.evidence,
            "rows": list(one.rows),
            "files": [{"path": str(self.folder / path), "bytes": self.sizes[path]} for path in paths],
        }


def review(ledger: Ledger, folder: Path) -> Review:
    """Write the report of a campaign into `folder`. Raises LedgerDamaged, BadInput where the folder or a file in it
    cannot be written, Unavailable without markdown-it-py or matplotlib."""
    check_folder(folder, [INDEX])
    reports = gather(ledger)
    found = figures(reports)
    check_folder(folder, [f"{FIGURES}/{one.name}.{form}" for one in found for form in FORMS])
    outputs = {one.name: output(one) for one in found if isinstance(one, Figure)}
    files = {INDEX: review_page(reports, found, outputs).encode()}
    for name, drawn in outputs.items():
        files[f"{FIGURES}/{name}.svg"] = marked_svg(drawn.file)
        files[f"{FIGURES}/{name}.png"] = marked_png(drawn.png)
    write_report(folder, files)
    return Review(reports, found, folder, {name: len(data) for name, data in files.items()})
