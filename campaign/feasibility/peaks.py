"""The table of devices, `peaks.yaml`: what the makers' datasheets say that one device does at most."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from campaign.errors import BadInput, UnknownName
from campaign.feasibility.found import Roof
from campaign.feasibility.quantities import example

PRECISIONS = ("fp4", "fp8", "bf16", "fp16", "tf32", "fp32")
DATASHEET = "datasheet"


@cache
def devices() -> tuple[dict[str, Any], ...]:
    """The rows of peaks.yaml."""
    import yaml  # a question without --device needs none

    text = files("campaign.feasibility").joinpath("peaks.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return tuple(loaded["devices"])


def roof(device: str, precision: str) -> Roof:
    """The row of a device, by any name that it goes by. Raises UnknownName, and BadInput for a format that it has no
    units for."""
    wanted = device.lower().replace(" ", "-").replace("_", "-").removeprefix("nvidia-")
    row = next((one for one in devices() if wanted in (one["name"], *one["called"])), None)
    if row is None:
        raise UnknownName("device", device, (one["name"] for one in devices()), remedy=example("--peak 989.5T"))
    rates = row["teraflops"]
    if precision not in rates:
        raise BadInput(
            f"--precision {precision}: {row['title']} has no rate for it in the table (it has {', '.join(rates)})",
            remedy=example(f"--device {row['name']}", f"--precision {next(iter(rates))}"),
        )
    return Roof(
        name=row["title"],
        precision=precision,
        flops_per_second=rates[precision] * 1e12,
        dram_bytes_per_second=row["dram_gigabytes"] * 1e9,
        kind=DATASHEET,
        source=f"{row['source']} ({row['printed']})",
    )
