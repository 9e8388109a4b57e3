"""What a reader of a verdict should know although it decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from campaign.effects import level_drift, resolves
from campaign.records import Effect, Plan, Probe, Round
from campaign.records.plan import NOT_COMPARED
from campaign.stability import harmful_throttles, wall_per_cpu
from campaign.traits import not_looked_at, ranks, threads, watched
from campaign.units import counted, seconds
from campaign.verdicts._timed import in_step, tells

CONTENTION_FLAG = 1.05
PRESSURE_FLAG = 0.20
LEVEL_DRIFT_FLAG = {"cpu": 0.30, "cuda": 0.05}


def warnings(plan: Plan, rounds: Sequence[Round], effect: Effect | None, probe: Probe | None = None) -> tuple[str, ...]:
    """Sentences about the `probe`, the valid `rounds` and the published `effect`, each with its numbers and what
    helps."""
    return (
        *_about_plan(plan),
        *_about_probe(plan, probe),
        *_in_turn(rounds, effect),
        *_about_machine(plan, rounds),
        *_about_arms(plan, rounds),
        *_about_tail(plan, effect),
    )


def _about_plan(plan: Plan) -> Iterator[str]:
    if plan.attempt > 1:
        yield f"attempt {plan.attempt} on this candidate: alpha is {plan.alpha:.4g}, halved for each one before"
    if not plan.floor_id and not plan.hypothesis.null:
        yield "what this machine can resolve was never measured: python -m campaign hypothesis=aa_null"
    if not plan.hypothesis.predicted_evidence and not plan.hypothesis.null and plan.hypothesis.asks == "faster":
        yield "the hypothesis predicts no evidence: that the edit engaged is not shown"
    if plan.hypothesis.parity.kind == "none":
        yield "what the arms compute was not compared: nothing says that they compute the same"


def _about_probe(plan: Plan, probe: Probe | None) -> Iterator[str]:
    """What of the arms nobody compared."""
    if plan.hypothesis.parity.kind == NOT_COMPARED:
        yield "what the arms compute was not compared: nothing shows that it is the same"
    found = probe.parity if probe else None
    if found is None:
        return
    if found.untold:
        yield not_looked_at(found.untold)
    for one in found.unlike:
        yield f"not compared, since {one}"


def _in_turn(rounds: Sequence[Round], effect: Effect | None) -> Iterator[str]:
    """Whole processes in turn are the weaker protocol; what it reached is in the rounds' own scatter."""
    if all(one.together for one in rounds):
        return
    if not any(watched(trial) for one in rounds for trial in one.trials):
        yield "the arms did not fit side by side: whole processes alternated, which cancels less drift than blocks do"
        return
    reached = ""
    if effect is not None:
        least = resolves(effect.sd_log, effect.rounds)
        reached = (
            f"; its floor here: rounds scatter by {effect.sd_log:.2%}, and {counted(effect.rounds, 'round')}"
            f" of them {'resolve' if effect.rounds > 1 else 'resolves'} {least:.1%}"
        )
    yield (
        "the weaker protocol: a command that is only watched cannot be held at a gate, so whole processes alternated,"
        f" which cancels less drift than blocks do{reached}; campaign.steps in its loop gives the stronger one"
    )


def _about_machine(plan: Plan, rounds: Sequence[Round]) -> Iterator[str]:
    on_cpu = plan.device == "cpu"
    alone = [one for one in rounds if on_cpu and threads(control := one.trial("control")) == ranks(control.facts) == 1]
    shared = [wall_per_cpu(one, "control") for one in alone]
    worst = max((value for value in shared if value is not None), default=0.0)
    if worst > CONTENTION_FLAG and plan.protocol.contention_limit is None:
        yield (
            f"control's wall time reached {worst:.2f} of its CPU time, and protocol.contention_limit=null asks nobody"
            " why: it waits by design, or cores were shared"
        )
    elif worst > CONTENTION_FLAG:
        yield f"control's wall time reached {worst:.2f} of its CPU time (quiet: below {CONTENTION_FLAG}): shared cores"
    loads = [one.surroundings.load for one in rounds if one.surroundings.load is not None]
    cores = plan.fingerprint.get("logical_cores")
    if loads and isinstance(cores, int) and max(loads) > max(1, cores - 1):
        yield f"the load reached {max(loads):.1f} on {cores} cores"
    pressures = [one.surroundings.pressure for one in rounds if one.surroundings.pressure is not None]
    if pressures and max(pressures) > PRESSURE_FLAG:
        yield f"CPU pressure reached {max(pressures):.0%} (quiet: below {PRESSURE_FLAG:.0%}): tasks waited for a core"
    reasons = sorted({reason for one in rounds for reason in one.surroundings.throttled} - {"none"})
    if reasons and not harmful_throttles(reasons):
        yield f"clock event reasons seen: {', '.join(reasons)}"
    drifts = [level_drift(one, plan.protocol.clock, plan.base) for one in rounds]
    flag = LEVEL_DRIFT_FLAG["cpu" if on_cpu else "cuda"]
    if drifts and max(drifts) > flag:
        yield f"control's own level moved by {max(drifts):.0%} within a round; taking turns cancels it"


def _about_arms(plan: Plan, rounds: Sequence[Round]) -> Iterator[str]:
    if any(trial.facts.get("low_precision") == "emulated" for one in rounds for trial in one.trials):
        yield "low precision is emulated here: the numerics are real, the speed is not the hardware's"
    others = [trial for one in rounds for trial in one.trials if trial.arm != "control"]
    unsteady = sum(not trial.steady for trial in others)
    if unsteady:
        yield (
            f"treatment was not steady after warm-up in {unsteady} of {len(rounds)} rounds:"
            " raise protocol.warmup_limit_steps if it should have been"
        )
    compiled = sum(trial.recompiled for trial in others)
    if plan.rules > 1:
        yield from _about_checks(plan, rounds)
    if compiled:
        yield f"treatment compiled {compiled} graphs inside timed windows; their time counts against it"


def _about_checks(plan: Plan, rounds: Sequence[Round]) -> Iterator[str]:
    """The gates of what was timed that could not be applied."""
    compared = plan.hypothesis.parity.kind != NOT_COMPARED
    losses = any(in_step(one) and tells(one, "loss") for one in rounds)
    if compared and any(not trial.restart_sha256 for one in rounds for trial in one.trials):
        yield "the workload has no restart(): that what was timed is what was probed is " + (
            "shown by its losses alone" if losses else "not shown"
        )
    void = sum(not in_step(one) for one in rounds)
    if void:
        yield (
            f"in {void} of {len(rounds)} rounds the arms took different numbers of steps: what the last timed steps"
            " computed was not compared"
        )
    elif compared and rounds and not losses:
        yield "no loss was told with the timed steps: what the last of them computed was not compared"


def _about_tail(plan: Plan, effect: Effect | None) -> Iterator[str]:
    if effect is not None and effect.treatment_p99_seconds > effect.control_p99_seconds * (1 + plan.threshold):
        yield (
            f"treatment's p99 step is {seconds(effect.treatment_p99_seconds)},"
            f" control's {seconds(effect.control_p99_seconds)}"
        )
