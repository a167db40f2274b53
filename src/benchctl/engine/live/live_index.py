"""An index of a live cluster as it would be created again: its settings, mappings and aliases."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.engine.client import SearchClient
from benchctl.engine.wires import NodeRequestError
from benchctl.errors import BenchctlError, UsageError
from benchctl.track.template_source import cut

_MOST_NAMED = 5

# What an index says of itself, and cannot be created with: nobody misses it.
_OWN = ("uuid", "creation_date", "creation_date_string", "provided_name", "version", "history", "resize",
        "verified_before_close", "hidden", "routing.allocation", "store.snapshot", "upgraded")  # fmt: skip
# What belongs to the cluster that it is on: policies, pipelines and the like, which are not elsewhere.
_FOREIGN = ("lifecycle", "plugins", "opendistro", "opensearch", "default_pipeline", "final_pipeline",
            "search.default_pipeline", "blocks", "frozen", "xpack", "remote_store", "store.type")  # fmt: skip

_ROUTED_TYPES = frozenset({"join"})


class _Described(msgspec.Struct):
    """What a cluster says of an index; clusters that run already may be anything."""

    settings: dict[str, Any] = {}
    mappings: dict[str, Any] = {}
    aliases: dict[str, Any] = {}


@dataclass(frozen=True)
class LiveIndex:
    """What an index is made of.

    Attributes:
        name: as it was asked for, which may be an alias or a data stream.
        settings: those that it can be created with, flat: `index.codec` and so on.
        mappings: as they are.
        aliases: without one of its own name.
        left_out: settings that another cluster may lack something for.
    """

    name: str
    settings: Mapping[str, Any]
    mappings: Mapping[str, Any]
    aliases: Mapping[str, Any]
    left_out: tuple[str, ...]

    @property
    def is_routed(self) -> bool:
        """Whether its documents have to say to which shard they go."""
        required = self.mappings.get("_routing", {}).get("required") in {True, "true"}
        return required or any(kind in _ROUTED_TYPES for _, kind, _ in fields_of(self.mappings))

    @property
    def largest_page(self) -> int | None:
        """Most hits that a page may have, where the index has a bound of its own."""
        found = self.settings.get("index.max_result_window")
        return None if found is None else whole(found)


def read_live_index(client: SearchClient, name: str) -> LiveIndex:
    """Ask a cluster for an index.

    Raises:
        UsageError: there is none, or the name stands for several, or it does not keep its documents.
        NodeRequestError: the cluster refuses or does not answer.
    """
    try:
        found = client.request("GET", f"/{quote(name, safe=',*')}", params={"flat_settings": "true"})
    except NodeRequestError as err:
        if err.status == HTTPStatus.NOT_FOUND:
            raise UsageError(f"the cluster has no index '{name}'") from err
        raise
    if not isinstance(found, dict) or not found:
        raise UsageError(f"the cluster has no index '{name}'")
    if len(found) > 1:
        names = ", ".join(sorted(found)[:_MOST_NAMED])
        raise UsageError(f"'{name}' stands for {len(found)} indices: {names}", hint="name one of them")
    try:
        described = msgspec.convert(next(iter(found.values())), _Described)
    except msgspec.ValidationError as err:
        raise BenchctlError(f"the cluster describes the index '{name}' in a form of its own: {err}") from err
    mappings = described.mappings
    source = mappings.get("_source", {})
    if source.get("enabled") in {False, "false"}:
        raise UsageError(f"the index '{name}' does not keep its documents (`_source` is disabled)")
    if source.get("includes") or source.get("excludes"):
        raise UsageError(
            f"the index '{name}' keeps parts of its documents only (`_source` includes or excludes fields)"
        )
    settings, left_out = _creatable(described.settings)
    aliases = {key: value for key, value in described.aliases.items() if key != name}
    return LiveIndex(name, settings, mappings, aliases, left_out)


def _creatable(settings: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Settings that an index can be created with, and the names of others that mean something."""
    kept: dict[str, Any] = {}
    left_out = []
    for key, value in sorted(settings.items()):
        bare = key.removeprefix("index.")
        if _within(bare, _FOREIGN):
            left_out.append(key)
        elif not _within(bare, _OWN):
            kept[key] = value
    return kept, tuple(left_out)


def whole(value: object) -> int:
    """A setting that is a whole number, which engines write as a text.

    Raises:
        BenchctlError: it is none.
    """
    try:
        return int(str(value))
    except ValueError as err:
        raise BenchctlError(f"a setting of the index is no whole number: '{cut(str(value))}'") from err


def _within(key: str, families: tuple[str, ...]) -> bool:
    return any(key == family or key.startswith(f"{family}.") for family in families)


def fields_of(mappings: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """The fields of mappings that searches reach by their path: path, type and definition, in order.

    Those of nested objects are left out: they take queries of their own.

    Raises:
        BenchctlError: the mappings are nested beyond reason.
    """
    found: list[tuple[str, str, Mapping[str, Any]]] = []
    try:
        _collect(mappings.get("properties", {}), "", found)
    except RecursionError as err:
        raise BenchctlError("the mappings are nested too deeply") from err
    except (AttributeError, TypeError) as err:
        raise BenchctlError("the mappings are not of the form that engines give them") from err
    return found


def _collect(
    properties: Mapping[str, Any], prefix: str, found: list[tuple[str, str, Mapping[str, Any]]]
) -> None:
    for name, definition in properties.items():
        path = f"{prefix}{name}"
        kind = definition.get("type", "object")
        if definition.get("enabled") in {False, "false"} or kind in {"nested", "alias"}:
            continue
        if kind != "object":
            found.append((path, kind, definition))
        _collect(definition.get("properties", {}), f"{path}.", found)
        _collect(definition.get("fields", {}), f"{path}.", found)
