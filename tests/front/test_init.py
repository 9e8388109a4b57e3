"""`campaign init`: what is laid down around which script, that it fits, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from campaign.cli import main
from campaign.cli.usage import options
from campaign.config import jobs
from campaign.errors import DoesNotFit

REPOSITORY = Path(__file__).resolve().parents[2]


def node(folder: Path, name: str = "workload/own") -> dict:
    return OmegaConf.to_container(OmegaConf.load(folder / "conf" / f"{name}.yaml"))


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder with its content and its time, git's own left out."""
    found = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


def test_an_empty_repository_gets_a_project_that_composes_and_a_second_time_changes_nothing(folder, init):
    subprocess.run(["git", "init", "-q"], check=True)
    said = init()
    assert set(said["written"]) == {*files(folder)} and said["kept"] == []
    assert {"conf/config.yaml", "conf/workload/own.yaml", "conf/hypothesis/aa_null.yaml", "train_example.py",
            "runs/.gitignore"} < {*files(folder)}  # fmt: skip
    names = {job.hypothesis.name for job in jobs(folder, ["-m", "hypothesis=glob(*)"])}
    assert names == {"aa_null", "two_threads", "fused_optimizer"}
    before = files(folder)
    again = init()
    assert again["written"] == [] and "conf/workload/own.yaml" in again["kept"]
    assert files(folder) == before


def test_what_it_shows_in_a_new_project_is_what_fits_there(folder, init, capsys):
    init()
    assert options("hypothesis") == ["aa_null", "fused_optimizer", "two_threads"]
    assert options("workload") == ["own"]
    assert {"own", "quick", "standard"} <= set(options("protocol"))
    assert [path.name for path in (folder / "conf" / "protocol").iterdir()] == ["quick.yaml"]
    for protocol in options("protocol"):
        assert jobs(folder, [f"protocol={protocol}"])[0].protocol.name == protocol
    assert main(["--help"]) == 0
    assert "prenorm_fusion" not in capsys.readouterr().out
    assert main(["hypothesis=prenorm_fusion"]) == 2
    assert "aa_null, fused_optimizer, two_threads" in capsys.readouterr().err
    (folder / "conf/hypothesis/aa_null.yaml").unlink()  # it comes with campaign, whatever the folder lost
    assert jobs(folder, [])[0].hypothesis.null


def test_completion_offers_the_projects_own_names_and_the_packaged_protocols(folder, init, capsys):
    init()
    assert main(["completion", "bash"]) == 0
    text = capsys.readouterr().out
    lines = ["campaign hypothesis=", "campaign workload=", "campaign protocol=q"]
    asks = "".join(f"COMP_LINE='{one}' COMP_POINT={len(one)}; _campaign; echo ${{COMPREPLY[*]}}\n" for one in lines)
    done = subprocess.run(["bash", "-c", f"{text}\n{asks}"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["aa_null fused_optimizer two_threads", "own", "quick"]


def test_a_first_look_at_a_script_of_ones_own_gives_it_the_time_and_the_probe_of_its_protocol(folder, init):
    init()
    (whole,) = jobs(folder, ["hypothesis=two_threads"])
    (first,) = jobs(folder, ["hypothesis=two_threads", "protocol=quick"])
    found = first.protocol
    assert (found.name, found.decisive, found.looks, found.pairs) == ("quick", False, (3,), 12)
    for name in ("clock", "start_deadline_seconds", "reply_deadline_seconds", "probe_steps", "warmup_tolerance"):
        assert getattr(found, name) == getattr(whole.protocol, name)
    assert found.start_deadline_seconds == 900, "the packaged first look waits 180 s"


def test_the_laid_down_config_is_the_packaged_one_but_for_its_choices_and_examples(folder, init):
    init()
    mine, packaged = node(folder, "config"), OmegaConf.to_container(OmegaConf.load(REPOSITORY / "conf/config.yaml"))
    for one in (mine, packaged):
        del one["defaults"]
        del one["hydra"]["help"]["header"], one["hydra"]["help"]["footer"]
    assert mine == packaged


def test_what_was_there_is_kept_and_named(folder, init):
    own = folder / "conf/hypothesis/two_threads.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    (folder / "runs").mkdir()
    (folder / "runs/.gitignore").symlink_to("nowhere")
    said = init()
    assert set(said["kept"]) == {"conf/hypothesis/two_threads.yaml", "runs/.gitignore"}
    assert own.read_text() == "mine" and not (folder / "runs/nowhere").exists()


def test_many_at_once_leave_one_whole_project(folder):
    script = "from campaign.cli import main; raise SystemExit(main(['init']))"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    codes = []

    def one():
        codes.append(subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True).returncode)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0] * 4
    assert not [path for path in folder.rglob("*.tmp")]
    assert len(jobs(folder, ["-m", "hypothesis=glob(*)"])) == 3


def test_an_init_interrupted_after_any_file_goes_on_to_the_same_project(folder, init):
    written = init()["written"]
    whole = {name: (folder / name).read_bytes() for name in written}
    assert "train_example.py" in written[:-1] and written[-1] == "conf/config.yaml"
    for number in range(len(written)):
        for name in written[number:]:
            (folder / name).unlink()
        assert init()["written"] == written[number:]
        assert {name: (folder / name).read_bytes() for name in written} == whole
        assert {*files(folder)} == {*whole}


