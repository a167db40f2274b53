"""`benchctl minimize`: what it refuses before it starts anything, and what it prints of a finished search."""

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

import benchctl.home as boundary_home
from benchctl.cli import root
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.results.plan import Plan
from benchctl.run.plan import RunSpec, plan_run
from benchctl.search.minimize import check_search, default_metric
from benchctl.search.record import Decision, Effect, MinimizeFolder, MinimizeRecord, MinimizeSpec
from benchctl.track.load import load_challenge, load_track
from benchctl.track.model import Challenge, Task
from builders import CORPUS, ES

EFFECT = ("--effect", "range slower than fresh")
SPEC = MinimizeSpec(
    effect=Effect("range", "slower", "es"),
    metric="throughput",
    by=None,
    most_forks=12,
    prefix_iterations=None,
    budget_s=None,
    alpha=0.05,
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["minimize", *arguments])


def refused(*arguments: str) -> UsageError:
    error = call(*arguments).exception
    assert isinstance(error, UsageError), error
    return error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--challenge and --effect"),
        (("--challenge", "big5"), "--challenge and --effect"),
        (("--challenge", "big5", "--effect", "range slow"), "cannot read"),
        (("--challenge", "big5", *EFFECT, "--variant", "es", "--variant", "os"), "about one variant"),
        (("--challenge", "range-only-short", *EFFECT), "first task"),
        (("--challenge", "big5", *EFFECT, "--forks", "4"), "at least 5"),
        (("--challenge", "big5", *EFFECT, "--by", "0%"), "more than 0"),
        (("--challenge", "big5", *EFFECT, "--budget", "0s"), "more than no time"),
        (("--challenge", "big5", *EFFECT, "--metric", "throughput"), "is asked for, and shows no effect"),
        (("--challenge", "big5", "--effect", "rang slower than fresh"), "no task 'rang'"),
        (("--challenge", "nosuch", *EFFECT), "unknown challenge"),
        (("--challenge", "big5", *EFFECT, "--unpaired"), "are pairs in any case"),
        (("--challenge", "big5", *EFFECT, "--param", "itertions=3"), "itertions"),
        (("--resume", "x"), "there is no search 'x' in"),
        (("--resume", "x", "--forks", "5"), "with a search as it was begun: --forks cannot change it"),
    ],
)
def test_what_makes_no_search_is_refused_before_anything_starts(
    arguments: tuple[str, ...], words: str, home: Path
) -> None:
    assert words in refused(*arguments).message
    assert not list(home.glob("minimize/*"))


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
    assert not list(home.glob("minimize/*"))


def test_all_variants_of_a_file_are_measured_when_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "variants.yml"
    file.write_text("mine: {extends: es}\nother: {extends: es}\n")
    words = ("--challenge", "big5", "--variants", str(file), "--effect")
    assert "mine, other" in str(refused(*words, "range slower on os than on es"))
    assert "about one variant" in refused(*words, "range slower than fresh").message


