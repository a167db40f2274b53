"""Getting everything that an index holds into one Lucene commit, on a node that indexes nothing just then."""

import time

from benchctl.engine.client import SearchClient
from benchctl.errors import BenchctlError

SETTLE_TIMEOUT_S = 60.0
SETTLE_PAUSE_S = 0.1


def settle(client: SearchClient, name: str) -> None:
    """Commit until the last commit is the only one and the translog is empty.

    With an asynchronous translog the engine keeps older commits, their segments and gigabytes of translog
    until it knows that everything before them is on disk; whoever copies the data would copy all of that.

    Args:
        client: of the node.
        name: of the index, or of several.

    Raises:
        BenchctlError: it does not come to that.
    """
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while True:
        client.flush(name)
        # Segments that were merged away stay open until the next refresh.
        client.refresh(name)
        left = client.translog_operations(name)
        if left == 0:
            return
        if time.monotonic() > deadline:
            raise BenchctlError(
                f"the translog still holds {left:,} operations after {SETTLE_TIMEOUT_S:.0f} s"
            )
        time.sleep(SETTLE_PAUSE_S)
