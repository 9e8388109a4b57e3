"""The campaign page as Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from campaign.report.markup import Block, Fold
from campaign.report.page import blocks
from campaign.report.plain import plain
from campaign.report.reported import Reports


def page(reports: Reports) -> str:
    """The whole page, with a newline at its end. GitHub draws nothing: the figures' numbers are in the tables."""
    return markdown(blocks(reports))


def markdown(found: Sequence[Block]) -> str:
    """Blocks as Markdown, a blank line between them."""
    return plain("\n\n".join(text for block in found if (text := _text(block)))) + "\n"


def _text(block: Block) -> str:
    if isinstance(block, Fold):
        return f"<details><summary>{block.summary}</summary>\n\n{block.text}\n\n</details>" if block.text else ""
    return block if isinstance(block, str) else ""
