"""How processes share the tests: real nodes in lanes of their own, everything else wherever a CPU is free."""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

INTEGRATION = PurePosixPath("tests/integration")
# These start nodes or browsers, and measure nothing by the command line: they meet nobody at the host's lock.
WITHOUT_LOCK = frozenset(
    {
        "test_index", "test_nightly_pages", "test_nodes", "test_operations", "test_page", "test_patched_jar",
        "test_resuming",
    }
)  # fmt: skip


def lane(nodeid: str) -> str:
    """Tests of one lane run one after the other in one process, and so in one home and its indices."""
    module = PurePosixPath(nodeid.partition("::")[0])
    if INTEGRATION not in module.parents:
        return nodeid
    return "nodes" if module.stem in WITHOUT_LOCK else "measuring"


def scheduler_of_lanes() -> "type[LoadScopeScheduling]":
    """The scheduler, made here because a test run without workers needs no pytest-xdist.

    The largest lanes are handed out first. Marks (`--dist loadgroup`) would do the same, but pytest 9.2 does
    not let pytest-xdist 3.8 see them.
    """
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - as above

    class Lanes(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return lane(nodeid)

    return Lanes
