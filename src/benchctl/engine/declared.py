"""Requirements of a track on a node: indices, data streams and templates."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.engine.variant import flat, text_of, whole_names
from benchctl.errors import BenchctlError, UsageError
from benchctl.results.plan import CorpusFile
from benchctl.track.model import (
    DATA_STREAM,
    DATA_STREAMS,
    Index,
    IndexBody,
    TemplateKind,
    Track,
    as_plain_template,
    mapping_of,
)
from benchctl.track.operations import names_unknown

EVERYTHING = "_all"
_FIELDS = "properties"


def refusal(what: str, reason: str, given: Mapping[str, Any]) -> BenchctlError:
    """Return an error for a refused index: about a setting that a variant gave, or about the track.

    Args:
        what: the node was to make.
        reason: in its own words.
        given: settings and mappings of the variant, as written.
    """
    blamed = [f"{name}={text_of(value)}" for name, value in given.items() if _is_in(reason, name)]
    if blamed:
        return BenchctlError(
            f"the node refuses {', '.join(blamed)}: {reason}",
            hint="correct --variant, --sweep or the variants file",
        )
    return BenchctlError(
        f"the node refuses {what}: {reason}",
        hint="use a distribution with the required modules (distribution:PATH|URL of its variant; the "
        "default ones have the core modules only), or change the track",
    )


def _is_in(reason: str, name: str) -> bool:
    """Return whether a node's reason is about a setting, or the field of a mapping."""
    kind, _, what = name.partition(":")
    if kind == "index":
        return f"index.{what}" in reason
    field = what.rpartition(".")[0] or what
    return f"[{field}]" in reason or f"[{field.rpartition('.')[2]}]" in reason


# A node accepts a request line of 4096 bytes.
_MOST_CHARACTERS = 2048
_PATHS: Mapping[TemplateKind, str] = {
    "component": "_component_template",
    "composable": "_index_template",
    "index": "_template",
}
_ORDER = tuple(_PATHS)  # others are composed of components


@dataclass(frozen=True)
class Places:
    """Places of a track's documents: indices with their bodies, and names of data streams."""

    indices: tuple[Index, ...]
    data_streams: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of indices and data streams, indices first."""
        return (*(index.name for index in self.indices), *self.data_streams)

    @property
    def shards(self) -> int:
        """Number of primary shards; a data stream is assumed to have one."""
        return sum(index.body.shards for index in self.indices) + len(self.data_streams)

    @property
    def target(self) -> str:
        """Names as a path component; `_all` when that would be too long, or there are none."""
        joined = ",".join(self.names)
        return joined if 0 < len(quote(joined)) <= _MOST_CHARACTERS else EVERYTHING


def places(track: Track, files: Iterable[CorpusFile] = ()) -> Places:
    """Return what a track declares, and undeclared targets of its documents, which nodes create.

    `files` are the documents, where they are known better than from the track.
    """
    goals = [
        (documents.target_index, documents.target_data_stream)
        for c in track.corpora
        for documents in c.documents
    ]
    goals += [(file.index, file.data_stream) for file in files]
    indices = {index.name: index for index in track.indices}
    streams = dict.fromkeys(track.data_streams)
    for index, stream in goals:
        if index is not None:
            indices.setdefault(index, Index(index, IndexBody()))
        if stream is not None:
            streams.setdefault(stream)
    return Places(tuple(indices.values()), tuple(streams))


def with_changes(wanted: Places, settings: Mapping[str, Any], mappings: Mapping[str, Any]) -> Places:
    """Return the same places, with settings and mappings that override those of every index.

    Names of settings are complete, beginning with `index.`; data streams, which have theirs from templates,
    are unaffected.

    Raises:
        UsageError: If a mapping names a field without a key.
    """
    if not settings and not mappings:
        return wanted

    def changed(index: Index) -> Index:
        own = {**whole_settings(index), **settings} if settings else index.body.settings
        mapped = index.body.mappings
        for name, value in mappings.items():
            mapped = _with_mapping(mapped, name.split("."), value)
        body = msgspec.structs.replace(index.body, settings=own, mappings=mapped)
        return msgspec.structs.replace(index, body=body)

    return replace(wanted, indices=tuple(map(changed, wanted.indices)))


def _with_mapping(
    level: Mapping[str, Any], path: Sequence[str], value: object, *, is_object: bool = True
) -> dict[str, Any]:
    """Return a mapping, or a field of it, with another value of a field's key; None removes it."""
    fields = mapping_of(level.get(_FIELDS))
    # Tracks may write names with dots.
    declared = next((count for count in range(len(path), 0, -1) if ".".join(path[:count]) in fields), 0)
    if declared:
        field, rest = ".".join(path[:declared]), path[declared:]
        if not rest and value is not None:
            raise UsageError(
                f"mapping:{field}={text_of(value)}: '{field}' is a field",
                hint=f"write mapping:{field}.type={text_of(value)}",
            )
        others = {name: own for name, own in fields.items() if name != field}
        changed = {field: _with_mapping(fields[field], rest, value, is_object=False)} if rest else {}
        return {**level, _FIELDS: {**others, **changed}}
    first, *rest = path
    if rest and (is_object or fields) and first not in level and not first.startswith("_"):
        if value is None:
            return dict(level)
        return {**level, _FIELDS: {**fields, ".".join(path[:-1]): {path[-1]: value}}}
    if rest:
        return {**level, first: _with_mapping(mapping_of(level.get(first)), rest, value, is_object=False)}
    others = {name: own for name, own in level.items() if name != first}
    return others if value is None else {**others, first: value}


