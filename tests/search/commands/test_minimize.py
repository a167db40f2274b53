"""`benchctl minimize`: what it refuses before it starts anything, and what it prints of a finished search."""

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

import benchctl.home as boundary_home
from benchctl.cli import root
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.results.model import RunStatus
from benchctl.results.plan import Plan
from benchctl.run.plan import RunSpec, plan_run
from benchctl.search.minimize import check_search, default_metric
from benchctl.search.record import Effect, MinimizeSpec, Question, SearchFolder, SearchRecord
from benchctl.track.load import load_challenge, load_track
from benchctl.track.model import Challenge, Task
from builders import CORPUS, ES
from golden import Cases

EFFECT = ("--effect", "range slower than fresh")


def searching(plan: Plan, *questions: Question, status: RunStatus = "complete") -> SearchRecord:
    spec = MinimizeSpec(effect=Effect("range", "slower", "es"))
    return SearchRecord(
        id="20260101-a",
        status=status,
        spec=spec,
        metric="throughput",
        most=12,
        plan=plan,
        questions=questions,
    )


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["minimize", *arguments])


def resumed(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["resume", "20260101-a", *arguments])


def refused(*arguments: str) -> UsageError:
    error = call(*arguments).exception
    assert isinstance(error, UsageError), error
    return error


def test_what_makes_no_search_is_refused_before_anything_starts(cases: Cases, home: Path):
    cases("minimize", lambda arguments: refused(*json.loads(arguments)))
    assert not list(home.glob("searches/*"))


@pytest.mark.parametrize(
    ("operation", "kind"), [({"operation-type": "sleep", "duration": 1}, "sleep"), ("refresh", "refresh")]
)
def test_what_reports_nothing_shows_no_effect(
    operation: dict[str, object] | str, kind: str, tmp_path: Path, home: Path
) -> None:
    if isinstance(operation, str):
        operation = {"operation-type": operation}
    schedule = [{"operation": "range"}, {"name": "last", "operation": {"name": "last", **operation}}]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"name": "mine", "schedule": schedule}))
    error = refused("--challenge", str(path), "--effect", "last slower than fresh")
    assert f"'last' is a {kind}, which has no figures" in error.message
    assert not list(home.glob("searches/*"))


def test_all_variants_of_a_file_are_measured_when_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "variants.yml"
    file.write_text("mine: {extends: es}\nother: {extends: es}\n")
    words = ("--challenge", "big5", "--variants", str(file), "--effect")
    assert "mine, other" in str(refused(*words, "range slower on os than on es"))
    assert "about one variant" in refused(*words, "range slower than fresh").message


def test_challenges_that_make_their_own_data_cannot_lose_tasks() -> None:
    plan = msgspec.structs.replace(planned(), origin="empty")
    with pytest.raises(UsageError, match="makes its own data"):
        check_search(plan, load_track("big5", {})[0], searching(plan))


def test_a_task_with_a_rate_is_judged_by_its_times() -> None:
    assert default_metric(Task("range", target_throughput=2.0)) == "service_time_p50"
    assert default_metric(Task("range")) == "throughput"


def planned() -> Plan:
    options = RunSpec(
        variants=(ES,),
        challenges=("big5rangedebug",),
        warmup_challenges=(),
        restart="never",
        forks=12,
        seed=1,
        heap_mb=1024,
        track="big5",
        corpus=CORPUS,
        segments=1,
        params={"iterations": 30},
    )
    return plan_run(options)[0]


def finished(home: Path, *, found: bool = True) -> SearchFolder:
    begun = Question(
        number=1,
        phase="whole",
        about=(0, 1),
        subject=("desc_sort_timestamp", "composite-date_histogram-daily"),
        verdict="present" if found else "undecided",
        contender=(5.0,) * 5,
        reference=(9.0,) * 5,
        effect_percent=-44.0,
        low_percent=-45.0,
        high_percent=-43.0,
        most=12,
    )
    kept = [
        msgspec.structs.replace(begun, number=number, phase="remove", about=about, verdict="absent")
        for number, about in ((2, (1,)), (3, (0,)))
    ]
    folder = SearchFolder(home / "searches" / "20260101-a")
    folder.save(searching(planned(), begun, *(kept if found else ())))
    return folder


def loaded(path: Path) -> Challenge:
    return load_challenge(str(path), load_track("big5", {})[0], {})[0]


