"""`benchctl runs`: what is deleted, what is refused, and what is said of it."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from benchctl.cli import root
from benchctl.errors import BenchctlError
from benchctl.experiment.record import ExperimentStore
from benchctl.home import Home
from benchctl.nightly.records import SuiteFolder
from benchctl.results.model import RunRecord
from benchctl.results.plan import DEFAULT_LENGTH
from benchctl.results.store import RunFolder, RunStore
from benchctl.run.host import describe_host
from benchctl.run.plan import RunSpec, plan_run
from benchctl.stats.caveat import run_doubts
from builders import CORPUS, ES, OS, make_environment, make_fork, make_plan, make_record, make_summary
from made_experiment import made_record
from nightly.made import finding

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def home(home: Path) -> Home:
    return Home(home)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(root, ["runs", *map(str, arguments)])


def refused(*arguments: object) -> BenchctlError:
    error = call(*arguments).exception
    assert isinstance(error, BenchctlError)
    return error


def run(home: Home, name: str, *, days: float = 0, **fields: Any) -> RunFolder:
    """A finished run of a MiB, so many days old."""
    folder = RunStore(home.runs).create(name)
    created = (datetime.now(UTC) - days * DAY).isoformat()
    folder.save(make_record(name, **{"status": "complete", "created": created, **fields}))
    (folder.path / "forks" / "0.parquet").write_bytes(b"x" * 2**20)
    return folder


def left(home: Home) -> list[str]:
    return sorted(path.name for path in home.runs.iterdir())


def earlier(forks: int = 6) -> RunRecord:
    """A run of the default sizes on this very machine."""
    done = tuple(
        make_fork(name, block, make_summary("range", 10 + block % 3), wall_s=15.0)
        for block in range(forks)
        for name in ("es", "os")
    )
    spec = RunSpec(
        variants=(ES, OS),
        challenges=("range-only-short",),
        warmup_challenges=(),
        restart="challenge",
        forks=forks,
        seed=1,
        heap_mb=1024,
        track="big5",
        corpus=CORPUS,
        segments=1,
        params={},
    )
    host = make_environment(fingerprint=describe_host().fingerprint)
    return make_record("a", plan=plan_run(spec)[0], forks=done, environment=host)


def test_named_runs_are_deleted_by_any_of_their_names(home: Home):
    folders = [run(home, f"2026010{number}-000000-c-000{number}") for number in range(1, 5)]
    done = call("rm", folders[0].path.name, folders[1].path.name, folders[2].path, folders[1].path)
    assert done.stdout.splitlines() == [f"{folder.path.name} deleted, 1.0 MiB" for folder in folders[:3]]
    assert left(home) == [folders[3].path.name]


@pytest.mark.parametrize("name", ["2", "20260101", "20260101-00000", "0001", "latest"])
def test_a_part_of_an_id_deletes_nothing(home: Home, name: str):
    run(home, "20260101-000000-c-0001")
    error = refused("rm", name, "--force")
    assert error.message == f"'{name}' is not a run id"
    assert "20260101-000000-c-0001" in error.hint
    assert left(home) == ["20260101-000000-c-0001"]


def test_nothing_is_deleted_when_one_of_several_is_refused(home: Home):
    run(home, "a")
    assert "no such run 'b'" in refused("rm", "a", "b").message
    assert left(home) == ["a"]


def test_a_run_that_is_being_measured_is_not_deleted_even_by_force(home: Home):
    folder = run(home, "a", status="running")
    run(home, "b")
    with folder.writing():
        assert "run a is being measured: process " in refused("rm", "b", "a", "--force").message
        assert call("prune", "--keep", 0).stdout == (
            "b deleted, 1.0 MiB\n1 run deleted, 1.0 MiB freed; kept: 1 being measured\n"
        )
    assert left(home) == ["a"]


def test_a_run_that_nobody_measures_any_more_was_interrupted(home: Home):
    folder = run(home, "a", status="running")
    run(home, "b")
    assert folder.load().status == "interrupted"
    assert "benchctl resume a" in CliRunner().invoke(root, ["runs", "list"]).stderr
    with folder.writing():
        assert folder.load().status == "running"
        listed = CliRunner().invoke(root, ["runs", "list"])
        assert "benchctl resume" not in listed.stderr
        with pytest.raises(BenchctlError, match=f"process {os.getpid()}"), folder.writing():
            pass


def test_a_run_that_time_ends_is_not_said_to_have_all_forks_that_it_may_have(home: Home):
    plan = make_plan(forks=50, stop=DEFAULT_LENGTH)
    forks = (make_fork("es", 0), make_fork("os", 0))
    run(home, "a", status="interrupted", plan=plan, forks=forks)
    run(home, "b", plan=plan, forks=forks, stopped="ended after 1 fork per variant")
    rows = json.loads(call("list", "--format", "json").stdout)
    assert [row["forks"] for row in rows] == ["2/at most 100", "2/2"]
    (doubt,) = run_doubts(RunStore(home.runs).find("a", finished=False).load())
    assert "2 of at most 100 forks are done" in doubt.text


def test_what_experiments_and_nights_refer_to_takes_force(home: Home):
    for name in ("a", "b", "c", "d"):
        run(home, name)
    suite = SuiteFolder(home.nightly / "big5")
    began = suite.begin(datetime.now(UTC))
    suite.save(msgspec.structs.replace(began, run="a", findings=(finding(1, run="b"),)))
    experiment = ExperimentStore(home.experiments).new("x", "20260101-000000")
    experiment.save(made_record([], id=experiment.path.name, runs={"m": "c"}))
    assert refused("rm", "b").message == f"night {began.id} of big5 refers to run b"
    assert refused("rm", "c").message == f"experiment {experiment.path.name} refers to run c"
    assert call("prune", "--keep", 0).stdout.endswith("; kept: 3 referenced\n")
    assert left(home) == ["a", "b", "c"]
    assert call("rm", "a", "b", "c", "--force").exit_code == 0
    assert left(home) == []


def test_what_cannot_be_read_might_refer_to_any_run(home: Home):
    run(home, "a")
    broken = home.experiments / "x"
    broken.mkdir()
    (broken / "experiment.json").write_text("{", encoding="utf-8")
    for arguments in (("rm", "a"), ("prune", "--keep", 0)):
        assert "cannot determine which runs are still referenced" in refused(*arguments).message
    assert call("rm", "a", "--force").exit_code == 0


def test_old_runs_are_deleted_and_tagged_ones_stay(home: Home):
    for name, days in (("a", 40), ("b", 35), ("c", 31), ("d", 2), ("e", 1)):
        run(home, name, days=days, tags=("release",) if name == "b" else ())
    would = call("prune", "--older-than", "30d", "--dry-run")
    assert would.stdout.splitlines() == [
        "a would be deleted, 1.0 MiB",
        "c would be deleted, 1.0 MiB",
        "2 runs would be deleted, 2.0 MiB would be freed; kept: 1 tagged",
    ]
    assert left(home) == ["a", "b", "c", "d", "e"]
    assert call("prune", "--keep", 3, "--older-than", "30d").stdout.splitlines()[0] == "a deleted, 1.0 MiB"
    assert left(home) == ["b", "c", "d", "e"]
    assert call("prune", "--keep", 1).exit_code == 0
    assert left(home) == ["b", "e"]


def test_what_a_killed_removal_left_is_no_run_and_goes_with_the_next(home: Home):
    (home.runs / ".removed-old").mkdir(parents=True)
    (home.runs / ".removed-old" / "run.json").write_bytes(b"x" * 2**20)
    run(home, "a")
    assert [folder.path.name for folder in RunStore(home.runs).folders()] == ["a"]
    assert call("rm", "a").stdout == "a deleted, 2.0 MiB\n"
    assert left(home) == []


def test_of_a_run_that_is_linked_here_the_link_goes(home: Home, tmp_path: Path):
    linked, other = run(home, "20260101-000000-c-0001"), run(home, "20260102-000000-c-0002")
    elsewhere = tmp_path / "shared"
    linked.path.rename(elsewhere)
    linked.path.symlink_to(elsewhere)
    assert call("rm", linked.path.name).stdout == "20260101-000000-c-0001 deleted, 0.0 MiB\n"
    assert RunFolder(elsewhere).load().id == linked.path.name
    assert call("rm", other.path.name).exit_code == 0
    assert not other.path.exists()
