"""What `minikeras.distribute.run` asks of MPI, and with what it starts again. No MPI is needed."""

import subprocess

import pytest

from minikeras.distribute import run as launcher
from minikeras.distribute.run import Host, RankJob, command, environment, main, remaining, run

PROGRAM = ["train.py", "--epochs", "3"]


@pytest.fixture(autouse=True)
def without_mpi(monkeypatch):
    monkeypatch.setattr(launcher, "mpirun", lambda: "mpirun")
    monkeypatch.setattr(launcher.sys, "executable", "python")


def options(job, is_open_mpi=True, available=4, **variables):
    first, n, ranks, *rest = command(job, is_open_mpi, available, variables)
    assert (first, n, ranks) == ("mpirun", "-n", str(job.ranks)) and rest[-6:] == ["python", "-m", "mpi4py", *PROGRAM]
    return rest[:-6]


def test_ranks_have_processors_of_their_own():
    assert options(RankJob(2, PROGRAM)) == ["--map-by", "slot:PE=2:HWTCPUS"]


def test_more_ranks_than_processors_yield():
    assert options(RankJob(8, PROGRAM)) == ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    assert options(RankJob(8, PROGRAM), is_open_mpi=False) == []


def test_other_machines_get_the_variables_of_the_program():
    job = RankJob(3, PROGRAM, [Host("a", 2), Host("b", 1)])
    given = {"PYTHONPATH": "/project", "HOME": "/root", "OMP_NUM_THREADS": "4"}
    assert options(job, **given) == ["--host", "a:2,b:1", "-x", "PYTHONPATH", "-x", "OMP_NUM_THREADS"]
    assert options(job, is_open_mpi=False, **given) == ["-hosts", "a:2,b:1"]


def test_threads_are_shared_unless_the_program_was_told_otherwise():
    found = environment(RankJob(2, PROGRAM), 8, "done", {"OMP_NUM_THREADS": "3"})
    assert found["OMP_NUM_THREADS"] == "3" and found["OPENBLAS_NUM_THREADS"] == "4"
    assert "OMP_NUM_THREADS" not in environment(RankJob(2, PROGRAM, [Host("a", 2)]), 8, "done", {})


def test_the_files_of_a_job_lie_in_a_folder_of_its_own_unless_the_program_was_told_otherwise():
    place = "PRTE_MCA_prte_local_tmpdir_base"
    assert environment(RankJob(2, PROGRAM), 8, "/a/done", {})[place] == "/a"
    assert place not in environment(RankJob(2, PROGRAM), 8, "/a/done", {"PRTE_MCA_prte_tmpdir_base": "/b"})


@pytest.fixture
def tries(monkeypatch):
    """The numbers of ranks with which a program that always fails is started."""
    found = []
    monkeypatch.setattr(launcher, "_status", lambda job: found.append(job.ranks) or 7)
    return found


@pytest.mark.parametrize(("least", "expected"), [(None, [8, 8, 8, 8]), (1, [8, 4, 2, 1]), (3, [8, 4, 3, 3])])
def test_a_start_after_a_failure_takes_half_as_many_ranks_if_it_may(tries, least, expected):
    assert run(RankJob(8, PROGRAM), 3, least) == 7
    assert tries == expected


def test_hosts_that_do_not_answer_are_left_out(tries, monkeypatch, capsys):
    monkeypatch.setattr(launcher, "_answers", lambda host: host != "b")
    hosts = [Host(name, 2) for name in "abcd"]
    assert remaining(RankJob(8, PROGRAM, hosts), 1) == RankJob(4, PROGRAM, [Host(name, 2) for name in "acd"])
    assert run(RankJob(8, PROGRAM, hosts), 2, 1) == 7 and tries == [8, 4, 4]
    assert run(RankJob(8, PROGRAM, hosts), 2) == 7 and tries == [8, 4, 4, 8]
    assert "the hosts that answer have room for 6 ranks; 8 are needed" in capsys.readouterr().err


def test_hosts_are_asked_by_ssh(monkeypatch):
    asked = []

    def answer(line, **options):
        asked.append(line[-2])
        return subprocess.CompletedProcess(line, 255)

    monkeypatch.setattr(launcher.subprocess, "run", answer)
    assert launcher._answers("localhost") and not launcher._answers("far") and asked == ["far"]


@pytest.mark.parametrize(
    "line",
    [
        "-n 0 a.py",
        "-n 2",
        "-n 2 --min-ranks 3 a.py",
        "-n 2 --max-restarts -1 a.py",
        "-n 2 --hosts a:x a.py",
        "-n 2 --hostfile no/such/file a.py",
    ],
)
def test_command_lines_that_make_no_sense_are_refused(line, capsys):
    with pytest.raises(SystemExit) as found:
        main(line.split())
    assert found.value.code == 2 and "error: " in capsys.readouterr().err


def test_a_file_has_a_line_for_each_host(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(launcher, "run", lambda job, restarts, least: started.append(job) or 0)
    (tmp_path / "hosts").write_text("a slots=2\nb:1\n")
    assert main(["-n", "3", "--hostfile", str(tmp_path / "hosts"), "train.py"]) == 0
    assert started == [RankJob(3, ["train.py"], [Host("a", 2), Host("b", 1)])]
