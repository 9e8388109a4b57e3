"""What an A/A floor says of a machine's fitness, as findings like those of its checks."""

from __future__ import annotations

from typing import Any

from campaign import effects, units
from campaign.machine.checks import DOUBTFUL, FIT, UNFIT, UNKNOWN, Finding
from campaign.records import TRIAL_FAILURES, Floor, Protocol
from campaign.run.floor import SHORT_ROUNDS, Measured

TOO_NOISY = 2.0  # times min_effect (measurement 5.2, 4)
WIDER = 2.0  # times the floor's scatter, at which it expires (measurement 5.2, 6)
WORDS = {"wall": "wall time", "cpu": "processor time"}


def floor_findings(
    measured: Measured, protocol: Protocol, standing: tuple[str, Floor] | None, campaign: str
) -> tuple[Finding, ...]:
    """`protocol` is what the campaign measures by, `standing` the floor that its plans take d from, with its decision,
    before this one was measured."""
    found = [_now(measured, protocol, counts=standing is not None or measured.full, campaign=campaign)]
    if standing is not None and not measured.full:
        found.append(_on_record(measured, standing, protocol))
    return tuple(found)


def smallest(measured: Measured, protocol: Protocol) -> tuple[float, float, float, int] | None:
    """The smallest effect that the protocol's last look resolves, as a fraction: by the scatter that was measured, and
    by its 90 % bounds below and above; and how many rounds that look has. None without a floor."""
    if measured.floor is None:
        return None
    sd, rounds = measured.floor.between_rounds_sd, max(protocol.looks[-1], measured.floor.rounds)
    low, high = effects.scatter_bounds(sd, measured.floor.rounds)
    return effects.resolves(sd, rounds), effects.resolves(low, rounds), effects.resolves(high, rounds), rounds


def floor_body(measured: Measured, protocol: Protocol) -> dict[str, Any]:
    """The line's account of it. `smallest_effect` is what `of_rounds` rounds resolve, a fraction; None if unknown."""
    found, floor = smallest(measured, protocol), measured.floor
    value, low, high, rounds = found or (None, None, None, None)
    return {
        "full": measured.full,
        "protocol": measured.protocol,
        "clock": measured.clock,
        "rounds": measured.valid,
        "invalid": measured.invalid,
        "faults": [measured.fault.code] if measured.fault else [],
        "between_rounds_sd": floor.between_rounds_sd if floor else None,
        "within_round_sd": floor.within_round_sd if floor else None,
        "smallest_effect": value,
        "smallest_effect_low": low,
        "smallest_effect_high": high,
        "of_rounds": rounds,
        "min_effect": protocol.min_effect,
        "decision": measured.decision,
        "raw": list(measured.raw),
    }


def _now(measured: Measured, protocol: Protocol, *, counts: bool, campaign: str) -> Finding:
    found, floor = smallest(measured, protocol), measured.floor
    named = "" if campaign == "default" else f" --campaign {campaign}"
    if measured.reason == "biased":
        return _said(UNFIT, measured.why, "no comparison on this machine can be trusted", _mend(named))
    if found is None or floor is None:
        return _none(measured, named)
    value, low, high, rounds = found
    seen = (
        f"{units.counted(floor.rounds, 'A/A round')}"
        + (f" (besides {measured.invalid} invalid)" if measured.invalid else "")
        + f" scatter by {100 * floor.between_rounds_sd:.2f} % ({WORDS[floor.clock]}): {rounds} rounds resolve "
        + f"{_percent(value)}, with 90 % between {_percent(low)} and {_percent(high)}"
    )
    wanted = protocol.min_effect
    if low > TOO_NOISY * wanted:
        cost = f"too noisy: even {_percent(TOO_NOISY * wanted)}, twice protocol.min_effect, is not told from chance"
        return _said(UNFIT, seen, cost, _mend(named))
    if value > wanted:
        counted = "d is" if measured.full else "d would be"
        cost = f"{counted} {_percent(value)} and not {_percent(wanted)}: smaller gains cannot be accepted"
        return _said(DOUBTFUL, seen, cost, _mend(named))
    if measured.invalid:
        why = f"; {measured.fault.code}: {measured.fault.sentence}" if measured.fault else ""
        cost = "invalid rounds are measured again, and too many end a run"
        return _said(DOUBTFUL, f"{seen}{why}", cost, _mend(named))
    return _said(FIT, seen, mend="" if counts else f"campaign doctor --full{named} measures one that counts for d")


def _none(measured: Measured, named: str) -> Finding:
    """No floor: the rounds were disturbed, or a trial failed."""
    if measured.full:
        return _said(UNFIT, measured.why, "nothing can be decided like this", f"campaign ledger{named}")
    assert measured.fault is not None
    seen = f"{measured.valid} of {measured.valid + measured.invalid} A/A rounds counted; {measured.fault.code}: "
    mend = measured.fault.remedy if measured.fault.code in TRIAL_FAILURES else ""
    return _said(UNFIT, seen + measured.fault.sentence, "nothing can be decided like this", mend or _mend(named))


def _on_record(measured: Measured, standing: tuple[str, Floor], protocol: Protocol) -> Finding:
    id, floor = standing
    d = effects.threshold(protocol, floor)
    seen = f"{id}: scatter {100 * floor.between_rounds_sd:.2f} % over {floor.rounds} rounds; d = {_percent(d)}"
    if measured.floor is None:
        return Finding("floor on record", "floor", UNKNOWN, seen)
    wider = measured.floor.between_rounds_sd / floor.between_rounds_sd
    if wider > WIDER:
        return Finding(
            "floor on record",
            "floor",
            DOUBTFUL,
            f"{seen}; {SHORT_ROUNDS} rounds scatter {wider:.1f} times as much now",
            "d promises more than this machine keeps now",
            "quieten it, or campaign doctor --full for a floor of now",
        )
    return Finding("floor on record", "floor", FIT, seen)


def _said(level: str, seen: str, cost: str = "", mend: str = "") -> Finding:
    return Finding("floor", "floor", level, seen, cost, mend)


def _mend(named: str) -> str:
    return f"quieten the machine (what stands above), then campaign doctor{named}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2g} %" if fraction < 0.995 else f"{100 * fraction:,.0f} %"
