"""What every test may rely on, however pytest was started."""

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Every run draws other examples; `--hypothesis-profile thorough` draws many at once. What takes how long is
# not for a test to say on a machine that may be busy.
settings.register_profile("usual", max_examples=40, deadline=None)
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


@pytest.fixture
def no_gc_callbacks() -> Iterator[None]:
    """Hypothesis clocks the collector in a callback, where what a signal raises is lost."""
    kept = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks.extend(kept)
