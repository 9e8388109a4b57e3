"""What `campaign.measure` found, in words: one line, a block of text, a table for a notebook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from campaign import units
from campaign.records import ACCEPT, Effect
from campaign.report.describe import describe_parity
from campaign.report.plain import plain
from campaign.report.verdict_text import CLOCK_WORDS, WORDS, effect_line, memory_line

if TYPE_CHECKING:
    from campaign.comparison import Comparison

NOT_COMPARED = "NOT compared: the steps return nothing, so nothing says that they compute the same"
NOT_ASKED = "NOT compared, as asked: parity='none'"
# Warnings about edits of a config, and what the line `computed` says already.
SAID_ELSEWHERE = (
    "the hypothesis predicts no evidence",
    "what the arms compute was not compared",
    "gradient norms and gradients were not looked at",
)
COLOURS = {"accept": "#009E73", "reject": "#D55E00"}


def line(found: Comparison) -> str:
    """'fast against slow: accept (faster), 1.998x [1.985, 2.011] over 6 rounds'."""
    effect = found.decision.verdict.effect
    said = f"{found.treatment} against {found.control}: {found.verdict}"
    said += f" ({found.reason})" if found.reason else ""
    if effect is not None:
        sure = f" {units.interval(effect.low, effect.high)}"
        said += f", {units.ratio(effect.ratio)}{sure} over {units.counted(effect.rounds, 'round')}"
    return plain(said + ("" if found.compared else "; what they compute was not compared"))


def text(found: Comparison) -> str:
    """The verdict and its sentence, then one fact a line."""
    lines = [_headline(found), _flat(found.decision.verdict.sentence), ""]
    lines += [f"  {name:<10} {value}" for name, value in _facts(found)]
    if found.log:
        lines += ["", "  the end of what the failed trial printed:"]
        lines += [f"    {one}" for one in found.log.rstrip().splitlines()[-20:]]
    return plain("\n".join(lines))


def html(found: Comparison) -> str:
    """The same as a table."""
    colour = COLOURS.get(found.verdict, "#666666")
    cell = "style='text-align:left;vertical-align:top;padding:.15em .8em .15em 0'"
    rows = "".join(
        f"<tr><th {cell}>{escape(plain(name))}</th><td {cell}>{escape(plain(value))}</td></tr>"
        for name, value in _facts(found)
    )
    log = f"<pre>{escape(plain(found.log))}</pre>" if found.log else ""
    return (
        f"<div><p><strong style='border-left:.4em solid {colour};padding-left:.5em'>"
        f"{escape(plain(_headline(found)))}</strong><br>{escape(plain(_flat(found.decision.verdict.sentence)))}</p>"
        f"<table>{rows}</table>{log}</div>"
    )


def warnings(found: Comparison) -> tuple[str, ...]:
    """The verdict's warnings that are about callables, with what helps here."""
    said = (one for one in found.decision.verdict.warnings if not one.startswith(SAID_ELSEWHERE))
    return tuple(_spelled(one) for one in said)


def remedy(found: Comparison) -> str:
    """What to do next; empty where there is nothing."""
    verdict = found.decision.verdict
    if verdict.verdict == ACCEPT:
        return f"read what {found.treatment} leaves out before believing it" if verdict.suspect else ""
    return _spelled(_flat(verdict.remedy))


def _headline(found: Comparison) -> str:
    word = WORDS.get(found.verdict, found.verdict)
    return f"{found.treatment} against {found.control}: {word}" + (f" ({found.reason})" if found.reason else "")


def _facts(found: Comparison) -> Iterator[tuple[str, str]]:
    verdict, plan = found.decision.verdict, found.evidence.plan
    facts = [
        ("suspect", verdict.suspect),
        ("measured", effect_line(verdict.effect) if verdict.effect else "no round counted, so there is no number"),
        ("step", _steps(found, verdict.effect) if verdict.effect else ""),
        ("beside", f"{effect_line(verdict.beside)}; does not decide" if verdict.beside else ""),
        ("screening", f"{effect_line(verdict.screening)}; not the published number" if verdict.screening else ""),
        ("computed", _computed(found)),
        ("memory", memory_line(verdict.memory) if verdict.memory else "not compared"),
        ("rounds", f"{verdict.valid_rounds} counted, {verdict.invalid_rounds} invalid and kept"),
        (
            "protocol",
            f"{plan.protocol.name}, {plan.protocol.pairs} pairs a round, {CLOCK_WORDS[plan.protocol.clock]} decides,"
            f" worth it from {units.ratio(1 + plan.threshold)}",
        ),
        ("machine", plan.machine_line),
        ("took", units.seconds(found.decision.wall_seconds)),
        *(("warning", one) for one in warnings(found)),
        ("next", remedy(found)),
    ]
    yield from ((name, _flat(value)) for name, value in facts if value)


def _steps(found: Comparison, effect: Effect) -> str:
    said = (
        f"{found.control} {units.seconds(effect.control_step_seconds)},"
        f" {found.treatment} {units.seconds(effect.treatment_step_seconds)}"
    )
    if found.evidence.plan.treatment.config["tokens"] == 1 or effect.clock == "cpu":
        return said
    return f"{said}; {units.rate(effect.control_tokens_per_second)}, {units.rate(effect.treatment_tokens_per_second)}"


def _computed(found: Comparison) -> str:
    if found.compared:
        return describe_parity(found.evidence)
    probe = found.evidence.probe
    return NOT_ASKED if probe is not None and any(arm.losses for arm in probe.arms) else NOT_COMPARED


def _spelled(said: str) -> str:
    """A remedy of a run as one of `campaign.measure`."""
    said = said.replace("python -m campaign hypothesis=aa_null", "campaign.measure(control, control) shows its scatter")
    return re.sub(r"protocol\.(\w+)(?!=)", r"settings['\1']", said)


def _flat(said: str) -> str:
    return " ".join(said.split())
