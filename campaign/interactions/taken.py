"""A study's rounds sorted: which count, which are invalid, which arms failed, and each arm's per-round logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy

from campaign import units
from campaign.effects import level_drift, round_logs
from campaign.effects.intervals import Array
from campaign.records import Finding, Round, Study, StudyEvidence, Term
from campaign.records.study import HEADLINE, REPLAY
from campaign.stability import Fault, round_faults

NO_FAILURES = ("ok", "interrupted")
DRIFT_FLAG = {"cpu": 0.30, "cuda": 0.05}


@dataclass(frozen=True)
class Taken:
    """The study with its rounds. `faulty` are those that a gate or a missing arm makes invalid; rounds in which an arm
    failed for good are neither valid nor invalid, since the arm is left out and the round taken again without it."""

    study: Study
    rounds: tuple[Round, ...]

    @classmethod
    def of(cls, evidence: StudyEvidence) -> Taken:
        return cls(evidence.study, evidence.rounds)

    @property
    def wanted(self) -> int:
        """The valid rounds of each group; never fewer than an interval needs."""
        return max(2, self.study.rounds)

    @cached_property
    def failed(self) -> dict[str, str]:
        """Why each arm that failed did so; interrupted is no failure."""
        found: dict[str, str] = {}
        for one in self.rounds:
            for trial in one.trials:
                if trial.status not in NO_FAILURES:
                    found.setdefault(trial.arm, trial.status + (f": {trial.message}" if trial.message else ""))
        return found

    @property
    def essential(self) -> tuple[str, ...]:
        """The arms without which the study says nothing."""
        every = tuple(arm.role for arm in self.study.arms)
        return every if self.study.kind in (HEADLINE, REPLAY) else (self.study.base,)

    def active(self, group: int) -> tuple[str, ...]:
        """The roles of a group (0-based) that have not failed."""
        return tuple(role for role in self.study.groups[group] if role not in self.failed)

    @cached_property
    def stages(self) -> dict[str, tuple[str, ...]]:
        """The active roles of each group that still compares something, by the stage of its rounds."""
        found = {f"group-{group + 1}": self.active(group) for group in range(len(self.study.groups))}
        return {stage: roles for stage, roles in found.items() if len(roles) > 1}

    @cached_property
    def _judged(self) -> tuple[tuple[Round, tuple[Fault, ...]], ...]:
        return tuple((one, self._faults(one)) for one in self.rounds if not _broke(one))

    def _faults(self, one: Round) -> tuple[Fault, ...]:
        missing = set(self.stages.get(one.stage, ())) - {trial.arm for trial in one.trials}
        if missing:
            said = f"round {one.id} lacks {', '.join(sorted(missing))}"
            return (Fault("incomplete", said, f"run again: {self.study.command}"),)
        return round_faults(one, self.study)

    @property
    def faulty(self) -> list[tuple[Round, tuple[Fault, ...]]]:
        return [(one, faults) for one, faults in self._judged if faults]

    def valid(self, stage: str) -> list[Round]:
        """The valid rounds of a stage, in order, without the arms that failed, and no more than are wanted."""
        found = [one for one, faults in self._judged if not faults and one.stage == stage]
        return [one.only(self.stages[stage]) for one in found[: self.wanted]]

    @property
    def counted(self) -> list[Round]:
        return [one for stage in self.stages for one in self.valid(stage)]

    def rounds_of(self, *roles: str) -> list[Round]:
        """The valid rounds of the first group that holds all these roles; empty where none does."""
        held = (stage for stage, there in self.stages.items() if set(roles) <= set(there))
        return next((self.valid(stage) for stage in held), [])

    @cached_property
    def logs(self) -> Mapping[str, Array]:
        """Per arm that ran, shape [rounds]: its round's median log against base. Round i of every group is one
        replicate, so contrasts may mix arms of several groups."""
        found: dict[str, Array] = {self.study.base: numpy.zeros(self.wanted)}
        for stage in self.stages:
            rounds = self.valid(stage)
            if len(rounds) == self.wanted:
                of_stage = round_logs(rounds, self.study.protocol.clock, self.study.base)
                found |= {role: values for role, values in of_stage.items() if role != self.study.base}
        return found

    def role(self, subjects: Sequence[str]) -> str | None:
        """The role of the arm that holds exactly these subjects and ran; None without."""
        wanted = set(subjects)
        roles = (role for role, members in self.study.members.items() if set(members) == wanted)
        return next((role for role in roles if role in self.logs), None)

    def finding(self, sentence: str, warnings: Sequence[str] = ()) -> Finding:
        """A finding of this sentence with the counts that every kind has; the kind adds its numbers."""
        clock, base = self.study.protocol.clock, self.study.base
        rounds = self.counted
        drift = max((level_drift(one, clock, base) for one in rounds), default=0.0)
        return Finding(
            kind=self.study.kind,
            subjects=self.study.subjects,
            sentence=sentence,
            failed=self.failed,
            warnings=(*warnings, *self._warnings(rounds, drift)),
            drift=drift,
            blocks=sum(block.arm == base for one in rounds for block in one.blocks),
            valid_rounds=len(rounds),
            invalid_rounds=len(self.faulty),
        )

    def _warnings(self, rounds: Sequence[Round], drift: float) -> list[str]:
        said = [f"{role} could not run ({why})" for role, why in self.failed.items()]
        if not self.study.floor_id:
            said.append("what this machine can resolve was never measured: python -m campaign hypothesis=aa_null")
        if not all(one.together for one in rounds):
            said.append("the arms did not fit side by side: whole processes alternated, which cancels less drift")
        if drift > DRIFT_FLAG["cpu" if self.study.device == "cpu" else "cuda"]:
            said.append(f"{self.study.base}'s own level moved by {drift:.0%} within a round; taking turns cancels it")
        others = [trial for one in rounds for trial in one.trials if trial.arm != self.study.base]
        unsteady = sorted({trial.arm for trial in others if not trial.steady})
        if unsteady:
            said.append(f"not steady after warm-up in some round: {', '.join(unsteady)}")
        compiled = sorted({trial.arm for trial in others if trial.recompiled})
        if compiled:
            said.append(f"compiled inside timed windows: {', '.join(compiled)}; the time counts against them")
        return said


def shown(term: Term) -> str:
    """'prenorm_fusion 1.042x [1.031, 1.053]'."""
    return f"{term.name} {units.ratio(term.effect.ratio)} {units.interval(term.effect.low, term.effect.high)}"


def _broke(one: Round) -> bool:
    return any(trial.status not in NO_FAILURES for trial in one.trials)
