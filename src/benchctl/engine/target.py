"""A cluster that is already running, with the interface of a started node."""

import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote

import msgspec

from benchctl.endpoint import Endpoint, variable
from benchctl.engine.client import NodeRequestError, Nodes, SearchClient, by_name, number_at, totals
from benchctl.engine.readings import STATISTICS
from benchctl.engine.settings import without_secrets
from benchctl.engine.usage import wait_idle
from benchctl.errors import BenchctlError
from benchctl.network import Trouble
from benchctl.results.plan import EngineName

_UNAUTHORISED = 401
# What a cluster answers that has an engine's searches and not all of its administration, as serverless ones.
NOT_OFFERED = frozenset({400, 404, 405, 410, 501})
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
    Trouble.TIMEOUT: ("does not answer in time", "see whether it is up, or a firewall blocks the way"),
    Trouble.BROKEN: ("breaks the connection", "see its log; if it speaks TLS, write https:{rest}"),
    Trouble.TOO_LARGE: (
        "gives an answer that no search engine would",
        "see whether the address is right; benchctl reads no more of what it does not measure",
    ),
}
"""Message and hint; `{ca}` is how certificates are given, `{rest}` the address without scheme."""
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
    if endpoint.proxy is not None:
        where += f" through {endpoint.proxy}"
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
            hint="check that the proxy's cluster is up" if err.status in _GATEWAY else _NO_ENGINE,
        )
    if err.status and err.trouble is None:
        return BenchctlError(f"{where}: {err.message}", hint=err.hint)
    text, hint = _UNREACHABLE if err.trouble is None else _TROUBLES.get(err.trouble, _UNREACHABLE)
    scheme, _, rest = endpoint.hosts[0].partition(":")
    if scheme == "https":
        hint = hint.replace("; if it speaks TLS, write https:{rest}", "")
    detail = f" (HTTP {err.status}): {err.request}" if err.status else ""
    if err.trouble in _SAYING:
        detail = f": {err.request}: {err.reason}"
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
_SHARDS = "index.number_of_shards"
_NEITHER = BenchctlError(
    "what answers there is neither Elasticsearch nor OpenSearch",
    hint="see whether address and port are right",
)


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


class _Jvm(msgspec.Struct):
    vm_vendor: str = ""
    version: str = ""
    input_arguments: tuple[str, ...] = ()


class _Named(msgspec.Struct):
    name: str


class _Node(msgspec.Struct):
    """A node's own report; hosted clusters leave much out."""

    version: str
    build_hash: str = ""
    build_flavor: str | None = None
    jvm: _Jvm = msgspec.field(default_factory=_Jvm)
    modules: tuple[_Named, ...] = ()
    plugins: tuple[_Named, ...] = ()


class _Described(msgspec.Struct):
    nodes: dict[str, _Node] = {}


class _Version(msgspec.Struct):
    number: str = _UNKNOWN
    build_hash: str = ""
    build_flavor: str | None = None
    distribution: str = ""
    lucene_version: str = ""


class _Root(msgspec.Struct):
    version: _Version


class _Docs(msgspec.Struct):
    count: int


class _Primaries(msgspec.Struct):
    docs: _Docs


class _IndexStatistics(msgspec.Struct):
    primaries: _Primaries


class _Statistics(msgspec.Struct):
    indices: dict[str, _IndexStatistics]


def describe_cluster(client: SearchClient) -> ClusterFacts:
    """Identify the software behind a client; the client may be the other engine's.

    Raises:
        NodeRequestError: If the node refuses or does not answer.
        BenchctlError: If something else answers, or the nodes run several versions.
    """
    try:
        nodes = client.read("/_nodes/jvm,plugins", _Described).nodes
    except NodeRequestError as err:
        if err.status not in NOT_OFFERED or (version := _root(client)) is None:
            raise
        return _facts(_Node(version.number), version)
    if not nodes:
        raise _NEITHER
    versions = sorted({node.version for node in nodes.values()})
    if len(versions) > 1:
        raise BenchctlError(
            f"its nodes run several versions: {', '.join(versions)}",
            hint="finish the upgrade first; requests to different versions are not one measurement",
        )
    node = next(iter(nodes.values()))
    return _facts(node, _root(client) or _Version())


def _facts(node: _Node, version: _Version) -> ClusterFacts:
    """Combine what a node says of itself with what is said at the root."""
    return ClusterFacts(
        engine=_engine_of(node, version),
        version=node.version,
        build=node.build_hash or version.build_hash or _UNKNOWN,
        lucene=version.lucene_version or _UNKNOWN,
        jdk=f"{node.jvm.vm_vendor} {node.jvm.version}".strip() or _UNKNOWN,
        jvm_flags=tuple(map(without_secrets, node.jvm.input_arguments)),
        modules=tuple(sorted(module.name for module in (*node.modules, *node.plugins))),
    )


def _root(client: SearchClient) -> _Version | None:
    """Return what a cluster says of itself; core builds refuse it, and users may lack the privilege."""
    try:
        return client.read("/", _Root).version
    except NodeRequestError:
        return None


def _engine_of(node: _Node, version: _Version) -> EngineName:
    """Elasticsearch reports a build flavour, which OpenSearch dropped; this names itself at the root."""
    if version.distribution == "opensearch":
        return "opensearch"
    has_flavor = node.build_flavor is not None or version.build_flavor is not None
    return "elasticsearch" if has_flavor else "opensearch"


