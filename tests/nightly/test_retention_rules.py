from pathlib import Path

import msgspec
import pytest

from benchctl.home import Home
from benchctl.nightly.folder import SuiteFolder
from benchctl.nightly.model import Alarm, NightRecord, Raised
from benchctl.nightly.retention import Retention, apply_retention
from benchctl.results.model import BootRecord
from benchctl.results.reading import fork_sources
from benchctl.results.store import RunFolder, RunStore
from benchctl.stats.analyse import analyse_run
from night_records import KEY, night
from stored import StoredRun, stored

BOOT = BootRecord((0,), 1.0, 1.0, 1.0, 1, 1, (), "boots/000-es/boot-0")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def measured(home: Home, number: int, **fields: object) -> NightRecord:
    """A night with a run of samples and logs."""
    record = night(number, run=f"r{number}", runs=(f"r{number}",))
    record = msgspec.structs.replace(record, **fields)
    with_raw(home, f"r{number}", "nightly", "big5", record.id)
    return record


def with_raw(home: Home, name: str, *tags: str) -> StoredRun:
    run = stored(home.runs, name)
    for folder in ("boots/000-es/boot-0",):
        (run.folder.path / folder).mkdir(parents=True)
        (run.folder.path / folder / "file").write_bytes(b"x" * 2**20)
    forks = tuple(msgspec.structs.replace(fork, boots=(BOOT,)) for fork in run.record.forks)
    run.folder.save(msgspec.structs.replace(run.record, tags=tags, forks=forks))
    return run


def applied(home: Home, nights: list[NightRecord], *alarms: Alarm, **keep: object) -> list[str]:
    rules = msgspec.convert({"raw-nights": 2, "engine-nights": None} | keep, Retention)
    folder, store = SuiteFolder(home.nightly / "big5"), RunStore(home.runs)
    return apply_retention(folder, nights, store, home, rules, alarms)


def raw(home: Home) -> list[str]:
    """Runs that still have some, all kinds of it or none."""
    kinds = ("forks", "boots")
    found = {path.name: {kind for kind in kinds if (path / kind).exists()} for path in home.runs.iterdir()}
    assert all(len(there) in {0, len(kinds)} for there in found.values())
    return sorted(name for name, there in found.items() if there)


def test_samples_and_logs_of_old_nights_go_and_the_rest_stays(home: Home):
    nights = [measured(home, number) for number in (1, 2, 3, 4)]
    told = applied(home, nights)
    assert raw(home) == ["r3", "r4"]
    assert [text.split(", 1.0 MiB")[0] for text in told] == [
        f"samples and logs of night {night(number).id}, run r{number}, removed" for number in (1, 2)
    ]
    record = RunFolder(home.runs / "r1").load()
    before = RunFolder(home.runs / "r4").load()
    assert [fork.summaries for fork in record.forks] == [fork.summaries for fork in before.forks]
    for fork in record.forks:
        assert (fork.samples, fork.boots[0].logs) == (None, "")
    assert applied(home, nights) == []


def test_the_record_of_a_stripped_run_is_read_and_analysed_as_before(home: Home):
    nights = [measured(home, number) for number in (1, 2)]
    rows = analyse_run(RunFolder(home.runs / "r1").load()).rows
    applied(home, nights, **{"raw-nights": 1})
    folder = RunFolder(home.runs / "r1")
    assert analyse_run(folder.load()).rows == rows
    sources = list(fork_sources(folder, folder.load().forks))
    assert {source.absent for source in sources} == {"no samples were kept"}


def test_nights_that_an_open_alarm_is_about_keep_everything(home: Home):
    nights = [measured(home, number) for number in range(1, 8)]
    ids = [one.id for one in nights]
    raised = Raised(1, "", ids[3], "figure", "slower", KEY, since=ids[2], last_good=ids[1])
    applied(home, nights, Alarm(raised))
    assert raw(home) == ["r2", "r3", "r4", "r6", "r7"]
    applied(home, nights, Alarm(raised, "acknowledged"))
    assert raw(home) == ["r6", "r7"]


def test_confirming_runs_and_those_of_nights_that_were_cut_off_go_too(home: Home):
    cut_off = night(1, status="discarded")
    with_raw(home, "cut-off", "nightly", "big5", cut_off.id)
    nights = [cut_off, *(measured(home, number) for number in (2, 3, 4))]
    with_raw(home, "confirming", "nightly", "big5", nights[1].id, "confirm")
    applied(home, nights)
    assert raw(home) == ["r3", "r4"]


def test_runs_that_are_no_night_s_stay(home: Home):
    nights = [measured(home, number) for number in (1, 2, 3)]
    with_raw(home, "mine", "big5", nights[0].id)
    with_raw(home, "other-suite", "nightly", "other", nights[0].id)
    applied(home, nights)
    assert raw(home) == ["mine", "other-suite", "r2", "r3"]


def test_a_run_that_cannot_be_read_stays_and_is_told(home: Home):
    nights = [measured(home, number) for number in (1, 2, 3, 4)]
    path = home.runs / "r1" / "run.json"
    path.write_text(path.read_text().replace('"record-version": ', '"record-version": 9'))
    (text, _) = applied(home, nights)
    assert text.startswith("run r1 stays as it is: ")
    assert raw(home) == ["r1", "r3", "r4"]


def test_what_was_cut_off_as_it_removed_is_removed_in_the_next_night(home: Home):
    nights = [measured(home, number) for number in (1, 2, 3)]
    applied(home, nights)
    (home.runs / "r1" / "boots").mkdir()
    assert len(applied(home, nights)) == 1
    assert raw(home) == ["r2", "r3"]


def test_a_disk_that_refuses_is_told(home: Home, monkeypatch: pytest.MonkeyPatch):
    nights = [measured(home, number) for number in (1, 2, 3)]

    def refuse(path: Path) -> None:
        raise OSError(30, "Read-only file system", path)

    monkeypatch.setattr("shutil.rmtree", refuse)
    told = applied(home, nights)
    assert told == [
        f"run r1 stays as it is: cannot remove {home.runs / 'r1' / 'forks'}: Read-only file system"
    ]
