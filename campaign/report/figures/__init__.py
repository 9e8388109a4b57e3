"""The figures of a campaign, each a module of this package: a new file is enough to add one.

A figure module has `ORDER` (int, its place), `TITLE`, `figure(reports) -> Figure | None` and `absent(reports) -> str`,
which says in one sentence why there is none. Every figure is one drawing, 420 units wide so that its text can be read
on a phone of 390 pixels; the page, the SVG and the PNG show that same drawing.
"""

from __future__ import annotations

from campaign import discovery
from campaign.report.figures._figure import WIDTH, Absent, Figure
from campaign.report.figures._output import Output, output, png, svg, svg_file
from campaign.report.figures._palette import theme
from campaign.report.reported import Reports

__all__ = ["WIDTH", "Absent", "Figure", "Output", "figures", "output", "png", "svg", "svg_file", "theme"]


def figures(reports: Reports) -> tuple[Figure | Absent, ...]:
    """Every figure of these reports in its order, and in the place of each that there is not, why. Raises
    LedgerDamaged where the ledger's lines cannot be read."""
    import campaign.report.figures as package

    found: list[Figure | Absent] = []
    for module in sorted(discovery.modules(package), key=lambda one: int(one.ORDER)):
        made: Figure | None = module.figure(reports)
        name = module.__name__.rpartition(".")[2]
        found.append(made if made is not None else Absent(name, module.TITLE, module.absent(reports)))
    return tuple(found)
