"""A cluster that is already running, with the interface of a started node."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote

import msgspec

from benchctl.endpoint import Endpoint, variable
from benchctl.engine.client import NodeRequestError, Nodes, SearchClient, number_at
from benchctl.engine.settings import without_secrets
from benchctl.errors import BenchctlError
from benchctl.network import Trouble
from benchctl.results.plan import EngineName

_UNAUTHORISED = 401
# What a cluster answers that has an engine's searches and not all of its administration, as serverless ones.
NOT_OFFERED = frozenset({400, 404, 405, 410, 501})
_FORBIDDEN = 403
_PRIVILEGES = (
    "required: the cluster privilege 'monitor', and 'read', 'monitor' and 'view_index_metadata' on the "
    "index, with 'manage' and 'write' if benchctl creates it"
)
_SIGNATURES = (
    "key, region, service (es, aoss) and this host's clock must be right, a temporary key takes its session "
    "token and ends, and the domain's access policy must allow es:ESHttp*"
)
_NO_ENGINE = "check that address and port are those of Elasticsearch or OpenSearch"

_TROUBLES = {
    Trouble.OTHER_NAME: (
        "has a certificate for another name",
        "use the name that the certificate was made for",
    ),
    Trouble.UNTRUSTED: (
        "has a certificate that is not trusted",
        "name the authority that signed it with {ca} (PEM)",
    ),
    Trouble.NO_TLS: ("does not speak TLS", "if it speaks plain HTTP, write http:{rest}"),
    Trouble.NO_HTTP: ("does not speak HTTP", f"{_NO_ENGINE}; if it speaks TLS, write https:{{rest}}"),
    Trouble.NO_JSON: ("does not respond with JSON", _NO_ENGINE),
    Trouble.UNRESOLVED: ("has a name that cannot be resolved", "check the host's name"),
    Trouble.REFUSED: ("refuses the connection", "check that it is running, and the port"),
    Trouble.TIMEOUT: ("does not respond in time", "check that it is running, and that no firewall blocks it"),
    Trouble.BROKEN: ("breaks the connection", "see its log; if it speaks TLS, write https:{rest}"),
    Trouble.TOO_LARGE: (
        "gives a response that no search engine would",
        "check the address; the rest of the response is not read",
    ),
}
"""Message and hint; `{ca}` is how certificates are given, `{rest}` the address without scheme."""
# Troubles whose details are shown; those of others are a library's, and add nothing.
_SAYING = (None, Trouble.OTHER, Trouble.TIMEOUT, Trouble.TOO_LARGE)
_UNREACHABLE = ("cannot be reached", "check that it is running, and its address and certificates")


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
        return BenchctlError(f"{where} {has} (HTTP 401)", hint=_credentials_hint(name))
    if err.status == _FORBIDDEN:
        text, hint = "does not grant this user the required privileges", _PRIVILEGES
        if endpoint.signing is not None:
            text, hint = "does not accept the AWS access key, or not for this", _SIGNATURES
        return BenchctlError(
            f"{where} {text} (HTTP 403): {err.reason}", hint=f"{hint}; {_credentials_hint(name)}"
        )
    is_page = err.status and err.reason.lstrip().startswith("<")
    trouble = Trouble.NO_JSON if is_page else err.trouble
    if err.status and trouble is None:
        return BenchctlError(f"{where}: {err.message}", hint=err.hint)
    text, hint = _UNREACHABLE if trouble is None else _TROUBLES.get(trouble, _UNREACHABLE)
    scheme, _, rest = endpoint.hosts[0].partition(":")
    if scheme == "https":
        hint = hint.replace("; if it speaks TLS, write https:{rest}", "")
    detail = f" (HTTP {err.status}): {err.request}" if err.status else ""
    if trouble in _SAYING:
        detail = f": {err.request}: {err.reason}"
    return BenchctlError(
        f"{where} {text}{detail}",
        hint=hint.format(ca=f"`ca: PATH` of {name} in --targets FILE", rest=rest),
    )


def _credentials_hint(name: str) -> str:
    user, password, api_key, bearer = (
        variable(name, what) for what in ("user", "password", "api-key", "bearer")
    )
    signed = f" for AWS, {variable(name, 'region')} has its requests signed;"
    return f"set {user} and {password}, {api_key}, or {bearer};{signed} or give --targets FILE"


_UNKNOWN = "unknown"
_SHARDS = "index.number_of_shards"
_NEITHER = BenchctlError(
    "the server there is neither Elasticsearch nor OpenSearch",
    hint="check address and port",
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
    names = [str(node.get("name", number)) for number, node in nodes.items()]
    unique = names if len(set(names)) == len(names) else nodes
    return {
        name: int(number_at(node, "jvm.start_time_in_millis") or 0)
        for name, node in zip(unique, nodes.values(), strict=True)
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


def searches_of(client: SearchClient) -> int | None:
    """Return how many searches the nodes ran since they started; None where one does not report it."""
    try:
        searches = client.statistics("searches").get("searches")
    except NodeRequestError as err:
        if err.status not in {HTTPStatus.OK, _UNAUTHORISED, _FORBIDDEN, *NOT_OFFERED}:
            raise
        return None
    return None if searches is None else int(searches)


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


@dataclass(frozen=True)
class Address:
    """A cluster: the user's name for it, and its endpoint."""

    name: str
    endpoint: Endpoint


class Target:
    """A cluster in use, with the interface of a node: it runs already, and stays up.

    Args:
        address: which one.
        client: of it, for everything that is not measured; uses the first host.
        facts: from `identify`.
        shards: primary ones of the indices in use.

    Raises:
        BenchctlError: If the cluster cannot be reached.
    """

    start_s = 0.0  # seconds from its start to ready: it was up before

    def __init__(self, address: Address, client: SearchClient, facts: ClusterFacts, shards: int) -> None:
        self._address = address
        self._shards = shards
        self.client = client
        self.endpoint = address.endpoint
        self.command = facts.jvm_flags
        self.version = facts.version
        self.build = facts.build
        self.lucene = facts.lucene
        with explained(address.name, address.endpoint):
            self._starts = node_starts(client)
            self._searches = searches_of(client)

    def wait_idle(self) -> float:
        """Return the seconds waited until it is idle: 0, since others may use it."""
        return 0.0

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
                hint="its values would mix two cluster states: see that node's log, and keep others off it",
            )

    def glance(self) -> None:
        """Do nothing: a request would change what is measured."""

    def searches_counted(self) -> int | None:
        """Return how many searches all nodes ran since its use began, whoever sent them.

        None when the index has several shards: a node counts each of them, and skips some; or when it does
        not tell.

        Raises:
            BenchctlError: If the cluster is gone, or its nodes have changed.
        """
        self.check_alive()
        if self._shards > 1 or self._searches is None:
            return None
        with explained(self._address.name, self.endpoint):
            now = searches_of(self.client)
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
