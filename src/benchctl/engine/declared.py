"""What a track requires of a node: indices, data streams and templates."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.engine.variant import flat, whole_names
from benchctl.errors import BenchctlError
from benchctl.results.plan import CorpusFile
from benchctl.track.model import (
    DATA_STREAM,
    DATA_STREAMS,
    Index,
    IndexBody,
    TemplateKind,
    Track,
    as_plain_template,
)
from benchctl.track.operations.common import names_unknown

EVERYTHING = "_all"
WHAT_TO_DO = (
    "measure a distribution that has what it asks for (--distribution VARIANT=PATH|URL; the usual ones carry "
    "the core modules only), or change the track"
)
"""About a mapping, setting or template that a node refuses."""

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
    """Where the documents of a track are: indices with their bodies, and names of data streams."""

    indices: tuple[Index, ...]
    data_streams: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, indices first."""
        return (*(index.name for index in self.indices), *self.data_streams)

    @property
    def shards(self) -> int:
        """Their primary shards in total; a data stream is assumed to have one."""
        return sum(index.body.shards for index in self.indices) + len(self.data_streams)

    @property
    def target(self) -> str:
        """All of them as a path component; `_all` when that would be too long, or there are none."""
        joined = ",".join(self.names)
        return joined if 0 < len(quote(joined)) <= _MOST_CHARACTERS else EVERYTHING


def places(track: Track, files: Iterable[CorpusFile] = ()) -> Places:
    """What a track declares, and the undeclared targets of its documents, which nodes create automatically.

    `files` are the documents, where they are known better than from the track.
    """
    goals = [(one.target_index, one.target_data_stream) for c in track.corpora for one in c.documents]
    goals += [(file.index, file.data_stream) for file in files]
    indices = {index.name: index for index in track.indices}
    streams = dict.fromkeys(track.data_streams)
    for index, stream in goals:
        if index is not None:
            indices.setdefault(index, Index(index, IndexBody()))
        if stream is not None:
            streams.setdefault(stream)
    return Places(tuple(indices.values()), tuple(streams))


def with_settings(wanted: Places, settings: Mapping[str, Any]) -> Places:
    """The same places, with settings that override those of every index.

    Names are complete, beginning with `index.`; data streams, whose settings are in templates, are
    unaffected.
    """
    if not settings:
        return wanted

    def changed(index: Index) -> Index:
        own: dict[str, Any] = {}
        for name, value in index.body.settings.items():
            own |= whole_names(flat(name, value))
        body = msgspec.structs.replace(index.body, settings={**own, **settings})
        return msgspec.structs.replace(index, body=body)

    return replace(wanted, indices=tuple(map(changed, wanted.indices)))


def make_all(client: SearchClient, track: Track, wanted: Places) -> None:
    """Create templates, then indices and data streams, on a node that has none of them.

    A node without data streams gets plain indices of their names, from the same templates.

    Raises:
        BenchctlError: the node refuses one of them, with its reason.
    """
    needs_streams = bool(wanted.data_streams) or any(DATA_STREAM in one.body for one in track.templates)
    streams = not needs_streams or _has_data_streams(client)
    for template in sorted(track.templates, key=lambda one: _ORDER.index(one.kind)):
        body = template.body if streams else as_plain_template(template.body, track.templates)
        with _explained(f"template '{template.name}'"):
            client.request("PUT", f"/{_PATHS[template.kind]}/{quote(template.name, safe='')}", body=body)
    for index in wanted.indices:
        with _explained(f"index '{index.name}'"):
            client.create_index(index.name, msgspec.to_builtins(index.body))
    for name in wanted.data_streams:
        with _explained(f"data stream '{name}'"):
            if streams:
                client.request("PUT", f"/_data_stream/{quote(name, safe='')}")
            else:
                client.create_index(name, {})


def stand_ins(client: SearchClient, names: Sequence[str]) -> tuple[str, ...]:
    """The data streams among these names that are plain indices on a node.

    Raises:
        NodeRequestError: the node does not answer.
    """
    if not names:
        return ()
    found = client.request("GET", "/_all/_alias", params={"expand_wildcards": "all"})
    return tuple(name for name in names if name in found)


def _has_data_streams(client: SearchClient) -> bool:
    try:
        client.request("GET", DATA_STREAMS)
    except NodeRequestError as err:
        if names_unknown(err.reason):
            return False
        raise
    return True


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Adds to a refusal what can be done about it."""
    try:
        yield
    except NodeRequestError as err:
        if not err.status:
            raise
        raise BenchctlError(
            f"the node refuses the track's {what}: {err.reason}",
            hint=WHAT_TO_DO,
        ) from err
