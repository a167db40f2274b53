"""What a running cluster says about itself: which engine, which nodes, since when, and how many searches."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from benchctl.engine.client import SearchClient
from benchctl.engine.secrets import without_secrets
from benchctl.engine.wires import NodeRequestError
from benchctl.errors import BenchctlError
from benchctl.results.plan import EngineName

_UNKNOWN = "unknown"


@dataclass(frozen=True)
class ClusterFacts:
    """What one node of a cluster says about what it runs; benchctl did not install it.

    Attributes:
        engine: which engine.
        version: of the engine.
        build: hash of the commit it was built from.
        lucene: Lucene's version; `unknown` where the node keeps it to itself.
        jdk: vendor and version.
        jvm_flags: what its JVM was started with, without the values of secrets.
        modules: modules and plugins.
    """

    engine: EngineName
    version: str
    build: str
    lucene: str
    jdk: str
    jvm_flags: tuple[str, ...]
    modules: tuple[str, ...]


@dataclass(frozen=True)
class ClusterIndex:
    """An index as it was found.

    Attributes:
        documents: in the primary shards.
        shards: primary shards.
    """

    documents: int
    shards: int


def describe_cluster(client: SearchClient) -> ClusterFacts:
    """Ask the node behind a client what it is; the client may be the other engine's.

    Raises:
        NodeRequestError: it refuses or does not answer.
        BenchctlError: something else answers there, or the nodes run several versions.
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
        # Elasticsearch has always named a flavour of its builds; OpenSearch dropped the word.
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
        # Core builds refuse this request, and users may lack the right to it.
        return _UNKNOWN
    version = answer.get("version") if isinstance(answer, dict) else None
    return str(version.get("lucene_version", _UNKNOWN)) if isinstance(version, dict) else _UNKNOWN


def node_starts(client: SearchClient) -> Mapping[str, int]:
    """When the JVM of every node that holds data was started: node id -> epoch milliseconds."""
    nodes = client.request("GET", "/_nodes/jvm")["nodes"]
    return {name: node["jvm"]["start_time_in_millis"] for name, node in nodes.items() if _holds_data(node)}


def _holds_data(node: Mapping[str, Any]) -> bool:
    return any(role.startswith("data") for role in node.get("roles", ["data"]))


def searches_run(client: SearchClient) -> int:
    """Query phases that all nodes have run since they started: one for every search and shard."""
    nodes = client.request("GET", "/_nodes/stats/indices/search")["nodes"]
    return sum(node["indices"]["search"]["query_total"] for node in nodes.values())


def cpu_used_ms(client: SearchClient) -> int:
    """CPU time of all nodes since they started; a node looks at its clock once a second."""
    nodes = client.request("GET", "/_nodes/stats/process")["nodes"]
    return sum(node["process"]["cpu"]["total_in_millis"] for node in nodes.values())


def find_index(client: SearchClient, name: str) -> ClusterIndex | None:
    """An index of a cluster, or None when there is none of that name.

    Raises:
        BenchctlError: the name stands for other indices.
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
    """A data stream of a cluster, or an index in its place; None when there is nothing of that name."""
    indices = _counted(client, name)
    return None if indices is None else _described(client, name, indices)


def _counted(client: SearchClient, name: str) -> dict[str, Any] | None:
    """What a node counts of every index that a name stands for."""
    try:
        found = client.request("GET", f"/{quote(name)}/_stats/docs")
    except NodeRequestError as err:
        if err.status == HTTPStatus.NOT_FOUND:
            return None
        raise
    indices: dict[str, Any] = found["indices"]
    return indices


def _described(client: SearchClient, name: str, indices: Mapping[str, Any]) -> ClusterIndex:
    documents = sum(one["primaries"]["docs"]["count"] for one in indices.values())
    shards = client.request(
        "GET", f"/{quote(name)}/_settings/index.number_of_shards", params={"flat_settings": "true"}
    )
    number = sum(int(one["settings"]["index.number_of_shards"]) for one in shards.values())
    return ClusterIndex(documents, number)
