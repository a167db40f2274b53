"""What every test may rely on, however pytest was started."""

import gc
import os
import re
import signal
import sys
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

import golden
import guardian
from benchctl.engine.maven import REPOSITORY_VARIABLE
from benchctl.engine.variant import BUILT_IN_VERSIONS
from benchctl.lock import SHARE_VARIABLE
from file_server import FileServer, Served, serving_files
from stats.processes import Table

IS_ROOT = os.geteuid() == 0
INTEGRATION = Path(__file__).parent / "integration"
_GUARDIAN = pytest.StashKey["subprocess.Popen[bytes]"]()
# Whoever has the engines starts nodes of them.
ENGINES_FIXTURE = "installations"
# Another user to be, a cgroup of one's own.
ROOT_FIXTURES = {"nobody", "small_group"}
# Every process collects all tests first, which takes it some seconds.
MOST_WORKERS = 8
# Modules that take more than ten seconds, the slowest first; of nodes, and of others.
SLOWEST = (
    "test_run", "test_shipped_experiments", "test_big5",
    "test_versions", "test_micro", "test_nightly", "test_evidence", "test_variants", "test_foreign",
    "test_building", "test_nodes", "test_target", "test_load", "test_index",
    "test_experiment", "test_machine", "test_programs", "test_cut_off", "test_night", "test_calibration",
    "test_conduct", "test_steady_calibration",
)  # fmt: skip
# Of nodes, those that ask the index that most of them ask.
SAME_INDEX = {
    "test_evidence", "test_experiment", "test_hosts", "test_load", "test_machine",
    "test_nightly", "test_redline", "test_run",
}  # fmt: skip

# Every run draws other examples; `--hypothesis-profile thorough` draws many at once. The machine may
# be busy: there is no deadline.
settings.register_profile("default-benchctl", max_examples=10, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile("default-benchctl")

# Whoever runs the tests, or another process of theirs, may be measuring something.
os.environ[SHARE_VARIABLE] = "1"

# A shell ignores SIGINT and SIGQUIT in what it starts in the background, `nohup` SIGHUP, and children inherit
# that: tests of Ctrl-C and of closed terminals would wait for ever in a nightly job.
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def usual_signals() -> None:
    """What a test calls may leave a handler that is deaf to the next test's interrupt, or ends them all."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-goldens", action="store_true", help="write tests/golden anew")
    group = parser.getgroup("calibration of the statistics")
    group.addoption("--repetitions", type=int, default=200, help="of every cell (default: 200)")
    group.addoption(
        "--calibration-table", type=Path, metavar="FILE", help="write what was measured, as Markdown"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """How many processes share the tests: one a CPU, and none beside this one for files and single tests."""
    named = any(".py" in argument for argument in config.args)
    return 0 if named else min(len(os.sched_getaffinity(0)), MOST_WORKERS)


class _SameIndexScheduling(LoadFileScheduling):
    """Modules that ask the same index go to the same process, which prepares it once."""

    def _split_scope(self, nodeid: str) -> str:
        path = Path(nodeid.partition("::")[0])
        same = path.parent.name == INTEGRATION.name and path.stem in SAME_INDEX
        return "the same index" if same else str(path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Where there are but two processes, the other one has enough to do."""
    if config.getoption("dist") != "loadfile" or len(config.getoption("tx")) > 2:
        return None
    return _SameIndexScheduling(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Start what outlives an interrupted suite, and compile everything once."""
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        os.environ[guardian.MARK_VARIABLE] = mark = uuid.uuid4().hex
        config.stash[_GUARDIAN] = guardian.start(mark)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the suite as Ctrl-C does
    _share_bytecode(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let the guardian end what a test has left."""
    guard = config.stash.get(_GUARDIAN, None)
    if guard is not None:
        assert guard.stdin is not None
        os.environ[guardian.MARK_VARIABLE] = ""
        guard.stdin.close()
        guard.wait()


def _share_bytecode(config: pytest.Config) -> None:
    """Compile benchctl and its tests once where no bytecode is to be written beside sources.

    Else every process would do that anew, hundreds of commands and workers among them: half a second each.
    """
    if sys.dont_write_bytecode and (cache := getattr(config, "cache", None)) is not None:
        sys.pycache_prefix, sys.dont_write_bytecode = str(cache.mkdir("bytecode")), False
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_report_header() -> str | None:
    """Report which tests an ordinary user cannot run."""
    return None if IS_ROOT else "tests marked root are deselected: they need root (pytest -m root, as root)"


def _is_wanted(item: pytest.Item, config: pytest.Config) -> bool:
    """Check the marks that decide by default: `full` waits to be asked for, `root` for root.

    Whoever names a single test (`FILE::TEST`) or the mark in `-m` asks for it.
    """
    if item.get_closest_marker("root") and not IS_ROOT:
        return False
    by_mark = re.search(r"(?<!not )\b(full|root)\b", config.option.markexpr)
    is_asked_for = by_mark is not None or any("::" in argument for argument in config.args)
    return is_asked_for or item.get_closest_marker("full") is None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what starts real nodes, deselect, and begin with what takes longest."""
    for item in items:
        if ENGINES_FIXTURE in getattr(item, "fixturenames", ()):
            item.add_marker("nodes")
        if ROOT_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("root")
    deselected = [item for item in items if not _is_wanted(item, config)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if _is_wanted(item, config)]
    places = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(
        key=lambda item: (INTEGRATION not in item.path.parents, places.get(item.path.stem, len(places)))
    )


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> golden.Cases:
    """Compare inputs and what becomes of them with a file in `cases`."""
    return partial(golden.agree_cases, request)


@pytest.fixture
def no_gc_callbacks() -> Iterator[None]:
    """Hypothesis clocks the collector in a callback, where what a signal raises is lost."""
    kept = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks.extend(kept)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A web server to fetch files from."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving_files() as server:
        yield server


@pytest.fixture
def maven(files: FileServer, monkeypatch: pytest.MonkeyPatch) -> FileServer:
    """A repository with empty archives of `es` and `os`."""
    monkeypatch.setenv(REPOSITORY_VARIABLE, files.url)
    for name, version in BUILT_IN_VERSIONS.items():
        place = f"/org/{name}/distribution/integ-test-zip/{name}/{version}/{name}-{version}.zip"
        files.files[place] = Served(b"")
    return files


@pytest.fixture(scope="session")
def calibration(request: pytest.FixtureRequest) -> Iterator[Table]:
    """What the calibration measures, written at the end where `--calibration-table` says so."""
    table = Table(request.config.getoption("repetitions"))
    yield table
    path = request.config.getoption("calibration_table")
    if path is not None:
        table.write(path)
