"""Sweeps: what is composed before the first job starts, what one failure costs, and the summary at the end."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from campaign.cli.running import sweep
from campaign.config import Job, jobs, load
from campaign.errors import BadInput, LeaseHeld, TrackingFailed, UnknownName
from campaign.run.sweep import AUTOPILOT, JOBS, begun
from campaign.verdicts import stale
from tests.report import written


def test_sweep_gives_one_checked_job_each_nulls_first_and_what_compiles_in_each_process_last(project):
    listed = "hypothesis=compile,prenorm_fusion,aa_null,cached_quantized_weights"
    found = jobs(project, ["-m", listed, "protocol.pairs=20"])
    names = ["aa_null", "prenorm_fusion", "cached_quantized_weights", "compile"]
    assert [(job.hypothesis.name, job.protocol.pairs) for job in found] == [(name, 20) for name in names]


def test_sweep_over_every_hypothesis_by_glob(project):
    names = sorted(path.stem for path in (project / "conf/hypothesis").glob("*.yaml"))
    names.append(names.pop(names.index("compile")))
    assert [job.hypothesis.name for job in jobs(project, ["-m", "hypothesis=glob(*)"])] == names


def test_one_bad_value_in_a_sweep_starts_none_of_it(project):
    with pytest.raises(UnknownName, match="no hypothesis 'nope'"):
        jobs(project, ["-m", "hypothesis=aa_null,nope"])
    with pytest.raises(BadInput, match="even and at least 2"):
        jobs(project, ["-m", "protocol.pairs=20,21"])


@pytest.fixture(scope="module")
def two_jobs(shared_project) -> list[Job]:
    return [load(shared_project, [f"hypothesis={name}"]) for name in ("aa_null", "prenorm_fusion")]


class Outcomes:
    """Stands where `campaign.run.main` stands: one outcome a job, and which jobs were started."""

    def __init__(self, *outcomes: int | BaseException) -> None:
        self.outcomes = list(outcomes)
        self.started: list[str] = []

    def __call__(self, job) -> int:
        self.started.append(job.hypothesis.name)
        outcome = self.outcomes[len(self.started) - 1]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


@pytest.mark.parametrize(
    ("outcomes", "code", "started"),
    [
        ((0, 0), 0, 2),
        ((3, 0), 4, 2),
        ((LeaseHeld("held"), 0), 4, 2),
        ((ValueError("a fault of ours"), 0), 4, 2),
        ((SystemExit(7), 0), 4, 2),
        ((SystemExit(), 0), 4, 2),
        ((TrackingFailed("mlflow"), 0), 0, 2),
        ((KeyboardInterrupt(), 0), 130, 1),
        ((130, 0), 130, 1),
        ((3, KeyboardInterrupt()), 130, 2),
    ],
)
def test_sweep_goes_on_after_a_failure_and_stops_on_an_interrupt(two_jobs, outcomes, code, started):
    measure = Outcomes(*outcomes)
    assert sweep(two_jobs, measure) == code
    assert measure.started == ["aa_null", "prenorm_fusion"][:started]


def test_fault_in_one_job_of_a_sweep_is_shown_in_full_and_counted(two_jobs, capsys):
    sweep(two_jobs, Outcomes(ValueError("a fault of ours"), 0))
    said = capsys.readouterr()
    assert "ValueError: a fault of ours" in said.err
    assert "1 of 2 decided; without a decision: aa_null (exit 4)" in said.out


def test_sweep_ends_with_a_line_for_every_job_refused_and_not_started_ones_too(two_jobs, capsys):
    refused = BadInput("aa_null conflicts with prenorm_fusion, which is in the accepted stack")
    sweep(two_jobs, Outcomes(refused, 0))
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if "refused" in line]
    assert "aa_null" in line and "conflicts with prenorm_fusion" in line
    sweep(two_jobs, Outcomes(KeyboardInterrupt(), 0))
    said = capsys.readouterr()
    assert "not started" in next(line for line in said.out.splitlines() if "prenorm_fusion" in line)
    assert "interrupted in aa_null, number 1 of 2; 1 were not started" in said.err


def test_sweep_summary_shows_the_decisions_that_were_written_as_table_and_as_json(project, add, capsys):
    made = {"aa_null": written.slower, "prenorm_fusion": written.faster}

    def measure(job) -> int:
        with written.opened(job.root, job.campaign) as ledger:
            made[job.hypothesis.name](ledger, job.hypothesis.name, command=job.command)
        return 0

    words = ["hypothesis=aa_null,prenorm_fusion", "campaign.name=demo", "workload.seed=3"]
    assert sweep(jobs(project, ["-m", *words]), measure) == 0
    table = capsys.readouterr().out
    # written.faster: e^.10 on fresh rounds; written.slower: e^-.10
    (line,) = [line for line in table.splitlines() if "prenorm_fusion workload.seed=3" in line]
    assert "accept (faster)" in line and "1.105x" in line and "1.100x held" in line and "emulated" in line
    assert "2 of 2 decided" in table
    made |= {"aa_null": lambda *_, **__: None, "prenorm_fusion": lambda *_, **__: None}
    assert sweep(jobs(project, ["-m", "--json", *words]), measure) == 0
    said = json.loads(capsys.readouterr().out)
    # What the ledger had before is not this run's.
    assert [job["verdict"] for job in said["sweep"]] == ["no decision", "no decision"]


@pytest.fixture
def two(project, add):
    """Two jobs of one campaign, and what writes a decision on one of them as its run would."""
    found = jobs(project, ["-m", "hypothesis=prenorm_fusion,register_cap", "campaign.name=demo"])

    def decide(ledger, job, **changes):
        id = f"{job.hypothesis.name}-{len(ledger.decision_rows()) + 1}"
        plan = written.plan(job.hypothesis.name, id=id, command=job.command, attempt=changes.pop("attempt", 1))
        measured = written.evidence(plan, written.SLOWER)
        if changes.pop("too_late", False):
            return written.record(
                ledger, measured, verdict=stale(written.decide(ledger, measured).verdict, plan, ["x"])
            )
        return written.record(ledger, measured)

    return found, decide


def test_sweep_that_did_not_end_is_gone_on_with_and_one_that_ended_is_done_again(two):
    found, decide = two
    first, second = found
    with begun(JOBS, found, []) as entered:
        assert (entered["demo"].resumed, entered["demo"].recall(first.command)) == (False, [])
        decision = decide(entered["demo"].ledger, first)
    with begun(JOBS, found, []) as entered:
        sweep = entered["demo"]
        assert sweep.resumed
        assert [row["id"] for row in sweep.recall(first.command)] == [decision.id]
        assert sweep.recall(first.command) == [], "each decision is one job's"
        assert sweep.recall(second.command) == []
        sweep.end()
    with begun(JOBS, found, []) as entered:
        assert (entered["demo"].resumed, entered["demo"].recall(first.command)) == (False, [])


def test_sweep_of_other_jobs_or_of_another_kind_is_another_sweep(two):
    found, _ = two
    with begun(JOBS, found, []):
        pass
    for kind, jobs_, words in ((JOBS, found[:1], []), (AUTOPILOT, found[:1], ["--only=a"])):
        with begun(kind, jobs_, words) as entered:
            assert not entered["demo"].resumed
    with begun(AUTOPILOT, found[:1], ["--only=b"]) as entered:
        assert not entered["demo"].resumed
    with begun(AUTOPILOT, found[:1], ["--only=b"]) as entered:
        assert entered["demo"].resumed


def test_sweep_that_a_live_process_works_on_is_not_taken_over(two):
    found, decide = two
    with begun(JOBS, found, []) as live:
        decide(live["demo"].ledger, found[0])
        with begun(JOBS, found, []) as entered:
            assert entered["demo"].id != live["demo"].id
            assert (entered["demo"].resumed, entered["demo"].recall(found[0].command)) == (False, [])


def test_decision_that_came_too_late_is_measured_again_after_an_interruption(two):
    found, decide = two
    with begun(JOBS, found, []) as entered:
        decide(entered["demo"].ledger, found[0], too_late=True)
    with begun(JOBS, found, []) as entered:
        assert entered["demo"].recall(found[0].command) == []
        decide(entered["demo"].ledger, found[0])
        rows = entered["demo"].recall(found[0].command)
        assert [row["verdict"]["reason"] for row in rows] == ["stale", "slowdown"]


def test_what_an_interrupted_sweep_had_decided_is_shown_and_not_run_again(two, capsys):
    found, decide = two
    with begun(JOBS, found, []) as entered:
        decide(entered["demo"].ledger, found[0])
    measure = Outcomes(0)
    with begun(JOBS, found, []) as entered:
        assert sweep(found, measure, entered) == 0
    assert measure.started == ["register_cap"]
    said = capsys.readouterr()
    assert "2 of 2 decided, 1 of them before the interruption" in said.out
    assert "reject (slowdown)" in next(line for line in said.out.splitlines() if "prenorm_fusion" in line)


def test_false_accepts_are_expected_by_the_alpha_of_each_attempt_times_that_of_the_confirmation(two, capsys):
    found, decide = two
    found = [replace(job, json=True) for job in found]
    attempts = iter((1, 2))

    def measure(job) -> int:
        with written.opened(job.root, job.campaign) as ledger:
            decide(ledger, job, attempt=next(attempts))
        return 0

    assert sweep(found, measure) == 0
    said = json.loads(capsys.readouterr().out)
    protocol = found[0].protocol
    assert (protocol.alpha, protocol.confirm_alpha) == (0.01, 0.025)
    # .01 x .025, and half of that for the second attempt
    assert said["false_accepts_expected"] == pytest.approx(0.000375)
    assert (said["tests"], said["decided"]) == (2, 2)


def test_first_looks_and_nulls_accept_nothing_and_are_no_tests(project, add, capsys):
    found = jobs(project, ["-m", "hypothesis=prenorm_fusion", "protocol=quick", "campaign.name=demo", "--json"])

    def measure(job) -> int:
        with written.opened(job.root, job.campaign) as ledger:
            written.slower(ledger, job.hypothesis.name, command=job.command)
        return 0

    assert sweep(found, measure) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["tests"], said["false_accepts_expected"]) == (0, 0)
