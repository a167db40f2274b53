"""A cluster that runs already, with the face of a node that benchctl started; nothing on it is changed."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchctl.endpoint import Endpoint
from benchctl.engine.client import SearchClient, connect
from benchctl.engine.cluster import ClusterFacts, cpu_used_ms, describe_cluster, node_starts, searches_run
from benchctl.engine.refusals import explained
from benchctl.engine.wires import NodeRequestError
from benchctl.errors import BenchctlError

RESTART_TIMEOUT_S = 300.0
POLL_S = 0.1
# A node looks at its own CPU clock once a second.
IDLE_WINDOW_S = 1.2
IDLE_CORES = 0.25
MAX_IDLE_WAIT_S = 10.0
_TAIL_LENGTH = 400


@dataclass(frozen=True)
class Address:
    """Which cluster is meant.

    Attributes:
        name: what the user calls it.
        endpoint: where it is.
    """

    name: str
    endpoint: Endpoint


class Target:
    """A cluster in use; `attach` makes one.

    Attributes:
        client: for everything that is not measured; it asks the first host.
        endpoint: where the measured client finds it.
        start_s: seconds from the restart command to ready; 0 without one.
        command: the flags of its JVM.
        version: as the cluster says.
        build: hash of the commit it was built from.
        lucene: Lucene's version.
        facts: all that it says about what it runs.
    """

    def __init__(
        self, address: Address, client: SearchClient, facts: ClusterFacts, *, shards: int, start_s: float
    ) -> None:
        self._address = address
        self._shards = shards
        self._starts = node_starts(client)
        self._searches = searches_run(client)
        self.client = client
        self.endpoint = address.endpoint
        self.start_s = start_s
        self.command = facts.jvm_flags
        self.version = facts.version
        self.build = facts.build
        self.lucene = facts.lucene
        self.facts = facts

    def wait_idle(self, max_s: float = MAX_IDLE_WAIT_S) -> float:
        """After a restart, wait until its nodes are calm: under a quarter of a core in all.

        Returns:
            Seconds waited; 0 for a cluster that was not restarted.
        """
        start = time.monotonic()
        if self.start_s == 0:
            return 0.0
        used_ms, since = cpu_used_ms(self.client), start
        while True:
            time.sleep(IDLE_WINDOW_S)
            now, now_used_ms = time.monotonic(), cpu_used_ms(self.client)
            calm = now_used_ms - used_ms < IDLE_CORES * 1000 * (now - since)
            if calm or now - start >= max_s:
                return now - start
            used_ms, since = now_used_ms, now

    def check_alive(self, within_s: float = 0.0) -> None:
        """Do nothing while the cluster answers and none of its nodes was started anew.

        Args:
            within_s: taken for the sake of the common face; a cluster has no process to watch.

        Raises:
            BenchctlError: it is gone, or another one than it was.
        """
        del within_s
        with explained(self._address.name, self.endpoint):
            starts = node_starts(self.client)
        if starts != self._starts:
            raise BenchctlError(
                f"{self._address.name}: nodes of {self.endpoint.title} were started, stopped or added "
                "while they were measured",
                hint="see to it that nobody else works on the cluster",
            )

    def searches_counted(self) -> int | None:
        """Searches that all nodes ran since `attach`, whoever sent them.

        None when the index has several shards: a node counts each of them, and skips some.

        Raises:
            BenchctlError: it is gone, or another one than it was.
        """
        self.check_alive()
        if self._shards > 1:
            return None
        with explained(self._address.name, self.endpoint):
            return searches_run(self.client) - self._searches

    def stop(self, *, at_once: bool = False) -> float:  # noqa: ARG002 - as a node's
        """Leave it as it is; the seconds that this took, none."""
        return 0.0


def identify(address: Address) -> ClusterFacts:
    """Ask a cluster which engine it runs.

    Raises:
        BenchctlError: it cannot be reached or refuses, with what to do about that.
    """
    # Either engine's client gets the plain question through; which engine it is, the answer says.
    with explained(address.name, address.endpoint), connect("elasticsearch", address.endpoint) as client:
        return describe_cluster(client)


@contextmanager
def attach(
    address: Address,
    facts: ClusterFacts,
    *,
    index: str | None,
    shards: int,
    restart_command: Sequence[str] = (),
    timeout_s: float = RESTART_TIMEOUT_S,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Target]:
    """Use a cluster, restarted first where there is a command for that; it stays up afterwards.

    Args:
        address: which one.
        facts: what `identify` found.
        index: one or several, whose primary shards must be started; None for all.
        shards: how many of those it has.
        restart_command: program and arguments; no shell is involved.
        timeout_s: how long a restart may take.
        pause: how to wait.

    Raises:
        BenchctlError: it cannot be reached, the command failed, or it did not come back in time.
    """
    with connect(facts.engine, address.endpoint) as client:
        start_s = 0.0
        if restart_command:
            with explained(address.name, address.endpoint):
                before = node_starts(client)
            begun = time.monotonic()
            _run(restart_command, address.name, timeout_s)
            restarted = _Restarted(client, index, before)
            while not restarted():
                if time.monotonic() - begun > timeout_s:
                    raise BenchctlError(
                        f"{address.name} was not ready {timeout_s:g} s after its restart command: "
                        f"{restarted.waiting_for}"
                    )
                pause(POLL_S)
            start_s = time.monotonic() - begun
        with explained(address.name, address.endpoint):
            target = Target(address, client, facts, shards=shards, start_s=start_s)
        yield target


class _Restarted:
    """Asks whether a cluster is through its restart: a command may return before anything has happened."""

    def __init__(self, client: SearchClient, index: str | None, before: Mapping[str, int]) -> None:
        self._client = client
        self._index = index
        self._before = before
        self.waiting_for = ""

    def __call__(self) -> bool:
        try:
            now = node_starts(self._client)
            same = [name for name, started in now.items() if self._before.get(name) == started]
            if same or len(now) < len(self._before):
                self.waiting_for = f"{len(self._before) - len(now) + len(same)} nodes were not started anew"
                return False
            self._client.health(self._index, POLL_S)
        except NodeRequestError as err:
            self.waiting_for = err.reason
            return False
        return True


def _run(command: Sequence[str], name: str, timeout_s: float) -> None:
    what = f"the restart command of {name}"
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
        )
    except OSError as err:
        raise BenchctlError(
            f"{what} cannot be run: {command[0]}: {err.strerror}",
            hint="it is run as it stands, without a shell",
        ) from err
    except subprocess.TimeoutExpired as err:
        raise BenchctlError(f"{what} did not end within {timeout_s:g} s") from err
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()[-_TAIL_LENGTH:]
        raise BenchctlError(f"{what} ended with status {done.returncode}: {said or 'it said nothing'}")
