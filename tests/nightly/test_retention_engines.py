import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from benchctl.engine.distribution import Installation
from benchctl.engine.launch import starts_of
from benchctl.home import Home
from benchctl.nightly.folder import SuiteFolder
from benchctl.nightly.model import Alarm, NightRecord, NightVariant, Raised
from benchctl.nightly.retention import Leftovers, program_in_use
from benchctl.results.model import EngineFacts, IndexFacts, IngestReport
from benchctl.results.store import RunFolder, RunStore
from builders import make_record
from night_records import KEY, night, variant

BEGAN_S = datetime.fromisoformat(night(1).started).timestamp()
INGEST = IngestReport(1, 1, 1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)


class House:
    """A home with engines, indices and runs that used them."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.store = RunStore(self.home.runs)
        self.folder = SuiteFolder(self.home.nightly / "big5")
        self.busy: list[Path] = []

    def fetched(self, build: str, *, made_s: float = BEGAN_S + 60) -> None:
        """An engine with its archive and two builds of its index."""
        folders = {
            self.home.engines / f"elasticsearch-{build}": {"archive_sha256": f"sha-{build}"},
            self.home.indices / f"elasticsearch-{build}": {"key": f"index-{build}"},
            self.home.indices / f"elasticsearch-{build}-build-1": {"key": f"index-{build}-1"},
        }
        for folder, manifest in folders.items():
            (folder / "data").mkdir(parents=True)
            (folder / "data" / "file").write_bytes(b"x" * 100)
            (folder / "manifest.json").write_text(json.dumps(manifest | {"more": 1}))
            os.utime(folder / "manifest.json", (made_s, made_s))
        archive = self.home.artifacts / f"elasticsearch-{build}.zip"
        archive.write_bytes(b"zip")
        record = archive.with_name(f"{archive.name}.json")
        record.write_text(json.dumps({"sha256": f"sha-{build}", "size_bytes": 3}))
        os.utime(record, (made_s, made_s))

    def used(self, name: str, build: str, *tags: str) -> None:
        """A run that used all of it."""
        facts = EngineFacts("es", "8.11.0", build, "9.8.0", f"sha-{build}", "Temurin 21", (), ())
        indices = [IndexFacts(key, 1, 1, (), INGEST) for key in (f"index-{build}", f"index-{build}-1")]
        RunFolder(self.home.runs / name).save(
            make_record(
                name, tags=tags, engines=(facts,), indices={"es": indices[0]}, builds={"es": tuple(indices)}
            )
        )

    def night(self, number: int, build: str, *, suite: str = "big5") -> NightRecord:
        """A night that measured it."""
        record = night(number, suite=suite, run=f"{suite}-{number}", variants=(of_build(build),))
        self.used(record.run, build, "nightly", suite, record.id)
        return record

    def nights(self, *builds: str) -> list[NightRecord]:
        return [self.night(number, build) for number, build in enumerate(builds, 1)]

    def remove(self, nights: list[NightRecord], *alarms: Alarm, keep: int = 1) -> list[str]:
        leftovers = Leftovers(self.folder, self.home, self.store, keep, lambda path: path in self.busy)
        return sorted(leftovers.remove(nights, alarms))

    @property
    def there(self) -> dict[str, int]:
        """build -> how many of its four things are there."""
        folders = [*self.home.engines.iterdir(), *self.home.indices.iterdir()]
        names = [path.name for path in [*folders, *self.home.artifacts.glob("*.zip")]]
        builds = [name.removeprefix("elasticsearch-").removesuffix(".zip").split("-")[0] for name in names]
        return {build: builds.count(build) for build in sorted(set(builds))}


def of_build(build: str, label: str = "es") -> NightVariant:
    return msgspec.structs.replace(variant(label, build=build), index_key=f"index-{build}")


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path / "home")
    for build in ("b1", "b2", "b3", "b4"):
        house.fetched(build)
    return house


def test_what_only_old_nights_used_goes_but_for_the_engine_before_the_last(house: House):
    told = house.remove(house.nights("b1", "b2", "b3", "b4"))
    assert house.there == {"b3": 4, "b4": 4}
    assert [text.split(" removed")[0] for text in told] == [
        "elasticsearch-b1",
        "elasticsearch-b1",
        "elasticsearch-b1-build-1",
        "elasticsearch-b1.zip",
        "elasticsearch-b2",
        "elasticsearch-b2",
        "elasticsearch-b2-build-1",
        "elasticsearch-b2.zip",
    ]
    assert not list(house.home.artifacts.glob("*b1*"))
    assert not list(house.home.scratch.iterdir())


def test_what_was_learnt_of_an_old_engine_s_starts_goes_with_it(house: House):
    nights = house.nights("b1", "b2", "b3", "b4")
    learnt = {}
    for build in ("b1", "b4"):
        root = house.home.engines / f"elasticsearch-{build}"
        learnt[build] = starts_of(
            house.home, Installation("elasticsearch", build, root, f"sha-{build}", (), "9.8.0")
        ).folder
    house.remove(nights)
    assert [build for build, folder in learnt.items() if folder.exists()] == ["b4"]


def test_nights_of_open_alarms_keep_theirs(house: House):
    nights = house.nights("b1", "b2", "b3", "b4")
    raised = Raised(1, "", nights[1].id, "figure", "slower", KEY, since=nights[1].id, last_good=nights[0].id)
    assert house.remove(nights, Alarm(raised)) == []
    house.remove(nights, Alarm(raised, "recovered"))
    assert house.there == {"b3": 4, "b4": 4}


def test_what_a_user_s_own_run_used_stays(house: House):
    nights = house.nights("b1", "b2", "b3", "b4")
    house.used("mine", "b1")
    house.used("tagged", "b2", "nightly", "mine")
    assert house.remove(nights) == []


def test_what_was_there_before_the_nights_stays(house: House):
    house.fetched("b0", made_s=BEGAN_S - 60)
    house.remove(house.nights("b0", "b2", "b3", "b4"))
    assert house.there == {"b0": 4, "b1": 4, "b3": 4, "b4": 4}


def test_another_suite_s_newest_nights_keep_theirs_and_its_old_ones_do_not(house: House):
    other = SuiteFolder(house.home.nightly / "other")
    for number, build in enumerate(["b1", "b2", "b4", "b4"], 1):
        record = house.night(number, build, suite="other")
        other.night_path(record.id).mkdir(parents=True)
        other.save(record)
    house.remove(house.nights("b1", "b2", "b3", "b4"))
    # The other suite's engine before its last one is b2; b1 is neither's any more.
    assert house.there == {"b2": 4, "b3": 4, "b4": 4}


def test_a_night_whose_run_is_gone_keeps_what_it_says_itself(house: House):
    nights = house.nights("b1", "b2", "b3", "b4")
    nights[3] = msgspec.structs.replace(nights[3], variants=(*nights[3].variants, of_build("b1", "es-old")))
    (house.home.runs / nights[3].run / "run.json").unlink()
    house.remove(nights)
    # What a run alone knows are further builds of an index.
    assert house.there == {"b1": 3, "b3": 4, "b4": 4}


def test_nothing_goes_while_a_run_cannot_be_read(house: House):
    nights = house.nights("b1", "b2", "b3", "b4")
    (house.home.runs / "damaged").mkdir()
    (house.home.runs / "damaged" / "run.json").write_text('{"tags": 3}')
    (text,) = house.remove(nights)
    assert text.startswith(
        "engines and indices of old nights stay: what uses them is not known: cannot read "
    )
    assert house.there == {"b1": 4, "b2": 4, "b3": 4, "b4": 4}


def test_what_a_process_runs_from_stays(house: House):
    house.busy.append(house.home.engines / "elasticsearch-b1")
    house.remove(house.nights("b1", "b2", "b3", "b4"))
    assert house.there == {"b1": 1, "b3": 4, "b4": 4}


def test_what_is_half_done_or_damaged_is_left_alone(house: House):
    (house.home.engines / "half").mkdir()
    (house.home.indices / "damaged").mkdir()
    (house.home.indices / "damaged" / "manifest.json").write_text("rubbish")
    (house.home.indices / "foreign").mkdir()
    (house.home.indices / "foreign" / "manifest.json").write_text("{}")
    house.remove(house.nights("b1", "b2", "b3", "b4"))
    assert {"half", "damaged", "foreign"} <= house.there.keys()


def test_a_process_is_known_by_what_it_was_started_with(tmp_path: Path):
    engine = tmp_path / "engine"
    wait = [sys.executable, "-c", "input()", f"--home={engine}/lib"]
    with subprocess.Popen(wait, stdin=subprocess.PIPE) as process:
        assert program_in_use(engine)
        assert not program_in_use(tmp_path / "eng")
        process.kill()
    assert not program_in_use(engine)