def test_what_starts_the_example_is_read_no_sooner_than_it_is_a_script_of_theirs(folder, init):
    line = "OMP_NUM_THREADS=4 python train_example.py --fused --steps 500"
    (folder / "README.md").write_text(f"    {line}\n")
    written = init()["written"]
    whole = {name: (folder / name).read_bytes() for name in written}
    for name in written[-4:]:
        (folder / name).unlink()
    init()
    assert {name: (folder / name).read_bytes() for name in written} == whole
    assert node(folder)["workload"]["flags"]["fused"] is False


def test_protocols_of_ones_own_stay_as_they_are_and_nothing_is_laid_beside_an_own(folder, init):
    own = folder / "conf/protocol/own.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("defaults: [quick, _self_]\nname: own\ndecisive: true\n")
    assert "conf/protocol/quick.yaml" not in init()["written"]
    assert jobs(folder, ["hypothesis=two_threads"])[0].protocol.pairs == 12
    own.rename(folder / "own.yaml")
    own.parent.rmdir()
    own.parent.symlink_to(folder)
    assert init()["written"] == [], "a project that lacks nothing is not written to, through a link or not"


def test_the_example_that_somebody_changed_is_a_script_of_theirs(folder, init):
    init()
    (folder / "conf/config.yaml").unlink()
    (folder / "conf/workload/own.yaml").unlink()
    with (folder / "train_example.py").open("a") as file:
        file.write("# mine\n")
    assert "conf/hypothesis/one_thread.yaml" in init()["written"]
    assert node(folder)["workload"]["environment"] == {}


def refused(capsys, *words: str) -> tuple[str, str]:
    """What `campaign init` says when it refuses, and what to type."""
    assert main(["init", *words]) == 2
    message, _, remedy = capsys.readouterr().err.partition("\n  try: ")
    return message, remedy.strip()


def test_another_programs_config_stays_and_the_remedy_goes_around_it(folder, capsys, monkeypatch):
    (folder / "conf").mkdir()
    (folder / "conf/config.yaml").write_text("defaults:\n  - model: large\n")
    (folder / "train.py").write_text("loss.backward()\n")
    message, remedy = refused(capsys)
    assert "another program's config" in message and remedy.startswith("campaign init tuning ")
    assert {*files(folder)} == {"conf/config.yaml", "train.py"}
    assert main(["init", "tuning"]) == 0
    assert "cd tuning && campaign" in capsys.readouterr().out
    monkeypatch.chdir(folder / "tuning")
    assert node(folder / "tuning")["workload"]["directory"] == ".."
    assert jobs(folder / "tuning", [])[0].workload == "own"


def test_inside_another_project_it_is_not_laid_down_by_mistake(folder, init, capsys, monkeypatch):
    init()
    (folder / "deep").mkdir()
    monkeypatch.chdir(folder / "deep")
    message, remedy = refused(capsys)
    assert str(folder) in message and remedy.startswith("campaign init --here ")
    assert files(folder / "deep") == {}
    assert main(["init", "--here"]) == 0
    assert (folder / "deep/conf/config.yaml").is_file()


@pytest.mark.parametrize("name", ["conf", "conf/hypothesis", "runs"])
def test_nothing_is_written_through_a_link(folder, tmp_path, capsys, name):
    (tmp_path / "elsewhere").mkdir()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(tmp_path / "elsewhere")
    message, remedy = refused(capsys)
    assert "is a link to" in message and remedy.startswith("campaign init tuning ")
    assert files(tmp_path / "elsewhere") == {}
    assert main(["init", "tuning"]) == 0


def test_where_nothing_can_be_written_it_says_who_may(folder, capsys, monkeypatch):
    if os.geteuid() == 0:
        monkeypatch.chdir("/proc/self")  # nobody makes a file there, root neither
    else:
        folder.chmod(0o500)
    message, remedy = refused(capsys)
    assert "cannot write" in message and remedy.startswith("ls -ld ")


def test_a_project_named_by_the_environment_is_not_passed_over(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CAMPAIGN_PROJECT", str(tmp_path))
    message, remedy = refused(capsys)
    assert "CAMPAIGN_PROJECT" in message and remedy.startswith("unset CAMPAIGN_PROJECT")


def test_a_script_that_is_not_there_is_answered_with_those_that_are(folder, capsys):
    (folder / "train.py").write_text("loss.backward()\n")
    message, remedy = refused(capsys, "--script", "trian.py")
    assert "no such file" in message and remedy.startswith("campaign init --script train.py ")
    assert "no such file" in refused(capsys, "--script", "../x.py")[0]
    (folder / "a file").touch()
    assert "is a file" in refused(capsys, "a file")[0]


def test_an_edit_of_a_flag_that_the_script_does_not_have_does_not_fit(folder, init):
    init()
    (folder / "conf/hypothesis/x.yaml").write_text(
        (folder / "conf/hypothesis/fused_optimizer.yaml")
        .read_text()
        .replace("fused=", "fuse=")
        .replace("name: fused_optimizer", "name: x")
    )
    with pytest.raises(DoesNotFit, match=r"did you mean 'workload.flags.fused'"):
        jobs(folder, ["hypothesis=x"])


def test_an_edit_of_a_variable_wins_over_the_workloads_own(folder, init):
    init()
    (job,) = jobs(folder, ["hypothesis=two_threads"])
    control = job.arm("control", "root", [])
    treatment = job.arm("treatment", "two_threads", [("two_threads", job.hypothesis.edit)])
    assert control.config["environment"] == {"OMP_NUM_THREADS": "1"}
    assert treatment.config["environment"] == {"OMP_NUM_THREADS": "2"}
