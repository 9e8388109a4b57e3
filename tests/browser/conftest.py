"""One browser for all tests here, and reports of real ledgers in a copied project."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from campaign.ledger import Ledger
from campaign.report.review import Review, review
from tests.browser.devtools import NAMES, Browser, Page, chromium
from tests.report import written

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip(f"no Chromium here: none of {', '.join(NAMES)} is on PATH")
    running = Browser(path, tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages, `page(address, width=390, dark=True)`, and closes them."""
    opened: list[Page] = []

    def open_page(address: str, **kind: object) -> Page:
        opened.append(browser.page(**kind))  # type: ignore[arg-type]
        return opened[-1].open(address)

    yield open_page
    for one in opened:
        one.close()


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[Ledger], object]], Review]:
    """Writes a ledger with `fill` and reports it, into a folder with a blank and an accent in its name."""

    def made(fill: Callable[[Ledger], object]) -> Review:
        root = tmp_path_factory.mktemp("project")
        shutil.copytree(REPOSITORY / "conf", root / "conf")
        with written.opened(root) as ledger:
            fill(ledger)
        with written.opened(root) as ledger:
            return review(ledger, root / "for réview")

    return made


@pytest.fixture(scope="module")
def address(review_of: Review) -> str:
    """Where a module's own report is."""
    return review_of.page.as_uri()
