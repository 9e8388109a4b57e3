"""Sweeps: what is composed before the first job starts, what one failure costs, and the summary at the end."""

from __future__ import annotations

import json

import pytest

from campaign.cli import main
from campaign.cli.running import sweep
from campaign.config import Job, fitting, jobs, load
from campaign.config.compose import composer_for
from campaign.errors import BadInput, DoesNotFit, LeaseHeld, TrackingFailed, UnknownName
from tests.report import written


def test_sweep_gives_one_checked_job_each_nulls_first_and_what_compiles_in_each_process_last(project):
    listed = "hypothesis=compile,prenorm_fusion,aa_null,cached_quantized_weights"
    found = jobs(project, ["-m", listed, "protocol.pairs=20"])
    names = ["aa_null", "prenorm_fusion", "cached_quantized_weights", "compile"]
    assert [(job.hypothesis.name, job.protocol.pairs) for job in found] == [(name, 20) for name in names]


def test_a_config_that_always_sweeps_does_so_without_the_flag(project, add, monkeypatch):
    text = (project / "conf/config.yaml").read_text()
    sweeper = "hydra:\n  mode: MULTIRUN\n  sweeper: {params: {hypothesis: 'aa_null,prenorm_fusion'}}\n"
    add("config.yaml", text.replace("\nhydra:\n", f"\n{sweeper}"))
    found = jobs(project, ["protocol.pairs=20"])
    assert [(job.hypothesis.name, job.protocol.pairs) for job in found] == [("aa_null", 20), ("prenorm_fusion", 20)]
    found = jobs(project, ["hydra.mode=RUN", "protocol.pairs=20"])
    assert [job.hypothesis.name for job in found] == ["aa_null"]
    ran = []
    monkeypatch.setattr("campaign.run.main", lambda job, *more, **named: ran.append(job.hypothesis.name) or 0)
    main(["campaign.name=each", "tracking=none"])
    assert ran == ["aa_null", "prenorm_fusion"], "none of them is left out"
    text = (project / "conf/config.yaml").read_text()
    add("config.yaml", text.replace("- hypothesis: aa_null", "- hypothesis: ???"))
    composer_for.cache_clear()
    found = jobs(project, ["protocol.pairs=20"])
    assert [job.hypothesis.name for job in found] == ["aa_null", "prenorm_fusion"]


@pytest.mark.slow
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

    def __call__(self, job, made) -> int:
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
    writes = {"aa_null": written.slower, "prenorm_fusion": written.faster}

    def measure(job, note) -> int:
        with written.opened(job.root, job.campaign) as ledger:
            if decision := writes[job.hypothesis.name](ledger, job.hypothesis.name, command=job.command):
                note(decision.id)
        return 0

    words = ["hypothesis=aa_null,prenorm_fusion", "campaign.name=demo", "workload.seed=3"]
    assert sweep(jobs(project, ["-m", *words]), measure) == 0
    table = capsys.readouterr().out
    # written.faster: e^.10 on fresh rounds; written.slower: e^-.10
    (line,) = [line for line in table.splitlines() if "prenorm_fusion workload.seed=3" in line]
    assert "accept (faster)" in line and "1.105x" in line and "1.100x held" in line and "emulated" in line
    assert "2 of 2 decided" in table
    writes |= {"aa_null": lambda *_, **__: None, "prenorm_fusion": lambda *_, **__: None}
    assert sweep(jobs(project, ["-m", "--json", *words]), measure) == 0
    said = json.loads(capsys.readouterr().out)
    # What the ledger had before is not this run's.
    assert [job["verdict"] for job in said["sweep"]] == ["no decision", "no decision"]


def test_first_looks_and_nulls_accept_nothing_and_are_no_tests(project, add, capsys):
    found = jobs(project, ["-m", "hypothesis=prenorm_fusion", "protocol=quick", "campaign.name=demo", "--json"])

    def measure(job, made) -> int:
        with written.opened(job.root, job.campaign) as ledger:
            made(written.slower(ledger, job.hypothesis.name, command=job.command).id)
        return 0

    assert sweep(found, measure) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["tests"], said["false_accepts_expected"]) == (0, 0)


LEAN = """_target_: models.workload.ReferenceWorkload
device: cpu
threads: 1
work: 1
"""


def test_a_pattern_leaves_out_what_does_not_fit_the_workload_and_names_are_refused(
    project, add, add_hypothesis, capsys
):
    add("workload/lean.yaml", LEAN)
    add_hypothesis("less_work", "workload.work=0")
    found, misfits = fitting(project, ["-m", "hypothesis=glob([*_work,p*])", "workload=lean"])
    assert [job.hypothesis.name for job in found] == ["less_work"]
    assert {"phase_split", "precision_tail", "prenorm_fusion"} == set(misfits)
    why = misfits["precision_tail"].message
    assert why.startswith("hypothesis precision_tail sets workload.precision, which this workload does not have")
    assert "refers to workload.compiled, which this workload does not have" in misfits["prenorm_fusion"].message
    with pytest.raises(DoesNotFit, match=r"sets workload\.precision"):
        jobs(project, ["-m", "hypothesis=less_work,precision_tail", "workload=lean"])
    with pytest.raises(DoesNotFit):
        fitting(project, ["-m", "hypothesis=glob(p*)", "workload=lean"])
