from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from campaign.machine import Host
from tests.machine.answers import write


@pytest.fixture
def make_host(tmp_path: Path) -> Callable[..., Host]:
    """A machine made of files; without any, one that says nothing. `smi` is the text of an nvidia-smi."""

    def make(files: dict[str, str] | None = None, smi: str = "", apps: str = "") -> Host:
        for name in ("proc", "sys"):
            (tmp_path / name).mkdir(exist_ok=True)
        for name, text in (files or {}).items():
            write(tmp_path / name, text)
        tool = tmp_path / "bin" / "nvidia-smi"
        if smi:
            write(tool, smi)
            tool.chmod(0o755)
            write(tool.with_name("apps"), apps)
        return Host(tmp_path / "proc", tmp_path / "sys", str(tool))

    return make
