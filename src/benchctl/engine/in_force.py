"""Mappings and settings as in force on a node, by the names that variants have for them."""

from collections.abc import Iterable

import msgspec

from benchctl.engine.client import SearchClient
from benchctl.engine.variant import flat_mapping, text_of
from benchctl.errors import BenchctlError
from benchctl.results.model import InForce
from benchctl.results.plan import DataOrigin

_PARALLEL = "search.query_phase_parallel_collection_enabled"
# What an engine writes into every index: of this one alone, or of its own version.
_OWN = (
    "uuid", "creation_date", "provided_name", "version.", "history_uuid", "resize.", "hidden",
    "routing.allocation.include._tier_preference",
)  # fmt: skip
# What `merge policy` and `search concurrency` follow from.
_MODE, _ENABLED = (f"search.concurrent_segment_search.{word}" for word in ("mode", "enabled"))
_DERIVED = {"merge.policy", "merge.policy.type", _MODE, _ENABLED, _PARALLEL}
_ALWAYS = {("replication.type", "DOCUMENT")}
# Settings whose defaults decide what a search or an index build costs.
_OF_INDEX = (
    "codec", "sort.field", "refresh_interval", "number_of_shards", "number_of_replicas", "store.type",
    "translog.durability", "translog.flush_threshold_size", "queries.cache.enabled", "requests.cache.enable",
    "merge.scheduler.max_thread_count", "merge_on_flush.enabled",
)  # fmt: skip
_OF_NODE = (
    "indices.queries.cache.size", "indices.requests.cache.size", "indices.fielddata.cache.size",
    "indices.memory.index_buffer_size",
)  # fmt: skip
# Of what a cluster was set to: others hold addresses and accounts.
_OF_CLUSTER = ("indices.", "search.", "thread_pool.", "knn.")
_SHARED = {"ignore_unavailable": "true"}
_FLAT = {"flat_settings": "true", "include_defaults": "true"}


class _Settings(msgspec.Struct):
    settings: dict[str, object] = {}
    defaults: dict[str, object] = {}


class _Mapped(msgspec.Struct):
    mappings: dict[str, object] = {}


class _Cluster(msgspec.Struct):
    persistent: dict[str, object] = {}
    transient: dict[str, object] = {}
    defaults: dict[str, object] = {}


def read_in_force(client: SearchClient, target: str, origin: DataOrigin) -> InForce:
    """Return what indices and nodes have, set or by default; of several indices, all values.

    Args:
        client: of a node that has the indices.
        target: their names, as a path component.
        origin: of their documents; segments that every fork makes are a result.

    Raises:
        BenchctlError: If the node refuses or does not answer.
    """
    of_index = client.read(f"/{target}/_settings", dict[str, _Settings], params={**_SHARED, **_FLAT})
    mapped = client.read(f"/{target}/_mapping", dict[str, _Mapped], params=_SHARED)
    cluster = client.read("/_cluster/settings", _Cluster, params=_FLAT)
    own = {**cluster.persistent, **cluster.transient}
    given = [
        ("setting", name, value)
        for name, value in own.items()
        if name.startswith(_OF_CLUSTER) and name not in _DERIVED
    ]
    usual = [
        ("setting", name, cluster.defaults[name])
        for name in _OF_NODE
        if name in cluster.defaults and name not in own
    ]
    for index, found in of_index.items():
        settings = {name.removeprefix("index."): value for name, value in found.settings.items()}
        defaults = {name.removeprefix("index."): value for name, value in found.defaults.items()}
        mapping = flat_mapping(mapped[index].mappings) if index in mapped else {}
        given += [("mapping", *pair) for pair in mapping.items()]
        given += [
            ("index", name, value)
            for name, value in settings.items()
            if not (name.startswith(_OWN) or name in _DERIVED or (name, text_of(value)) in _ALWAYS)
        ]
        usual += [
            ("index", name, defaults[name]) for name in _OF_INDEX if name in defaults and name not in settings
        ]
        policy = _merge_policy({**defaults, **settings}, {**cluster.defaults, **own}, mapping)
        usual += [("", "merge policy", policy), ("", "search concurrency", _concurrency(settings, cluster))]
    if of_index and origin == "prepared":
        segments = client.segments(",".join(of_index))
        compound = sum(segment.compound for segment in segments)
        usual += [("", "segments", len(segments)), ("", "compound segments", compound)]
        if len(segments) > 1:
            sizes = [segment.size_bytes for segment in segments]
            # To a tenth: the same documents never come to the same bytes on two engines.
            usual.append(
                ("", "largest segment", f"{round(10 * max(sizes) / max(sum(sizes), 1)) * 10}% of the index")
            )
    return InForce(_by_name(given), _by_name(usual))


def _by_name(found: Iterable[tuple[str, str, object]]) -> dict[str, str]:
    """Return values by names with their kinds; where indices differ, all of them."""
    texts: dict[str, set[str]] = {}
    for kind, name, value in found:
        texts.setdefault(f"{kind}:{name}" if kind else name, set()).add(text_of(value))
    return {name: " | ".join(sorted(own)) for name, own in sorted(texts.items())}


def state_of(client: SearchClient, target: str, origin: DataOrigin) -> InForce:
    """Return what is in force, as far as the cluster shows it: nothing where it does not."""
    try:
        return read_in_force(client, target, origin)
    except BenchctlError:
        return InForce()


def _merge_policy(index: dict[str, object], nodes: dict[str, object], mapping: dict[str, object]) -> str:
    """Return the policy that merges follow: data streams may have another."""
    named = str(index.get("merge.policy.type", index.get("merge.policy", "default"))).lower()
    if named not in {"default", "unset"}:
        return named.replace("time_based", "log_byte_size")
    is_stream = text_of(mapping.get("_data_stream_timestamp.enabled")) == "true"
    of_streams = str(nodes.get("indices.time_series_index.default_index_merge_policy", "default"))
    if "merge.policy.type" in index:
        of_streams = "log_byte_size"
    return of_streams if is_stream and of_streams != "default" else "tiered"


_MODES = {"true": "on", "all": "on", "false": "off", "none": "off"}


def _concurrency(index: dict[str, object], cluster: _Cluster) -> str:
    """Return whether several threads search a shard: `on`, `off`, or `auto` where a node decides."""
    given = [
        found.get(name)
        for found in (index, cluster.transient, cluster.persistent)
        for name in (_MODE, _ENABLED)
    ]
    # What a node's file sets is among the defaults.
    defaults = [cluster.defaults.get(name) for name in (_ENABLED, _MODE, _PARALLEL)]
    ways = [text_of(way) for way in (*given, *(way for way in defaults if text_of(way) != "false")) if way]
    return _MODES.get(ways[0], ways[0]) if ways else "off"