@pytest.mark.usefixtures("maven")
def test_a_search_whose_time_was_up_says_so_and_how_to_go_on(home: Path) -> None:
    folder = finished(home, found=False)
    record = msgspec.structs.replace(folder.load(), status="interrupted", decisions=())

    def searched(*_: object) -> MinimizeRecord:
        return record

    folder.save(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchctl.search.commands.minimize._searched", searched)
        patch.setattr("benchctl.search.commands.minimize._announce", lambda *_: None)
        error = call("--resume", "latest").exception
    assert isinstance(error, BenchctlError)
    assert error.exit_code == ExitCode.INCONCLUSIVE
    assert "the time was up" in error.message
    assert f"--resume {record.id}" in error.hint


def test_challenges_that_make_their_own_data_cannot_lose_tasks() -> None:
    plan = msgspec.structs.replace(planned(), origin="empty")
    with pytest.raises(UsageError, match="makes its own data"):
        check_search(plan, load_track("big5", {})[0], SPEC)


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


def finished(home: Path, *, found: bool = True) -> MinimizeFolder:
    plan = planned()
    begun = Decision(
        number=1,
        phase="whole",
        short=False,
        steps=(0, 1),
        tasks=("desc_sort_timestamp", "composite-date_histogram-daily"),
        verdict="present" if found else "undecided",
        contender=(5.0,) * 5,
        reference=(9.0,) * 5,
        effect_percent=-44.0,
        low_percent=-45.0,
        high_percent=-43.0,
    )
    smallest = msgspec.structs.replace(plan.schedules[0], name="big5rangedebug-minimal-range")
    record = MinimizeRecord(
        id="20260101-a",
        created="",
        status="complete",
        spec=SPEC,
        plan=plan,
        decisions=(begun,),
        found=smallest if found else None,
        minimal=True,
        stopped="" if found else "the effect is not confirmed",
    )
    folder = MinimizeFolder(home / "minimize" / record.id)
    folder.save(record)
    return folder


def loaded(path: Path) -> Challenge:
    return load_challenge(str(path), load_track("big5", {})[0], {})[0]


def test_a_finished_search_is_printed_again_and_its_challenge_loads(home: Path, tmp_path: Path) -> None:
    folder = finished(home)
    done = call("--resume", "latest")
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
    other = tmp_path / "mine.json"
    assert call("--resume", "2026", "--output", str(other)).exit_code == 0
    assert loaded(other).name == "big5rangedebug-minimal-range"
    assert loaded(tmp_path / "mine-alone.json").name == "big5rangedebug-minimal-range-alone"


def test_programs_get_the_decisions_the_files_and_the_command_to_run_them(home: Path) -> None:
    finished(home)
    document = json.loads(call("--resume", "latest", "--format", "json").stdout)
    assert document["search"]["decisions"][0]["verdict"] == "present"
    found, alone = document["files"]
    command = document["commands"]["To see it again"]
    assert command.startswith(f"benchctl run --challenge {found} --challenge {alone} --variant es")
    # Counts are in the files.
    assert "--param" not in command


def test_searches_are_listed_and_a_broken_one_is_passed_over_with_a_word(home: Path) -> None:
    asked = ["list", "searches", "--format", "json"]
    assert json.loads(CliRunner().invoke(root, asked).stdout) == []
    assert not (home / "minimize").exists()
    finished(home)
    folder = finished(home, found=False)
    broken = MinimizeFolder(home / "minimize" / "20260102-b")
    broken.path.mkdir()
    broken.record_path.write_text("{")
    done = CliRunner().invoke(root, asked)
    (row,) = json.loads(done.stdout)
    assert row["search"] == folder.path.name
    assert (row["effect"], row["questions"], row["found"]) == ("range slower than fresh", 1, None)
    assert str(broken.record_path) in done.stderr


def test_a_file_that_cannot_be_written_is_said_in_words(home: Path, tmp_path: Path) -> None:
    finished(home)
    (tmp_path / "file").touch()
    (tmp_path / "y-alone.json").touch()
    for name, words in (
        ("nowhere/x.json", "not a file in a folder"),
        ("file/x.json", "not a file in a folder"),
        ("", "not a file in a folder"),
        ("file", "is there already"),
        ("y.json", "y-alone.json is there already"),
    ):
        error = call("--challenge", "nosuch", *EFFECT, "--output", name and str(tmp_path / name)).exception
        assert isinstance(error, UsageError)
        assert words in error.message
    error = call("--resume", "latest", "--output", str(tmp_path / f"{'x' * 300}.json")).exception
    assert isinstance(error, BenchctlError)
    assert "cannot write" in error.message


def test_an_effect_that_is_not_confirmed_is_inconclusive(home: Path) -> None:
    finished(home, found=False)
    done = call("--resume", "latest")
    assert "is not confirmed" in done.stdout
    assert isinstance(done.exception, BenchctlError)
    assert done.exception.exit_code == ExitCode.INCONCLUSIVE
