"""The hooks of nightly suites that the core calls."""

from collections.abc import Callable, Iterable, Iterator

from benchctl.home import Home
from benchctl.nightly.folder import COLUMNS, SuiteFolder, suites
from benchctl.nightly.model import MESSAGE_VERSION, Message
from benchctl.results.sql import FileView

schemas = {"message": (Message, "schema-version", MESSAGE_VERSION)}


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Return the runs that nights refer to."""
    for suite in suites(home):
        for night in suite.nights(unread):
            for run in filter(None, (night.run, *night.runs)):
                yield run, f"night {night.id} of {suite.root.name}"


def sql_view(home: Home) -> FileView:
    """Return the figures of all nights."""
    return nights_view(lambda: suites(home))


def nights_view(found: Callable[[], Iterable[SuiteFolder]]) -> FileView:
    """Return the view of the figures of the nights of suites, which are read on use."""
    return FileView(
        "nights",
        "one row a fork, task and metric of every night of every suite; read as the query asks",
        {"suite": ("VARCHAR", "name of the suite")},
        COLUMNS,
        lambda: [(str(path.absolute()), one.root.name) for one in found() for path in one.figure_files()],
    )
