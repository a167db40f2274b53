"""A cluster that is already running, with the interface of a started node."""

import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from benchctl.endpoint import Endpoint, variable
from benchctl.engine.client import NodeRequestError, SearchClient, connect
from benchctl.engine.readings import STATISTICS, by_name
from benchctl.engine.settings import without_secrets
from benchctl.errors import BenchctlError
from benchctl.network import Trouble
from benchctl.results.model import Fate
from benchctl.results.plan import EngineName

_UNAUTHORISED = 401
_FORBIDDEN = 403
_REDIRECTED = range(300, 400)
_GATEWAY = (502, 503, 504)
_PRIVILEGES = (
    "it takes the cluster privilege 'monitor', and 'read', 'monitor' and 'view_index_metadata' on the index, "
    "with 'manage' and 'write' if benchctl is to make it"
)
_SIGNATURES = (
    "key, region, service (es, aoss) and this host's clock must be right, a temporary key takes its session "
    "token and ends, and the domain's access policy must allow es:ESHttp*"
)
_NO_ENGINE = "see whether address and port are those of Elasticsearch or OpenSearch"

_TROUBLES = {
    Trouble.OTHER_NAME: (
        "has a certificate for another name",
        "use the name that the certificate was made for",
    ),
    Trouble.UNTRUSTED: (
        "has a certificate that is not trusted",
        "name the authority that signed it with {ca} (PEM)",
    ),
    Trouble.UNREADABLE_TRUST: (
        "has a certificate that cannot be checked",
        "see whether {ca} names certificates in PEM",
    ),
    Trouble.NO_TLS: ("does not speak TLS", "if it speaks plain HTTP, write http:{rest}"),
    Trouble.NO_HTTP: ("does not speak HTTP", f"{_NO_ENGINE}; if it speaks TLS, write https:{{rest}}"),
    Trouble.NO_JSON: ("answers with something else than JSON", _NO_ENGINE),
    Trouble.UNRESOLVED: ("has a name that cannot be resolved", "see whether the host's name is right"),
    Trouble.REFUSED: ("refuses the connection", "see whether it is up, and whether the port is right"),
    Trouble.TIMEOUT: ("does not answer in time", "see whether it is up, or a firewall in between"),
    Trouble.BROKEN: ("breaks the connection", "see its log; if it speaks TLS, write https:{rest}"),
    Trouble.TOO_LARGE: (
        "gives an answer that no search engine would",
        "see whether the address is right; benchctl reads no more of what it does not measure",
    ),
}
"""What happened and what to do; `{ca}` is how certificates are given, `{rest}` the address without scheme."""
# Troubles whose details are shown; those of others are a library's, and add nothing.
_SAYING = (None, Trouble.OTHER, Trouble.TIMEOUT, Trouble.TOO_LARGE)
_UNREACHABLE = ("cannot be reached", "see whether it is up, and whether address and certificates are right")


@contextmanager
def explained(name: str, endpoint: Endpoint) -> Iterator[None]:
    """Turn refusals and connection errors of a cluster, which the user calls `name`, into one clear error.

    Raises:
        BenchctlError: If there is a NodeRequestError or BenchctlError, with the cluster's name in front.
    """
    try:
        yield
    except NodeRequestError as err:
        raise _explanation(err, name, endpoint) from err
    except BenchctlError as err:
        if err.message.startswith(f"{name}"):
            raise
        raise BenchctlError(
            f"{name} at {endpoint.title}: {err.message}", hint=err.hint, exit_code=err.exit_code
        ) from err


