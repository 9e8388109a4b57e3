"""Nsight Compute CSV: `ncu --csv`, page raw (a row a launch, a row of units) and page details (a row a metric).

The file is read twice: once for what its values say of the decimal separator, once for the launches. Only metrics that
a diagnosis asks for are kept, so memory grows with the launches and not with the columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from campaign.errors import BadInput
from campaign.traces import _ncu_metrics as metrics
from campaign.traces._ncu_launch import launch
from campaign.traces._ncu_numbers import ABSENT, BYTES, PERCENT, SECONDS, Reading, Separators, scale
from campaign.traces._ncu_rows import REMEDY, SHOWN, Row, Rows, has_banner, header_in
from campaign.traces.counters import KernelCounters, KernelReport
from campaign.traces.timeline import LONGEST_NAME, Notice, Source

FORMAT = "Nsight Compute CSV (ncu --csv --page raw, or --page details)"
MOST_LAUNCHES = 20_000
COLUMNS = frozenset({
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream", "Block Size",
    "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type",
    "Rule Description", "Estimated Speedup Type", "Estimated Speedup",
})  # fmt: skip
_CAPABILITY = re.compile(r"(\d+)\.(\d+)")


def recognises(head: bytes, path: Path) -> bool:
    """By the table's column names; by the tool's own lines where a program printed much before the table."""
    header = header_in(head)
    return "Kernel Name" in header or (not header and has_banner(head))


def read(path: Path) -> KernelReport:
    """Raises BadInput for a file without a table, one that was summed up over launches, and for endless lines."""
    separators = _evidence(path)
    found = _Found(path, separators)
    rows = Rows(path)
    for row in rows:
        found.take(row, rows.unended)
    found.finish()
    if found.page is None:
        raise _no_table(path, rows)
    if not found.launches:
        raise BadInput(
            f"{path}: the table has no launch" + _quoted(rows.said),
            remedy="ncu --csv --page raw -k regex:KERNEL -c 1 PROGRAM > FILE.csv, with the name of a kernel that runs",
        )
    source = Source(str(path), f"ncu-{found.page}", f"Nsight Compute, page {found.page}", path.stat().st_size)
    return KernelReport(source, tuple(found.launches), found.notices(rows))


@dataclass
class _Pending:
    """A launch whose rows (one on the raw page, many on the details page) are being read."""

    key: tuple[str, ...]
    line: int
    cells: dict[str, str]
    readings: dict[str, Reading] = field(default_factory=dict)


class _Found:
    def __init__(self, path: Path, separators: Separators) -> None:
        self.path, self.separators = path, separators
        self.launches: list[KernelCounters] = []
        self.page: str | None = None
        self.names: list[str] = []
        self.units: dict[str, str] | None = None
        self.pending: _Pending | None = None
        self.ambiguous: list[str] = []
        self.unitless: set[str] = set()
        self.ragged: list[int] = []
        self.lost = self.beyond = self.cut_names = 0

    def take(self, row: Row, unended: int) -> None:
        if row.header:
            self.finish()
            self._header(row)
            return
        cells = dict(zip(self.names, row.cells, strict=False))
        if not cells.get("ID"):
            if self.page == "raw" and not cells.get("Kernel Name"):
                self.units = cells
            return
        short = len(row.cells) < len(self.names) if self.page == "raw" else "Metric Value" not in cells
        if "Kernel Name" not in cells or (short and row.line == unended):
            self.lost += 1
            return
        if self.page == "raw":
            if len(row.cells) != len(self.names):
                self.ragged.append(row.line)
            self._begin(row, cells, (str(row.line),))
            for name in self.names:
                if name in cells and name not in COLUMNS:
                    self._reading(row.line, name, cells[name], (self.units or {}).get(name))
            return
        key = tuple(cells.get(name, "") for name in ("ID", "Process ID", "Kernel Name"))
        if self.pending is None or key != self.pending.key:
            self._begin(row, cells, key)
        if name := cells.get("Metric Name", ""):
            self._reading(row.line, name, cells.get("Metric Value", ""), cells.get("Metric Unit"))
        elif cells.get("Rule Name") == "CPIStall" and self.pending:
            if said := metrics.stall_in(cells.get("Rule Description", "")):
                self.pending.readings[metrics.STALL_RULE + said[0]] = Reading(said[1], "%")

    def _header(self, row: Row) -> None:
        if "Minimum" in row.cells and "Average" in row.cells:
            raise BadInput(
                f"{self.path}, line {row.line}: launches are summed up (--print-summary), and a kernel's verdict needs"
                " one launch's counters",
                remedy=f"{REMEDY}, without --print-summary",
            )
        if "Kernel Name" not in row.cells or "ID" not in row.cells:
            raise BadInput(f"{self.path}, line {row.line}: columns without ID or Kernel Name", remedy=REMEDY)
        self.names, self.units = row.cells, None
        self.page = "details" if "Metric Name" in row.cells else "raw"

    def _begin(self, row: Row, cells: dict[str, str], key: tuple[str, ...]) -> None:
        self.finish()
        self.pending = _Pending(
            key, row.line, {name: cells.get(name, "") for name in ("Kernel Name", "Block Size", "Grid Size", "CC")}
        )

    def _reading(self, line: int, name: str, text: str, unit: str | None) -> None:
        assert self.pending is not None
        text = text.strip()
        if not text or not metrics.is_wanted(name):
            return
        if text.lower() in ABSENT:
            self.pending.readings.setdefault(name, Reading(None, unit or ""))
            return
        reading = self.separators.reading(name, text, unit or "")
        if reading is None:
            self.ambiguous.append(f"{text!r} ({name}, line {line})")
        elif unit is None and _needs_unit(name):
            self.unitless.add(name)
            reading = None
        # A label may stand in two sections, as a percentage and as bytes a second: the percentage is asked for.
        known = self.pending.readings.get(name)
        if known is None or known.value is None or scale(known.unit)[0] != PERCENT:
            self.pending.readings[name] = reading or Reading(None, unit or "")

    def finish(self) -> None:
        """Make a launch of what was read."""
        if self.pending is None:
            return
        one, self.pending = self.pending, None
        if len(self.launches) >= MOST_LAUNCHES:
            self.beyond += 1
            return
        self.cut_names += len(one.cells["Kernel Name"]) > LONGEST_NAME
        capability = _CAPABILITY.fullmatch(one.cells["CC"].strip())
        self.launches.append(
            launch(
                one.cells["Kernel Name"] or "(unnamed)",
                one.line,
                one.readings,
                architecture=f"sm_{capability[1]}{capability[2]}" if capability else "",
                grid_blocks=_volume(one.cells["Grid Size"]),
                threads_per_block=_volume(one.cells["Block Size"]),
            )
        )

    def notices(self, rows: Rows) -> tuple[Notice, ...]:
        unprofiled = [one.name for one in self.launches if not one.profiled]
        said = [
            ("ncu-tool", bool(rows.said), "the tool said" + _quoted(rows.said)),
            ("not-profiled", bool(unprofiled), f"{_launches(len(unprofiled))} not profiled: nothing was measured of"
             f" {', '.join(sorted({name[:SHOWN] for name in unprofiled})[:3])}"),
            ("ambiguous-number", bool(self.ambiguous), f"{len(self.ambiguous)} values can be read with either decimal"
             f" separator and were not read: {', '.join(self.ambiguous[:3])}; export again with LC_ALL=C"),
            ("no-units", bool(self.unitless), "there is no row of units, so these were not read:"
             f" {', '.join(sorted(self.unitless)[:5])}"),
            ("ragged-rows", bool(self.ragged), f"{len(self.ragged)} rows have more or fewer cells than there are"
             f" columns, the first on line {(self.ragged or [0])[0]}"),
            ("stray-lines", bool(rows.strays), f"{len(rows.strays)} lines between the rows are no rows and were passed"
             f" over, the first is line {(rows.strays or [0])[0]}"),
            ("launches-beyond", self.beyond > 0, f"{self.beyond:,} launches after the first {MOST_LAUNCHES:,} were not"
             " read"),
            ("name-cut", self.cut_names > 0, f"{self.cut_names} names were cut after {LONGEST_NAME:,} characters"),
        ]  # fmt: skip
        lost = self.lost + len(rows.broken) + (rows.cut > 0)
        where = rows.cut or next(iter(rows.broken), 0) or rows.unended
        text = f"{lost} rows are not whole and were left out, at line {where}; the file may be cut"
        return (
            *(Notice(code, text) for code, is_so, text in said if is_so),
            *((Notice("cut", text, lowers_confidence=True),) if lost else ()),
        )


def _evidence(path: Path) -> Separators:
    found = Separators()
    names: list[str] = []
    for row in Rows(path):
        if row.header:
            names = row.cells
            continue
        if "Metric Name" in names:
            cells = dict(zip(names, row.cells, strict=False))
            found.observe(cells.get("Metric Name", ""), cells.get("Metric Value", ""))
            continue
        for name, text in zip(names, row.cells, strict=False):
            if name not in COLUMNS and not name.startswith("device__"):
                found.observe(name, text)
    return found


def _needs_unit(name: str) -> bool:
    """Whether a metric is printed in scaled units, so that its number alone says nothing."""
    return any(
        way.kind in (SECONDS, BYTES, metrics.SIZE) and name in way.names
        for ways in metrics.FIELDS.values()
        for way in ways
    )


def _volume(text: str) -> int | None:
    """The number of blocks or threads of '(32, 32, 1)'; None where the cell has no numbers."""
    numbers = [int(one) for one in re.findall(r"\d+", text[:64])]
    if not numbers:
        return None
    product = 1
    for one in numbers:
        product *= one
    return product


def _launches(count: int) -> str:
    return f"{count} launch was" if count == 1 else f"{count} launches were"


def _quoted(said: list[str]) -> str:
    return f": {' '.join(said)}" if said else ""


def _no_table(path: Path, rows: Rows) -> BadInput:
    return BadInput(
        f"{path}: the tool wrote no table" + _quoted(rows.said),
        remedy="ncu --csv --page raw -k regex:KERNEL -c 1 PROGRAM > FILE.csv",
    )
