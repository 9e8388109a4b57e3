"""Model FLOPs a token, and how much of a device's peak they are.

A token of training costs 6 N floating-point operations, N the parameters that multiply it: 2 N forward, 4 N backward
(J. Kaplan et al., Scaling laws for neural language models, 2020, section 2.1). Model FLOP utilisation is the tokens a
second times that over the peak, recomputed work not counted (A. Chowdhery et al., PaLM, 2022, appendix B), which adds
12 L H Q T for attention: L layers, H heads of size Q, T tokens of context. Kaplan leaves embeddings out of N; a model's
whole count, as people have it, is an upper bound.
"""

from __future__ import annotations

from campaign.feasibility.found import Attention, Roof, Utilisation


def attention_flops_per_token(attention: Attention | None) -> float:
    """12 L (H Q) T; 0 where nothing is known of it."""
    return 12.0 * attention.layers * attention.width * attention.context_tokens if attention else 0.0


def flops_per_token(parameters: float, attention: Attention | None = None) -> float:
    """Forward and backward, nothing recomputed."""
    return 6.0 * parameters + attention_flops_per_token(attention)


def utilisation(roof: Roof, flops: float, now: float, required: float, devices: int) -> Utilisation:
    """`flops` a token; `now` and `required` in tokens a second of all devices together."""
    peak = roof.flops_per_second * devices
    return Utilisation(roof, now * flops / peak, required * flops / peak)
