"""GPUs, software and projects with which each check is content, and some with which it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from campaign.machine.checks import DOUBTFUL, FIT, UNFIT, UNKNOWN, Project
from campaign.machine.checks._look import Gpu

Case = tuple[dict[str, str], dict[str, Any], str, str]
SMI = {
    "name": "NVIDIA H200",
    "driver_version": "570.124.06",
    "persistence_mode": "Enabled",
    "clocks.sm": "345",
    "clocks.max.sm": "1980",
    "mig.mode.current": "Disabled",
    "ecc.mode.current": "Enabled",
    "ecc.mode.pending": "Enabled",
    "ecc.errors.uncorrected.volatile.total": "0",
    "power.limit": "700.00",
    "power.default_limit": "700.00",
    "power.draw": "75.20",
    "temperature.gpu": "31",
}
GPU = Gpu("", SMI, (), frozenset(), "12.8")
SOURCE = {"status": "ok", "commit": "0123456789abcdef", "branch": "main", "dirty": False, "left_out": []}
PROJECT = Project(SOURCE, "mlflow", "ok", 3, 0)


def card(**fields: str | None) -> dict[str, Any]:
    """The H200 with other answers; underscores stand for dots."""
    named = {name.replace("__", "."): value for name, value in fields.items()}
    return {"device": "cuda:0", "gpu": replace(GPU, fields={**SMI, **named})}


DEVICE: dict[str, list[Case]] = {
    "device": [
        ({}, {}, UNKNOWN, "unavailable: nothing is measured on a GPU here"),
        ({}, card(), FIT, "NVIDIA H200"),
        ({}, {"device": "cuda:0", "gpu": Gpu("no nvidia-smi")}, UNFIT, "no NVIDIA driver is loaded"),
        (
            {"proc/driver/nvidia/version": "NVRM version: 570"},
            {"device": "cuda:0", "gpu": Gpu("no nvidia-smi")},
            DOUBTFUL,
            "unavailable: no nvidia-smi",
        ),
    ],
    "clocks": [
        (
            {},
            card(clocks__applications__graphics="1500", clocks__default_applications__graphics="1830"),
            FIT,
            "SM 345 MHz now, 1980 MHz at most, held at 1500 MHz",
        ),
        ({}, card(), UNKNOWN, "no applications clock holds it"),
        ({}, card(clocks__sm=None), UNKNOWN, "does not tell"),
    ],
    "persistence": [
        ({}, card(), FIT, "on"),
        ({}, card(persistence_mode="Disabled"), DOUBTFUL, "off"),
        ({}, card(persistence_mode=None), UNKNOWN, "does not tell"),
    ],
    "throttling": [
        ({}, card(), FIT, "nothing holds its clock down; 31 C"),
        ({}, {**card(), "gpu": replace(GPU, held=frozenset({"hw_thermal_slowdown"}))}, UNFIT, "hw_thermal_slowdown"),
        ({}, {**card(), "gpu": replace(GPU, held=frozenset({"sw_power_cap"}))}, DOUBTFUL, "sw_power_cap"),
        ({}, {**card(), "gpu": replace(GPU, held=None)}, UNKNOWN, "does not tell"),
    ],
    "processes": [
        ({}, card(), FIT, "none on it"),
        ({}, {**card(), "gpu": replace(GPU, processes=((17, "python train.py"),))}, UNFIT, "python train.py (17)"),
        ({}, {**card(), "gpu": replace(GPU, processes=None)}, UNKNOWN, "does not tell"),
    ],
    "MIG": [
        ({}, card(), FIT, "off"),
        ({}, card(mig__mode__current=None), FIT, "this device has none"),
        ({}, card(mig__mode__current="Enabled"), DOUBTFUL, "on"),
    ],
    "ECC": [
        ({}, card(), FIT, "on"),
        ({}, card(ecc__mode__current=None), FIT, "this device has none"),
        ({}, card(ecc__mode__pending="Disabled"), DOUBTFUL, "on, disabled after the next reset"),
        ({}, card(ecc__errors__uncorrected__volatile__total="2"), UNFIT, "2 uncorrected errors"),
    ],
    "power": [
        ({}, card(), FIT, "limit 700 W, 75 W drawn now"),
        ({}, card(power__limit="350.00"), DOUBTFUL, "its default is 700 W"),
        ({}, card(power__limit=None), UNKNOWN, "does not tell"),
    ],
    "python": [
        ({}, {}, FIT, "CPython 3.11.7"),
        (
            {},
            {"python": {"implementation": "CPython", "version": "3.10.2", "tuple": (3, 10), "debug": False}},
            UNFIT,
            "3.1",
        ),
        (
            {},
            {"python": {"implementation": "CPython", "version": "3.12.1", "tuple": (3, 12), "debug": True}},
            DOUBTFUL,
            "a debug build",
        ),
    ],
    "torch": [
        ({}, {"packages": {"torch": "2.13.0+cpu"}}, FIT, "2.13.0+cpu"),
        ({}, {"packages": {}}, DOUBTFUL, "not installed"),
        ({}, {"packages": {"torch": "2.13.0+cpu"}, **card()}, UNFIT, "2.13.0+cpu"),
    ],
    "triton": [
        ({}, {"packages": {"triton": "3.6.0"}}, FIT, "3.6.0"),
        ({}, {"packages": {}}, FIT, "on a CPU only campaign static"),
        ({}, {"packages": {}, **card()}, DOUBTFUL, "not installed"),
    ],
    "compiler": [
        ({}, {"compiler": ("g++", "g++ (Debian) 12.2.0")}, FIT, "g++ (Debian) 12.2.0"),
        ({}, {"compiler": ("", "CXX=nope is not on this machine")}, DOUBTFUL, "CXX=nope"),
    ],
    "CUDA driver": [
        ({}, {"packages": {"torch": "2.13.0+cu128"}, **card()}, FIT, "570.124.06, CUDA up to 12.8"),
        ({}, {"packages": {"torch": "2.13.0+cu130"}, **card()}, UNFIT, "torch brings CUDA 13"),
        ({}, {"packages": {"torch": "2.13.0", "nvidia-cuda-runtime": "13.0.96"}, **card()}, UNFIT, "brings CUDA 13"),
        ({}, {"packages": {"torch": "2.9.0", "nvidia-cuda-runtime-cu12": "12.9.79"}, **card()}, FIT, "up to 12.8"),
    ],
    "git": [
        ({}, {"project": PROJECT}, FIT, "commit 0123456789ab on main, clean"),
        (
            {},
            {"project": replace(PROJECT, source={**SOURCE, "dirty": True, "patch_bytes": 2048})},
            FIT,
            "a patch of 2.0 KiB is kept with each plan",
        ),
        (
            {},
            {"project": replace(PROJECT, source={**SOURCE, "dirty": True, "left_out": ["big.bin: 9 MB", "x: y"]})},
            DOUBTFUL,
            "no patch holds: big.bin: 9 MB and 1 more",
        ),
        (
            {},
            {"project": replace(PROJECT, source={"status": "no_repository", "reason": "not in a repository"})},
            DOUBTFUL,
            "not in a repository",
        ),
    ],
    "MLflow": [
        ({}, {"project": PROJECT, "packages": {"mlflow": "3.17.0"}}, FIT, "3 of 3 decisions are in it"),
        ({}, {"project": replace(PROJECT, tracking="none")}, FIT, "not asked for"),
        ({}, {"project": replace(PROJECT, store="none"), "packages": {"mlflow": "3.17.0"}}, FIT, "no store yet"),
        (
            {},
            {"project": replace(PROJECT, unmirrored=2), "packages": {"mlflow": "3.17.0"}},
            FIT,
            "2 of 3 decisions are not in it",
        ),
        (
            {},
            {"project": replace(PROJECT, store="runs/mlflow.db is damaged"), "packages": {"mlflow": "3.17.0"}},
            DOUBTFUL,
            "is damaged",
        ),
        ({}, {"project": PROJECT, "packages": {}}, DOUBTFUL, "not installed"),
    ],
}
