"""Tokens, days and devices (case F)."""

from __future__ import annotations

import math

from campaign.feasibility.found import Goal, WouldDo
from campaign.feasibility.utilisation import attention_flops_per_token, flops_per_token

DAY_SECONDS = 86_400.0
SLACK = 1e-9  # of a device: 3.0000000001 devices are 3


def overhead(goal: Goal) -> float:
    """The share of the wall time in which no training step runs."""
    return sum(one.share_of_wall_time for one in goal.overheads)


def training_seconds(goal: Goal) -> float:
    """The part of the days that is left to training steps."""
    return goal.days * DAY_SECONDS * (1 - overhead(goal))


def required_tokens_per_second(goal: Goal) -> float:
    """Of all devices together, while training steps run."""
    return goal.token_budget / training_seconds(goal)


def on_all_devices(tokens_per_second: float, devices: int, scaling_efficiency: float) -> float:
    """One device runs at its own rate; each of several at the scaling efficiency's part of it."""
    return tokens_per_second if devices == 1 else tokens_per_second * devices * scaling_efficiency


def lower_bound_days(goal: Goal, all_devices_tokens_per_second: float) -> float:
    """The days of the whole budget at this rate and these overheads, without a restart or a failure."""
    return goal.token_budget / all_devices_tokens_per_second / (1 - overhead(goal)) / DAY_SECONDS


def would_do(goal: Goal, tokens_per_second: float) -> WouldDo:
    """What would do at this rate of one device, each by itself."""
    required = required_tokens_per_second(goal)
    total = on_all_devices(tokens_per_second, goal.devices, goal.scaling_efficiency)
    return WouldDo(
        devices=devices_needed(tokens_per_second, required, goal.scaling_efficiency),
        parameters=_parameters(goal, total),
        token_budget=total * training_seconds(goal),
        days=lower_bound_days(goal, total),
    )


def devices_needed(tokens_per_second: float, required: float, scaling_efficiency: float) -> int:
    """The fewest devices that give `required` together, the efficiency taken as constant."""
    if tokens_per_second >= required:
        return 1
    return max(2, math.ceil(required / (tokens_per_second * scaling_efficiency) - SLACK))


def _parameters(goal: Goal, total: float) -> float | None:
    """The largest model whose budget is done in time at the same model FLOPs a second.

    The rate of a model of n parameters is total * F(N) / F(n), with F the FLOPs a token, 6 n + a. By tokens per
    parameter r the budget is r n, so r n (6 n + a) = total * seconds * F(N); a fixed budget asks for F(n) = F(N) / gap.
    """
    if goal.parameters is None:
        return None
    attention = attention_flops_per_token(goal.attention)
    flops = flops_per_token(goal.parameters, goal.attention)
    if goal.tokens_per_parameter is None:
        found = (flops * total / required_tokens_per_second(goal) - attention) / 6
        return found if found >= 1 else None
    most = total * training_seconds(goal) * flops / goal.tokens_per_parameter
    return (math.sqrt(attention**2 + 24 * most) - attention) / 12