def whole_settings(index: Index) -> dict[str, Any]:
    """Return the settings in an index's body by complete names, beginning with `index.`."""
    return {
        name: value
        for prefix, values in index.body.settings.items()
        for name, value in whole_names(flat(prefix, values)).items()
    }


MARK = "benchctl"
"""The key in the `_meta` of a mapping that tells whose an index is."""


OWN: Mapping[str, str] = {MARK: "made for a measurement, which may delete it"}
"""The mark, in the `_meta` of what a measurement makes on a running cluster."""


def leads_elsewhere(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return aliases and pipelines through which an index is seen elsewhere or passes documents on."""
    settings = flat("settings", body.get("settings") or {})
    pipelines = (name.removeprefix("settings.") for name in settings if name.endswith("_pipeline"))
    return (*(f"alias {name}" for name in body.get("aliases") or ()), *pipelines)


def try_out(client: SearchClient, wanted: Places) -> None:
    """Make and remove each of these places, to see what a cluster's own templates do to it.

    Raises:
        BenchctlError: If a place would be seen elsewhere, cannot be made, or exists.
    """
    require_free(client, wanted)
    _remove(client, wanted)
    for name in wanted.names:
        path = f"/{quote(name, safe='')}"
        try:
            if name in wanted.data_streams:
                client.request("PUT", f"/_data_stream{path}")
            else:
                client.create_index(name, {"mappings": {"_meta": OWN}})
        except NodeRequestError as err:
            if err.status != HTTPStatus.BAD_REQUEST:
                raise
            raise BenchctlError(
                f"it rejects '{name}': {err.reason}",
                hint="check its templates: --allow-writes does not change the cluster's own",
            ) from err
        try:
            made = client.read(path, dict[str, dict[str, Any]], params={"flat_settings": "true"})
        finally:
            _remove(client, wanted)
        if others := [way for mapping in made.values() for way in leads_elsewhere(mapping)]:
            raise BenchctlError(
                f"its templates give '{name}' {', '.join(others)}",
                hint="--allow-writes creates private indices only: remove the name from the template's "
                "index_patterns, or measure another cluster",
            )


@contextmanager
def lent(client: SearchClient, wanted: Places) -> Iterator[None]:
    """Make places on a cluster that has none of them, and remove them after the measurement.

    What carries benchctl's mark is left from an earlier measurement, and removed first.

    Args:
        client: of the cluster.
        wanted: indices and data streams; nothing else is touched.

    Raises:
        BenchctlError: If a place exists that benchctl did not make.
    """
    require_free(client, wanted)
    _remove(client, wanted)
    try:
        yield
    finally:
        _remove(client, wanted)


def require_free(client: SearchClient, wanted: Places) -> None:
    """Check that a cluster has none of these places, save those that carry benchctl's mark.

    Raises:
        BenchctlError: If the cluster has such a place.
    """
    for name in wanted.names:
        mappings = _mappings(client, name)
        if mappings is not None and not all(MARK in mapped.mappings.meta for mapped in mappings.values()):
            raise BenchctlError(
                f"it has '{name}' already, which does not carry benchctl's mark",
                hint="--allow-writes only touches what was not there before: measure another cluster, or "
                "delete it there yourself",
            )


class _Mappings(msgspec.Struct):
    meta: dict[str, Any] = msgspec.field(default_factory=dict, name="_meta")


class _Mapped(msgspec.Struct):
    mappings: _Mappings


def _mappings(client: SearchClient, name: str) -> Mapping[str, _Mapped] | None:
    """Mappings of the indices that a name stands for; None when it stands for nothing."""
    try:
        # What names no index marks none as benchctl's, either: nothing is deleted then.
        return client.read(f"/{quote(name, safe='')}/_mapping", dict[str, _Mapped]) or None
    except NodeRequestError as err:
        if err.status == HTTPStatus.NOT_FOUND:
            return None
        raise


def _remove(client: SearchClient, wanted: Places) -> None:
    for name in wanted.names:
        mappings = _mappings(client, name)
        if mappings is not None:
            kind = "" if name in mappings else "_data_stream/"
            client.request("DELETE", f"/{kind}{quote(name, safe='')}")


def make_all(client: SearchClient, track: Track, wanted: Places, given: Mapping[str, Any]) -> None:
    """Create templates, then indices and data streams, on a node that has none of them.

    A node without data streams gets plain indices of their names, from the same templates. `given` are the
    settings and mappings that the variant brought to `wanted`, as written.

    Raises:
        BenchctlError: If the node refuses something, with its reason.
    """
    needs_streams = bool(wanted.data_streams) or any(
        DATA_STREAM in template.body for template in track.templates
    )
    streams = not needs_streams or _has_data_streams(client)
    for template in sorted(track.templates, key=lambda template: _ORDER.index(template.kind)):
        body = template.body if streams else as_plain_template(template.body, track.templates)
        with _explained(f"template '{template.name}'"):
            client.request("PUT", f"/{_PATHS[template.kind]}/{quote(template.name, safe='')}", body=body)
    for index in wanted.indices:
        with _explained(f"index '{index.name}'", given):
            client.create_index(index.name, msgspec.to_builtins(index.body))
    for name in wanted.data_streams:
        with _explained(f"data stream '{name}'"):
            if streams:
                client.request("PUT", f"/_data_stream/{quote(name, safe='')}")
            else:
                client.create_index(name, {})


def stand_ins(client: SearchClient, names: Sequence[str]) -> tuple[str, ...]:
    """Return the data streams among these names that are plain indices on a node.

    Raises:
        NodeRequestError: If the node does not answer.
    """
    if not names:
        return ()
    indices = client.request("GET", "/_all/_alias", params={"expand_wildcards": "all"})
    return tuple(name for name in names if name in indices)


def _has_data_streams(client: SearchClient) -> bool:
    try:
        client.request("GET", DATA_STREAMS)
    except NodeRequestError as err:
        if names_unknown(err.reason):
            return False
        raise
    return True


@contextmanager
def _explained(what: str, given: Mapping[str, Any] = MappingProxyType({})) -> Iterator[None]:
    """Adds to a refusal what can be done about it."""
    try:
        yield
    except NodeRequestError as err:
        if not err.status:
            raise
        raise refusal(f"the track's {what}", err.reason, given) from err