def _explanation(err: NodeRequestError, name: str, endpoint: Endpoint) -> BenchctlError:
    where = f"{name} at {endpoint.hosts[0]}"
    if err.status == _UNAUTHORISED:
        has = f"does not accept the {endpoint.auth.scheme}" if endpoint.auth else "asks for credentials"
        return BenchctlError(f"{where} {has} (HTTP 401)", hint=_credentials_hint(name, endpoint))
    if err.status == _FORBIDDEN:
        text, hint = "does not allow this user what benchctl asks", _PRIVILEGES
        if endpoint.signing is not None:
            text, hint = "does not accept the AWS access key, or not for this", _SIGNATURES
        return BenchctlError(
            f"{where} {text} (HTTP 403): {err.reason}", hint=f"{hint}; {_credentials_hint(name, endpoint)}"
        )
    if err.status in _REDIRECTED:
        return BenchctlError(
            f"{where} redirects elsewhere (HTTP {err.status})", hint="name the address that it redirects to"
        )
    if err.status and err.reason.lstrip().startswith("<"):
        return BenchctlError(
            f"{where} answers with a web page (HTTP {err.status}), as neither engine does",
            hint="see whether the cluster behind that proxy is up" if err.status in _GATEWAY else _NO_ENGINE,
        )
    if err.status:
        return BenchctlError(f"{where}: {err.message}", hint=err.hint)
    text, hint = _UNREACHABLE if err.trouble is None else _TROUBLES.get(err.trouble, _UNREACHABLE)
    scheme, _, rest = endpoint.hosts[0].partition(":")
    if scheme == "https":
        hint = hint.replace("; if it speaks TLS, write https:{rest}", "")
    detail = f": {err.request}: {err.reason}" if err.trouble in _SAYING else ""
    return BenchctlError(
        f"{where} {text}{detail}",
        hint=hint.format(ca=endpoint.options.ca.format(name=name), rest=rest),
    )


def _credentials_hint(name: str, endpoint: Endpoint) -> str:
    user, password, api_key, bearer = (
        variable(name, what) for what in ("user", "password", "api-key", "bearer")
    )
    option = endpoint.options.auth.format(name=name)
    signed = f" for AWS, {variable(name, 'region')} has its requests signed;"
    return f"set {user} and {password}, {api_key}, or {bearer};{signed} or give {option}"


_UNKNOWN = "unknown"


@dataclass(frozen=True)
class ClusterFacts:
    """A cluster's software as its nodes report it."""

    engine: EngineName
    version: str
    build: str
    lucene: str  # Lucene's version; `unknown` where the node does not report it
    jdk: str
    jvm_flags: tuple[str, ...]  # without the values of secrets
    modules: tuple[str, ...]


@dataclass(frozen=True)
class ClusterIndex:
    """An existing index: documents in its primary shards, and how many of those there are."""

    documents: int
    shards: int


def describe_cluster(client: SearchClient) -> ClusterFacts:
    """Identify the software behind a client; the client may be the other engine's.

    Raises:
        NodeRequestError: If the node refuses or does not answer.
        BenchctlError: If something else answers, or the nodes run several versions.
    """
    nodes = client.request("GET", "/_nodes/jvm,plugins")
    if not isinstance(nodes, dict) or not nodes.get("nodes"):
        raise BenchctlError(
            "what answers there is neither Elasticsearch nor OpenSearch",
            hint="see whether address and port are right",
        )
    described = list(nodes["nodes"].values())
    versions = sorted({node["version"] for node in described})
    if len(versions) > 1:
        raise BenchctlError(
            f"its nodes run several versions: {', '.join(versions)}",
            hint="finish the upgrade first; requests to different versions are no single measurement",
        )
    node = described[0]
    jvm = node["jvm"]
    return ClusterFacts(
        # Elasticsearch always reports a build flavour; OpenSearch dropped it.
        engine="elasticsearch" if "build_flavor" in node else "opensearch",
        version=node["version"],
        build=node["build_hash"],
        lucene=_lucene(client),
        jdk=f"{jvm.get('vm_vendor', _UNKNOWN)} {jvm.get('version', _UNKNOWN)}",
        jvm_flags=tuple(without_secrets(flag) for flag in jvm.get("input_arguments", ())),
        modules=tuple(sorted(one["name"] for kind in ("modules", "plugins") for one in node.get(kind, ()))),
    )