def test_a_finished_search_is_printed_again_and_its_challenge_loads(home: Path) -> None:
    folder = finished(home)
    done = resumed()
    assert done.exit_code == 0
    path = folder.path / "big5rangedebug-minimal-range.json"
    assert [(task.label, task.iterations) for task in loaded(path).schedule] == [
        ("desc_sort_timestamp", 30),
        ("composite-date_histogram-daily", 30),
        ("range", 30),
    ]
    alone = folder.path / "big5rangedebug-minimal-range-alone.json"
    assert [task.label for task in loaded(alone).schedule] == ["range"]
    assert "To see it again" in done.stdout


def test_programs_get_the_decisions_the_files_and_the_command_to_run_them(home: Path) -> None:
    finished(home)
    document = json.loads(resumed("--format", "json").stdout)
    assert document["search"]["questions"][0]["verdict"] == "present"
    found, alone = document["files"]
    command = document["commands"]["To see it again"]
    assert command.startswith(f"benchctl run --challenge {found} --challenge {alone} --variant es")
    # Counts are in the files.
    assert "--param" not in command


@pytest.mark.parametrize(
    ("output_format", "shown"),
    [
        ("markdown", ["| # | Left | Without |", "| 1 | 2 | the whole schedule |", "```json"]),
        ("csv", ["number,phase,verdict,effect_percent", "1,whole,present,-44.0,-45.0,-43.0,0.0,0.0,5,desc_"]),
        ("html", ["<table", "a fresh node", "benchctl run --challenge"]),
    ],
)
def test_readers_elsewhere_get_the_same(home: Path, output_format: str, shown: list[str]) -> None:
    finished(home)
    done = resumed("--format", output_format)
    assert [words for words in shown if words not in done.stdout] == []


def test_searches_are_listed_and_a_broken_one_is_passed_over_with_a_word(home: Path) -> None:
    asked = ["list", "searches", "--format", "json"]
    assert json.loads(CliRunner().invoke(root, asked).stdout) == []
    assert not (home / "searches").exists()
    finished(home)
    folder = finished(home, found=False)
    broken = home / "searches" / "20260102-b" / "search.json"
    broken.parent.mkdir()
    broken.write_text("{")
    done = CliRunner().invoke(root, asked)
    (row,) = json.loads(done.stdout)
    assert row["search"] == folder.path.name
    assert (row["looks for"], row["questions"]) == ("range slower than fresh", 1)
    assert str(broken) in done.stderr


def test_a_file_that_cannot_be_written_is_said_in_words(home: Path, tmp_path: Path) -> None:
    finished(home)
    (tmp_path / "file").touch()
    (tmp_path / "y-alone.json").touch()
    for name, words in (
        ("nowhere/x.json", "parent directory does not exist"),
        ("file/x.json", "parent directory does not exist"),
        ("", "parent directory does not exist"),
        ("file", "already exists"),
        ("y.json", "y-alone.json already exists"),
    ):
        error = call("--challenge", "nosuch", *EFFECT, "--output", name and str(tmp_path / name)).exception
        assert isinstance(error, UsageError)
        assert words in error.message


def test_an_effect_that_is_not_confirmed_is_inconclusive(home: Path) -> None:
    finished(home, found=False)
    done = resumed()
    assert "is not confirmed" in done.stdout
    assert isinstance(done.exception, BenchctlError)
    assert done.exception.exit_code == ExitCode.INCONCLUSIVE


def test_a_search_whose_time_was_up_shows_how_to_resume(home: Path) -> None:
    folder = finished(home)
    record = searching(planned(), status="interrupted")
    folder.save(msgspec.structs.replace(record, stopped="the time was up"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchctl.search.commands.conduct", lambda _context, record: record)
        patch.setattr("benchctl.search.commands.check_host", lambda *_: None)
        error = resumed().exception
    assert isinstance(error, BenchctlError)
    assert error.exit_code == ExitCode.INCONCLUSIVE
    assert f"benchctl resume {record.id}" in error.hint


@pytest.mark.usefixtures("home")
def test_a_finished_search_gets_further_pairs_where_it_stayed_open(home: Path) -> None:
    folder = finished(home, found=False)
    asked: list[SearchRecord] = []

    def conduct(_context: object, record: SearchRecord) -> SearchRecord:
        asked.append(record)
        return record

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchctl.search.commands.conduct", conduct)
        patch.setattr("benchctl.search.commands.check_host", lambda *_: None)
        CliRunner().invoke(root, ["extend", folder.path.name, "--forks", "8", "--budget", "1h"])
    assert [(one.most, one.budget_s) for one in asked] == [(20, 3600.0)]
    assert asked[0].answered == []
    folder.save(searching(planned(), status="interrupted"))
    error = CliRunner().invoke(root, ["extend", folder.path.name]).exception
    assert isinstance(error, UsageError)
