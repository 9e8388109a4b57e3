"""Diagnoses and comparisons as JSON: the records of `campaign.diagnosis.found`, field by field, with what follows from
them (`span_ns`, `idle_ns`, `overlap_ns`, `duration_ns`).

    {"schema": 1, "evidence": "profile", "diagnoses": [a Diagnosis, ...]}
    {"schema": 1, "evidence": "profile", "comparison": a Comparison}

Times are whole nanoseconds, shares fractions of 1, what is unknown or not finite null. `masks_ns` is a list of
{"families", "ns"}. Keys are only ever added under one schema number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from campaign.diagnosis.found import EVIDENCE, Comparison, Diagnosis, Families
from campaign.report.json_text import as_text

SCHEMA = 1


def diagnosis_json(diagnoses: Sequence[Diagnosis]) -> str:
    """The diagnoses as one JSON object."""
    return as_text({"schema": SCHEMA, "evidence": EVIDENCE, "diagnoses": [values(one) for one in diagnoses]})


def comparison_json(found: Comparison) -> str:
    """The comparison as one JSON object."""
    return as_text({"schema": SCHEMA, "evidence": EVIDENCE, "comparison": values(found)})


def values(found: Any) -> Any:
    """A record as plain JSON values, its properties among its fields."""
    if is_dataclass(found) and not isinstance(found, type):
        told = {field.name: values(getattr(found, field.name)) for field in fields(found)}
        kind = type(found)
        told |= {name: values(getattr(found, name)) for name, one in vars(kind).items() if isinstance(one, property)}
        if isinstance(found, Families):
            told["masks_ns"] = [{"families": list(names), "ns": values(ns)} for names, ns in found.masks_ns]
        return told
    if isinstance(found, Mapping):
        return {str(key): values(value) for key, value in found.items()}
    if isinstance(found, list | tuple | set | frozenset):
        return [values(one) for one in found]
    if hasattr(found, "item") and not isinstance(found, str):  # a numpy number
        return found.item()
    return found