def _lucene(client: SearchClient) -> str:
    try:
        answer = client.request("GET", "/")
    except NodeRequestError:
        # Core builds refuse this request, and users may lack the privilege.
        return _UNKNOWN
    version = answer.get("version") if isinstance(answer, dict) else None
    return str(version.get("lucene_version", _UNKNOWN)) if isinstance(version, dict) else _UNKNOWN


def node_starts(client: SearchClient) -> Mapping[str, int]:
    """Return the JVM start of every data node: name, or id if not unique -> epoch milliseconds."""
    nodes = client.request("GET", "/_nodes/jvm")["nodes"]
    return {
        name: node["jvm"]["start_time_in_millis"]
        for name, node in by_name(nodes).items()
        if any(role.startswith("data") for role in node.get("roles", ["data"]))
    }


def _change(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return what became of nodes: `node a went away, node b was started anew`."""
    changes = {
        "went away": before.keys() - after.keys(),
        "was added": after.keys() - before.keys(),
        "was started anew": {name for name in before.keys() & after.keys() if before[name] != after[name]},
    }
    return ", ".join(f"node {name} {what}" for what, names in changes.items() for name in sorted(names))


def searches_run(client: SearchClient) -> int | None:
    """Return how many query phases all nodes have run since they started: one for every search and shard.

    None where the cluster does not let this user ask.
    """
    try:
        nodes = client.request("GET", "/_nodes/stats/indices/search")["nodes"]
    except NodeRequestError as err:
        if err.status in {_UNAUTHORISED, _FORBIDDEN}:
            return None
        raise
    return sum(int(node["indices"]["search"]["query_total"]) for node in nodes.values())


def cpu_used_ms(client: SearchClient) -> int:
    """Return CPU time of all nodes since they started; a node updates it once a second."""
    nodes = client.request("GET", "/_nodes/stats/process")["nodes"]
    return sum(node["process"]["cpu"]["total_in_millis"] for node in nodes.values())


def find_index(client: SearchClient, name: str) -> ClusterIndex | None:
    """Return an index of a cluster, or None when there is none of that name.

    Raises:
        BenchctlError: If the name matches other indices.
    """
    indices = _counted(client, name)
    if indices is None:
        return None
    if set(indices) != {name}:
        raise BenchctlError(
            f"'{name}' stands for other indices there: {', '.join(sorted(indices)) or 'none'}",
            hint="benchctl needs an index of that name, not an alias or a data stream",
        )
    return _described(client, name, indices)


def find_data_stream(client: SearchClient, name: str) -> ClusterIndex | None:
    """Return a data stream of a cluster, or an index in its place; None when there is neither."""
    indices = _counted(client, name)
    return None if indices is None else _described(client, name, indices)


def _counted(client: SearchClient, name: str) -> dict[str, Any] | None:
    try:
        answer = client.request("GET", f"/{quote(name)}/_stats/docs")
    except NodeRequestError as err:
        if err.status == HTTPStatus.NOT_FOUND:
            return None
        raise
    indices: dict[str, Any] = answer["indices"]
    return indices


def _described(client: SearchClient, name: str, indices: Mapping[str, Any]) -> ClusterIndex:
    documents = sum(one["primaries"]["docs"]["count"] for one in indices.values())
    shards = client.request(
        "GET", f"/{quote(name)}/_settings/index.number_of_shards", params={"flat_settings": "true"}
    )
    number = sum(int(one["settings"]["index.number_of_shards"]) for one in shards.values())
    return ClusterIndex(documents, number)


RESTART_TIMEOUT_S = 300.0
POLL_S = 0.1
# A node updates its CPU time once a second.
IDLE_WINDOW_S = 1.2
IDLE_CORES = 0.25
MAX_IDLE_WAIT_S = 10.0
_TAIL_LENGTH = 400


@dataclass(frozen=True)
class Address:
    """A cluster: the user's name for it, and its endpoint."""

    name: str
    endpoint: Endpoint


class Target:
    """A cluster in use; `attach` makes one."""

    def __init__(
        self,
        address: Address,
        client: SearchClient,
        facts: ClusterFacts,
        *,
        shards: int,
        start_s: float,
        withheld: Collection[str] = (),
    ) -> None:
        self._address = address
        self._shards = shards
        self._starts = node_starts(client)
        self._searches = searches_run(client)
        self.client = client  # for everything that is not measured; uses the first host
        self.endpoint = address.endpoint
        self.start_s = start_s  # seconds from the restart command to ready; 0 without one
        self.command = facts.jvm_flags
        self.version = facts.version
        self.build = facts.build
        self.lucene = facts.lucene
        self.facts = facts
        self.withheld = withheld  # what it does not tell while it is measured; see `readings`

    def wait_idle(self, max_s: float = MAX_IDLE_WAIT_S) -> float:
        """Wait, after a restart, until the nodes together use less than a quarter of a core.

        Returns:
            Seconds waited; 0 for a cluster that was not restarted.
        """
        start = time.monotonic()
        if self.start_s == 0 or STATISTICS in self.withheld:
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
        """Check that the cluster answers and none of its nodes was restarted.

        `within_s` matches a node's interface; a cluster has no process to watch.

        Raises:
            BenchctlError: If the cluster is gone, or its nodes have changed.
        """
        del within_s
        with explained(self._address.name, self.endpoint):
            starts = node_starts(self.client)
        if starts != self._starts:
            raise BenchctlError(
                f"{self._address.name}: its {_change(self._starts, starts)} while it was measured",
                hint="its figures would be those of two clusters: see that node's log, and let nobody else "
                "work on it",
            )

    def glance(self) -> None:
        """Do nothing: a request would change what is measured."""

    @property
    def act(self) -> None:
        """None: its nodes are not benchctl's to stop."""

    @property
    def fates(self) -> Sequence[tuple[int, str, Fate]]:
        """Empty: nothing reports what happens to its nodes."""
        return ()

    def searches_counted(self) -> int | None:
        """Return how many searches all nodes ran since `attach`, whoever sent them.

        None when the index has several shards: a node counts each of them, and skips some; or when it does
        not tell.

        Raises:
            BenchctlError: If the cluster is gone, or its nodes have changed.
        """
        self.check_alive()
        if self._shards > 1 or self._searches is None:
            return None
        with explained(self._address.name, self.endpoint):
            now = searches_run(self.client)
        return None if now is None else now - self._searches

    def stop(self, *, at_once: bool = False) -> float:  # noqa: ARG002 - as a node's
        """Leave it as it is; takes 0 s."""
        return 0.0


def identify(address: Address) -> ClusterFacts:
    """Return which engine a cluster runs.

    Raises:
        BenchctlError: If the cluster cannot be reached or refuses, with what to do about that.
    """
    # Either engine's client can send this request; the answer tells the engine.
    with explained(address.name, address.endpoint), connect("elasticsearch", address.endpoint) as client:
        return describe_cluster(client)


@contextmanager
def attach(
    address: Address,
    facts: ClusterFacts,
    *,
    index: str | None,
    shards: int,
    withheld: Collection[str] = (),
    restart_command: Sequence[str] = (),
    timeout_s: float = RESTART_TIMEOUT_S,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Target]:
    """Use a cluster, restarted first if there is a command for that; it stays up afterwards.

    Args:
        address: which one.
        facts: from `identify`.
        index: one or several, whose primary shards must be started; None for all.
        shards: how many of those it has.
        withheld: what it does not tell.
        restart_command: program and arguments; no shell is involved.
        timeout_s: for the restart.
        pause: waits for so many seconds.

    Raises:
        BenchctlError: If the cluster cannot be reached, the command failed, or it did not come back in time.
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
            target = Target(address, client, facts, shards=shards, start_s=start_s, withheld=withheld)
        yield target


class _Restarted:
    """Whether a cluster's restart is complete: a command may return before anything has happened."""

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
        output = (done.stderr or done.stdout).decode(errors="replace").strip()[-_TAIL_LENGTH:]
        raise BenchctlError(f"{what} ended with status {done.returncode}: {output or 'it said nothing'}")