def node_starts(client: SearchClient) -> Mapping[str, int]:
    """Return the JVM start of every data node: name, or id if not unique -> epoch milliseconds, 0 if unknown.

    Empty where a cluster that answers does not show its nodes.
    """
    try:
        nodes = client.read("/_nodes/jvm", Nodes).nodes
    except NodeRequestError as err:
        if err.status not in NOT_OFFERED:
            raise
        return {}
    return {
        name: int(number_at(node, "jvm.start_time_in_millis") or 0)
        for name, node in by_name(nodes).items()
        if _holds_data(node.get("roles", ["data"]))
    }


def _holds_data(roles: object) -> bool:
    return not isinstance(roles, list) or any(str(role).startswith("data") for role in roles)


def _change(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return what became of nodes: `node a went away, node b was restarted`."""
    changes = {
        "went away": before.keys() - after.keys(),
        "was added": after.keys() - before.keys(),
        "was restarted": {name for name in before.keys() & after.keys() if before[name] != after[name]},
    }
    return ", ".join(f"node {name} {what}" for what, names in changes.items() for name in sorted(names))


def reported(client: SearchClient, name: str) -> int | None:
    """Return a value of the nodes' STATISTICS over all of them; None where one does not report it.

    A node updates its CPU time once a second.
    """
    try:
        total = totals(client.statistics(name)).get(name)
    except NodeRequestError as err:
        if err.status not in {HTTPStatus.OK, _UNAUTHORISED, _FORBIDDEN, *NOT_OFFERED}:
            raise
        return None
    return None if total is None else int(total)


def find_index(client: SearchClient, name: str) -> ClusterIndex | None:
    """Return an index of a cluster, or None when there is none of that name.

    Raises:
        BenchctlError: If the name matches other indices.
    """
    documents = _documents(client, name)
    if documents is not None and set(documents) != {name}:
        raise BenchctlError(
            f"'{name}' matches other indices there: {', '.join(sorted(documents))}",
            hint="benchctl needs an index of that name, not an alias or a data stream",
        )
    return _described(client, name, documents)


def find_data_stream(client: SearchClient, name: str) -> ClusterIndex | None:
    """Return a data stream of a cluster, or an index in its place; None when there is neither."""
    return _described(client, name, _documents(client, name))


def _documents(client: SearchClient, name: str) -> dict[str, int] | None:
    """Return the documents of each index of a name; None if there is none.

    Raises:
        BenchctlError: If no shard of it is started.
    """
    try:
        indices = client.read(f"/{quote(name)}/_stats/docs", _Statistics).indices
        documents = {index: stats.primaries.docs.count for index, stats in indices.items()}
    except NodeRequestError as err:
        if err.status == HTTPStatus.NOT_FOUND and "index_not_found" in err.reason:
            return None
        if err.status not in NOT_OFFERED and err.status != HTTPStatus.OK:
            raise
        # Without statistics of indices: their names, and a count over all of them.
        try:
            names = list(client.setting(name, _SHARDS))
        except NodeRequestError as missing:
            if missing.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return dict.fromkeys(names, 0) | {names[0]: client.count(name)} if names else None
    if not documents:
        raise BenchctlError(
            f"the index '{name}' is red: none of its primary shards is started",
            hint="ask the cluster: GET /_cluster/allocation/explain",
        )
    return documents


def _described(client: SearchClient, name: str, documents: Mapping[str, int] | None) -> ClusterIndex | None:
    if documents is None:
        return None
    shards = client.setting(name, _SHARDS)
    return ClusterIndex(sum(documents.values()), sum(_integer(number or 1) for number in shards.values()))


def _integer(value: object) -> int:
    """Return an integer setting, which engines write as text."""
    try:
        return int(str(value))
    except ValueError as err:
        raise BenchctlError(f"a setting of the index is not a whole number: '{str(value)[:80]}'") from err


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
        self._searches = reported(client, "searches")
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
        if self.start_s == 0 or STATISTICS in self.withheld:
            return 0.0

        def used_s() -> float | None:
            used_ms = reported(self.client, "cpu_ms")
            return None if used_ms is None else used_ms / 1000

        return wait_idle(used_s, lambda: time.sleep(IDLE_WINDOW_S), cores=IDLE_CORES, max_s=max_s)

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
                hint="its values would be those of two clusters: see that node's log, and keep others off it",
            )

    def glance(self) -> None:
        """Do nothing: a request would change what is measured."""

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
            now = reported(self.client, "searches")
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
    with explained(address.name, address.endpoint), SearchClient("elasticsearch", address.endpoint) as client:
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
    with SearchClient(facts.engine, address.endpoint) as client:
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
    """The end of a cluster's restart: a command may return before anything has happened."""

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
                self.waiting_for = f"{len(self._before) - len(now) + len(same)} nodes were not restarted"
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
            hint="it is run as given, without a shell",
        ) from err
    except subprocess.TimeoutExpired as err:
        raise BenchctlError(f"{what} did not end within {timeout_s:g} s") from err
    if done.returncode != 0:
        output = (done.stderr or done.stdout).decode(errors="replace").strip()[-_TAIL_LENGTH:]
        raise BenchctlError(f"{what} ended with status {done.returncode}: {output or 'no output'}")
