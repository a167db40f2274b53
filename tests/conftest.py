"""What every test may rely on, however pytest was started."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from file_server import FileServer, serving_files

INTEGRATION = Path(__file__).parent / "integration"
# Every process collects all tests first, which takes it some seconds.
MOST_WORKERS = 8

# Every run draws other examples; `--hypothesis-profile thorough` draws many at once. What takes how long is
# not for a test to say on a machine that may be busy.
settings.register_profile("usual", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile("usual")

# A shell ignores SIGINT and SIGQUIT in what it starts in the background, and children inherit that: tests of
# Ctrl-C would wait for ever in a nightly job.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("calibration of the statistics")
    group.addoption("--repetitions", type=int, default=2000, help="of every cell (default: 2000)")
    group.addoption(
        "--calibration-table", type=Path, metavar="FILE", help="write what was measured, as Markdown"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """How many processes share the tests: one a CPU, and none beside this one for files and single tests."""
    named = any(".py" in argument for argument in config.args)
    return 0 if named else min(len(os.sched_getaffinity(0)), MOST_WORKERS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the modules that take longest, real nodes: what is quick comes last, and fills the gaps."""
    items.sort(key=lambda item: INTEGRATION not in item.path.parents)


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
