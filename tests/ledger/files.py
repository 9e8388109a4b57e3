from __future__ import annotations

from pathlib import Path

from campaign.ledger import Journal, Stamp

STAMP = Stamp("host-a", "f" * 64, "c" * 40, "p" * 64)


def filled(path: Path, count: int = 5) -> Journal:
    journal = Journal(path)
    for number in range(1, count + 1):
        journal.append("trial" if number % 2 else "decision", f"e{number}", {"number": number}, STAMP)
    return journal


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def ids(path: Path) -> list[str]:
    return [entry.id for entry in Journal(path).entries()]
