"""A home that holds everything that commands read."""

import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from benchctl.engine.maven import REPOSITORY_VARIABLE
from benchctl.experiment.record import ExperimentFolder
from benchctl.home import Home
from benchctl.results.model import OtherLoad, RunRecord
from benchctl.results.store import RunStore
from builders import ES, make_record
from cli.test_runs import earlier
from drawn import draw_run
from evidence.commands.test_inlining import logged
from evidence.commands.test_listing import evident
from evidence.commands.test_profile import profiled
from experiment.test_report import blog, runs_of
from experiment_files import write as write_experiment
from file_server import Served, serving_files
from foreign_tracks import BOOKS, write_files
from made_experiment import comparison, made_record
from nightly.laboratory import SLOW_FLAG, World
from redlines import make_point, redline_fork, redline_plan
from report.conftest import CALIBRATION, cold, complete_record, difficult, driven
from sweeps import swept_record

ENVIRONMENT: Final = {
    "COLUMNS": "110",
    "LINES": "24",
    "TZ": "UTC",
    "NO_PROXY": "127.0.0.1",
}
ENGINES: Final = {"elasticsearch": "8.11.0", "opensearch": "2.11.0"}
DRIVEN: Final[dict[str, Any]] = {"edit": driven, "calibration": CALIBRATION}
MADE: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "cold": {"edit": cold},
    "difficult": {"edit": difficult},
    "three-forks": {"forks": 3},
    "one-fork": {"forks": 1},
    "three-variants": {"variants": ("es", "os", "noinline")},
    "one-variant": {"variants": ("es",)},
    "driver": DRIVEN,
    "driver-one-variant": {**DRIVEN, "variants": ("es",)},
}


def fill(top: Path, home: Home) -> None:
    """Everything that a command can read."""
    store = RunStore(home.runs)

    def keep(run_id: str, record: RunRecord) -> None:
        store.create(run_id).save(msgspec.structs.replace(record, id=run_id))

    for name, options in MADE.items():
        keep(name, complete_record(**options))
    others = OtherLoad(2, 0.7, {"java pid 4711": 0.4, "rsync pid 4802": 0.2}, 1.3)
    busy = complete_record()
    forks = tuple(msgspec.structs.replace(fork, others=others) for fork in busy.forks)
    keep("busy", msgspec.structs.replace(busy, forks=forks))
    # One that is running is kept while anything is measured on this host.
    keep("earlier", msgspec.structs.replace(earlier(), status="complete"))
    points = [make_point(155, 30.0), make_point(160, 60.0, verdict="fail", step=2)]
    forks = [
        redline_fork(name, block, rate + block, points)
        for name, rate in (("es", 100.0), ("os", 80.0))
        for block in range(3)
    ]
    keep("redline", make_record(status="complete", plan=redline_plan(), forks=tuple(forks)))
    draw_run(store, "20260101-000000-c-aaaa")
    draw_run(store, "20260102-000000-c-bbbb", forks=3)
    for make in (evident, profiled, logged):
        make(home.runs)
    for run in runs_of("fresh", "after", "noinline").values():
        keep(run.id, run)
    stopped = blog(
        id="20260101-000000-inlining-efgh", status="interrupted", runs={"fresh": "20260101-000000-fresh"}
    )
    engines = [comparison("engines", "fresh/es/range", "fresh/os/range")]
    small = made_record(engines, measurements=("fresh",), id="20260101-000000-inlining-ijkl")
    for experiment in (blog(), stopped, small):
        (home.experiments / experiment.id).mkdir()
        ExperimentFolder(home.experiments / experiment.id).save(experiment)
    world = World(top)
    for flags in ("", "", SLOW_FLAG):
        world.night(flags=flags)
    write_files(top / "books", BOOKS)
    write_experiment(top, name="experiment.yml")
    keep("sweep", swept_record())
    keep("sweep-heap", swept_record(sweep=("heap=512m,1g",), variants=(ES,)))


@contextmanager
def full_home() -> Iterator[Path]:
    """A full home and a bare one, and what commands name with them; nothing else of this host is seen."""
    top = Path("/var/tmp") / f"goldens{secrets.token_hex(4)}"  # noqa: S108 - as long a path for everybody
    top.mkdir(mode=0o755)
    with pytest.MonkeyPatch.context() as patch, serving_files() as files:
        for variable, value in ENVIRONMENT.items():
            patch.setenv(variable, value)
        for variable in ("BENCHCTL_HOME", "HOME", "XDG_CONFIG_HOME"):
            patch.setenv(variable, str(top / "home"))
        patch.delenv("FORCE_COLOR", raising=False)
        patch.setenv("PATH", str(top / "bin"))
        patch.setenv(REPOSITORY_VARIABLE, files.url)
        for name, version in ENGINES.items():
            place = f"/org/{name}/distribution/integ-test-zip/{name}/{version}/{name}-{version}.zip"
            files.files[place] = Served(b"")
        time.tzset()
        try:
            fill(top, Home(top / "home"))
            yield top
        finally:
            shutil.rmtree(top)
    time.tzset()
