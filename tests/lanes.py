"""How processes share the tests: modules with real nodes as a whole, everything else test by test."""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

INTEGRATION = PurePosixPath("tests/integration")


def lane(nodeid: str) -> str:
    """Tests of one lane run one after the other in one process, and so on what their module made."""
    module = PurePosixPath(nodeid.partition("::")[0])
    return str(module) if INTEGRATION in module.parents else nodeid


def scheduler_of_lanes() -> "type[LoadScopeScheduling]":
    """The scheduler, made here because a test run without workers needs no pytest-xdist.

    Modules with many tests are handed out first, and what is quick comes last and fills the gaps. Marks
    (`--dist loadgroup`) would do the same, but pytest 9.2 does not let pytest-xdist 3.8 see them.
    """
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - as above

    class Lanes(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return lane(nodeid)

    return Lanes
