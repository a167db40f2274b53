"""The hooks of nightly suites that the core calls."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.nightly.folder import COLUMNS, SuiteFolder, suites
from benchctl.nightly.model import CUT_OFF, MESSAGE_VERSION, Message
from benchctl.results.sql import FileView

if TYPE_CHECKING:
    from benchctl.cli.resume import Whole

schemas = {"message": (Message, "schema-version", MESSAGE_VERSION)}


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Return the runs that nights refer to."""
    for suite in suites(home):
        for night in suite.nights(unread):
            for run in filter(None, (night.run, *night.runs)):
                yield run, f"night {night.id} of {suite.root.name}"


def whole(home: Home, name: str, tags: Collection[str]) -> "Whole | None":
    """Return the night of that id, or the one that was cut off and that a run with such tags is of."""
    names = {name} if name else set(tags)
    for suite in suites(home):
        for one in names if name or suite.root.name in names else ():
            if "/" in one or not one.strip(".") or not suite.night_path(one).is_dir():
                continue
            # The commands load all that measures, which whoever only deletes runs need not wait for.
            from benchctl.nightly.commands.run import BegunNight  # noqa: PLC0415 - see above

            night = BegunNight(suite, one)
            if name or _cut_off(suite, one):
                return night
    return None


def _cut_off(suite: SuiteFolder, night_id: str) -> bool:
    try:
        return suite.load(night_id).status in CUT_OFF
    except BenchctlError:
        return False


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
