"""The protocol node: the device's defaults filled in, then every range checked."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from campaign.config.explain import unknown_key
from campaign.config.schema import as_record, fields_of, number, one_of, section, text
from campaign.errors import BadInput
from campaign.records import Protocol
from campaign.records.plan import CLOCKS

DEVICES = ("cpu", "cuda")
FIELDS = tuple(field.name for field in dataclasses.fields(Protocol))

OPEN_UNIT = ("alpha", "beta", "confirm_alpha", "gate_alpha")
SHARES = (
    "min_effect",
    "invalid_share_limit",
    "memory_min_effect",
    "memory_noninferiority",
    "memory_margin",
)
ABOVE_ZERO = ("warmup_tolerance", "start_deadline_seconds", "reply_deadline_seconds")
NOT_NEGATIVE = ("block_minimum_seconds", "lead_steps", "memory_min_bytes", "seed")
MAY_BE_NULL = ("contention_limit",)  # null where the device says nothing either: no limit
AT_LEAST_ONE = ("block_steps", "warmup_minimum_steps", "warmup_window_steps", "probe_steps")


def protocol_for(node: Any, device: str) -> Protocol:
    """The `protocol` node of a composed config as a record: a null takes `by_device[device]`.

    Raises BadInput naming the key, the value and the rule; UnknownName for a key that no protocol has.
    """
    if not isinstance(node, dict):
        raise BadInput("no protocol is chosen", remedy="protocol=standard")
    by_device = node.get("by_device") or {}
    if not isinstance(by_device, dict):
        raise BadInput(
            f"protocol.by_device must be a mapping of {', '.join(DEVICES)}, not {by_device!r}",
            remedy=f"a key of one device: protocol.by_device.{device}.pairs=20",
        )
    for name, values in by_device.items():
        if name not in DEVICES:
            raise unknown_key(f"protocol.by_device.{name}", (f"protocol.by_device.{known}" for known in DEVICES))
        for field in values if isinstance(values, dict) else section(values, f"protocol.by_device.{name}", FIELDS):
            if field not in FIELDS:
                paths = (f"protocol.by_device.{name}.{known}" for known in FIELDS)
                raise unknown_key(f"protocol.by_device.{name}.{field}", paths)
    given = {name: value for name, value in node.items() if name != "by_device"}
    for name in given:
        if name not in FIELDS:
            raise unknown_key(f"protocol.{name}", [*fields_of(Protocol, "protocol"), "protocol.by_device"])
    defaults = by_device.get(device) or {}
    filled = {name: given[name] if given.get(name) is not None else defaults.get(name) for name in FIELDS}
    for name, value in filled.items():
        if value is None and name not in MAY_BE_NULL:
            raise BadInput(
                f"protocol.{name} is null and protocol.by_device.{device} does not say it either",
                remedy=f"protocol.{name}=VALUE",
            )
    protocol = as_record(Protocol, filled, "protocol", file=f"conf/protocol/{filled['name']}.yaml")
    _check(protocol)
    return protocol


def _check(protocol: Protocol) -> None:
    values = {name: getattr(protocol, name) for name in FIELDS}
    text(protocol.name, "protocol.name")
    one_of(protocol.clock, "protocol.clock", CLOCKS)
    for name in OPEN_UNIT:
        number(values[name], f"protocol.{name}", "between 0 and 1, both excluded", 0 < values[name] < 1)
    for name in SHARES:
        number(values[name], f"protocol.{name}", "a fraction, at least 0 and below 1", 0 <= values[name] < 1)
    number(protocol.steal_limit, "protocol.steal_limit", "a share from 0 to 1", 0 <= protocol.steal_limit <= 1)
    for name in ABOVE_ZERO:
        number(values[name], f"protocol.{name}", "above 0", values[name] > 0)
    for name in NOT_NEGATIVE:
        number(values[name], f"protocol.{name}", "0 or more", values[name] >= 0)
    for name in AT_LEAST_ONE:
        number(values[name], f"protocol.{name}", "1 or more", values[name] >= 1)
    pairs = protocol.pairs
    number(pairs, "protocol.pairs", "even and at least 2, because two pairs balance each other", _even(pairs))
    rounds = protocol.confirm_rounds
    number(rounds, "protocol.confirm_rounds", "at least 2, because one round has no scatter", rounds >= 2)
    if protocol.contention_limit is not None:
        limit = protocol.contention_limit
        number(limit, "protocol.contention_limit", "above 1, or null for steps that wait by design", limit > 1)
    suspect = protocol.suspect_ratio
    number(suspect, "protocol.suspect_ratio", "control seconds / treatment seconds, above 1", suspect > 1)
    number(protocol.arms, "protocol.arms", "2 or 4", protocol.arms in (2, 4))
    shortest = protocol.warmup_minimum_steps + protocol.warmup_window_steps
    number(
        protocol.warmup_limit_steps,
        "protocol.warmup_limit_steps",
        f"at least warmup_minimum_steps + warmup_window_steps = {shortest}",
        protocol.warmup_limit_steps >= shortest,
    )
    _check_looks(protocol)


def _even(pairs: int) -> bool:
    return pairs >= 2 and pairs % 2 == 0


def _check_looks(protocol: Protocol) -> None:
    looks = protocol.looks
    rising = all(a < b for a, b in itertools.pairwise(looks))
    if not looks or looks[0] < 2 or not rising:
        raise BadInput(
            f"protocol.looks = {list(looks)}: rounds in rising order, the first at least 2 (one round has no scatter)",
            remedy="protocol.looks=[4,6,8,12]",
        )
    even_split = [1.0] if len(looks) == 1 else [round(1 / len(looks), 4)] * (len(looks) - 1)
    if len(looks) > 1:
        even_split.append(round(1 - sum(even_split), 4))
    shown = ",".join(f"{share:g}" for share in even_split)
    for name in ("alpha_split", "beta_split"):
        split = getattr(protocol, name)
        key = f"protocol.{name}"
        if len(split) != len(looks):
            raise BadInput(
                f"{key} = {list(split)} has {len(split)} shares and protocol.looks = {list(looks)} has {len(looks)} "
                "looks: one share a look",
                remedy=f"protocol.alpha_split=[{shown}] protocol.beta_split=[{shown}]",
            )
        for share in split:
            number(share, key, "every share above 0 and at most 1", 0 < share <= 1)
        if abs(sum(split) - 1) > 1e-9:
            raise BadInput(f"{key} = {list(split)} sums to {sum(split):g}: must sum to 1", remedy=f"{key}=[{shown}]")
