"""What every test may rely on, however pytest was started."""

import signal
from pathlib import Path

import pytest

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
