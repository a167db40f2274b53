"""Makes new tracks: of a live cluster's index or another track, with given searches or those of a log."""

import codecs
import json
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import zstandard

from benchctl.corpus.indexed import unpacked
from benchctl.corpus.query_log import EXPORT
from benchctl.corpus.source import names_of
from benchctl.disk import staging
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.engine.target import ClusterFacts
from benchctl.engine.variant import BUILT_IN_VERSIONS
from benchctl.errors import BenchctlError, UsageError
from benchctl.track.load import load_track
from benchctl.track.model import Documents, Track
from benchctl.yaml_file import read_typed

DOCUMENTS_FILE = "documents.json.zst"

_LEVEL = 6
_PAGE_HITS = 500
_KEEP_ALIVE = "5m"
_TIMEOUT_S = 600.0
_SEED = 1
_MOST_NAMED = 5
WARM_UP, ITERATIONS = 50, 100
# No log knows it: what one has must not become a template.
_FILL = f"\ue000{secrets.token_hex(16)}"
# Where a template would begin within a text.
_TEMPLATE = re.compile(r"\{(?=[{%#])")
# Reported by an index, but not accepted on creation; irrelevant.
_OWN = re.compile(
    r"index\.(uuid|creation_date|creation_date_string|provided_name|version|history|resize|hidden|upgraded"
    r"|verified_before_close|routing\.allocation|store\.snapshot|number_of_replicas|auto_expand_replicas)(\.|$)"
)
# Tied to its cluster: policies, pipelines and the like, which others lack.
_FOREIGN = re.compile(
    r"index\.(lifecycle|plugins|opendistro|opensearch|default_pipeline|final_pipeline|blocks|frozen|xpack"
    r"|search\.default_pipeline|remote_store|store\.type)(\.|$)"
)

Queries = Mapping[str, Mapping[str, Any]]
"""Name -> body of a search."""

Keys = dict[str, Any]
"""Keys of a track's file."""

Part = Callable[[Path, Keys], Keys]
"""Writes files of a track into its folder, given the keys so far, and returns further keys."""


def fill_in(expression: str) -> str:
    """Return what becomes an expression of Jinja2 in a file of a track, instead of a value."""
    return f"{_FILL}{expression}{_FILL}"


def write_track(folder: Path, *parts: Part) -> None:
    """Write a track of several parts; a failed attempt leaves nothing behind.

    Raises:
        UsageError: If the parts make no track.
        BenchctlError: If a part fails, or the disk cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with staging(folder.parent, f"write the track to {folder}") as building:
        ready = building / folder.name
        ready.mkdir()
        keys: Keys = {"version": 2}
        for part in parts:
            keys |= part(ready, keys)
        write_json(ready / "track.json", keys)
        load_track(str(ready), {})
        ready.rename(folder)


def write_json(path: Path, content: Any) -> None:
    """Write JSON in which Jinja2 finds no more than its expressions."""
    text = _TEMPLATE.sub("\\\\u007b", json.dumps(content, indent=2, ensure_ascii=False))
    path.write_text(re.sub(f'"{_FILL}(.*?){_FILL}"', r"{{ \1 }}", text) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Captured:
    """A captured track."""

    documents: int  # in the track
    held: int  # in the index
    left_out: tuple[str, ...]  # settings of the index that another cluster may lack


class _Index(msgspec.Struct):
    """A cluster's description of an index; a running cluster may be anything."""

    settings: dict[str, Any] = {}
    mappings: dict[str, Any] = {}


class _Hit(msgspec.Struct):
    id: str = msgspec.field(name="_id")
    source: dict[str, Any] = msgspec.field(name="_source")
    routing: str | None = msgspec.field(default=None, name="_routing")


class _Total(msgspec.Struct):
    value: int


class _Hits(msgspec.Struct):
    total: _Total
    hits: list[_Hit]


class _Shards(msgspec.Struct):
    failed: int


class _Page(msgspec.Struct):
    """The part of a search's response that is used."""

    hits: _Hits
    shards: _Shards = msgspec.field(name="_shards")
    scroll: str = msgspec.field(name="_scroll_id")
    timed_out: bool = False


def read_queries(path: Path) -> Queries:
    """Return the searches of a file, JSON or YAML: names and bodies.

    Raises:
        UsageError: If the file cannot be read, or does not map names to bodies of searches.
    """
    queries = read_typed(path, dict[str, dict[str, Any]]).value
    if not queries:
        raise UsageError(
            f"{path} has no searches", hint='e.g. {"lamps": {"query": {"match": {"name": "lamp"}}}}'
        )
    return queries


_NAMED_SUFFIXES = frozenset({".json", ".yml", ".yaml"})
_OF_LINES = frozenset({"source", "body", "_source", "top_queries", "timestamp", "@timestamp"})


def holds_names(path: Path) -> bool:
    """Return whether a file has names and bodies of searches, not a log of them.

    Raises:
        BenchctlError: If it cannot be read.
    """
    if path.suffix not in _NAMED_SUFFIXES:
        return False
    head = next(unpacked(path), b"").removeprefix(codecs.BOM_UTF8)
    try:
        first = msgspec.json.decode(head.partition(b"\n")[0])
    except (msgspec.DecodeError, RecursionError):
        # Names may come on lines of their own; of YAML, JSON is one form.
        is_object = path.suffix != ".json" or head.lstrip().startswith(b"{")
        return is_object and EXPORT.match(head) is None
    return not (isinstance(first, dict) and _OF_LINES & first.keys())


def capture(
    client: SearchClient,
    facts: ClusterFacts,
    name: str,
    folder: Path,
    *,
    docs: int | None,
    searches: Part,
    progress: Callable[[int], None],
) -> Captured:
    """Make a track of the index `name`, with about `docs` of its documents or all; the cluster is only read.

    A failed attempt leaves nothing behind. `progress` is called with the number of documents so far.

    Raises:
        UsageError: If the index cannot become a track.
        BenchctlError: If the cluster refuses, its responses are incomplete, or the disk cannot be written.
    """
    index = _described(client, name)
    held = client.count(name)
    left_out = sorted(key for key in index.settings if _FOREIGN.match(key))
    documents = 0

    def fill(ready: Path, _keys: Keys) -> Keys:
        nonlocal documents
        packer = zstandard.ZstdCompressor(level=_LEVEL)
        with (ready / DOCUMENTS_FILE).open("wb") as file, packer.stream_writer(file) as sink:
            for page in _pages(client, name, None if docs is None else docs / max(held, 1)):
                for hit in page:
                    if hit.routing is not None:
                        raise UsageError(
                            f"document '{hit.id}' of the index '{name}' has a routing value, which tracks "
                            "from an index do not keep"
                        )
                    text = json.dumps(hit.source, ensure_ascii=False, separators=(",", ":"))
                    # Half of a surrogate pair becomes what JSON has for it.
                    sink.write(text.encode(errors="backslashreplace") + b"\n")
                documents += len(page)
                progress(documents)
        if documents == 0:
            raise UsageError(
                f"the index '{name}' has no documents"
                if held == 0
                else f"none of {held:,} documents of the index '{name}' was drawn (expected more --docs)"
            )
        excluded = {*left_out, *(key for key in index.settings if _OWN.match(key))}
        settings = {key: value for key, value in sorted(index.settings.items()) if key not in excluded}
        body = {"settings": settings | {"index.number_of_replicas": 0}, "mappings": index.mappings}
        write_json(ready / "index.json", body)
        source = f"{name}, from {facts.engine} {facts.version}"
        files = [{"source-file": DOCUMENTS_FILE, "document-count": documents}]
        return {
            "description": f"{documents:,} of {held:,} documents of {source}",
            "indices": [{"name": name, "body": "index.json"}],
            "corpora": [{"name": name, "documents": files}],
        }

    write_track(folder, fill, searches)
    return Captured(documents, held, tuple(left_out))


def of_track(track: Track, where: Path) -> Part:
    """Return the part of a track with the indices and documents of another; `where` is the folder of that.

    Raises:
        UsageError: If that has no plain indices.
    """
    if not track.indices:
        raise UsageError(f"track '{track.name}' declares no indices, only data streams or templates")

    def fill(ready: Path, _keys: Keys) -> Keys:
        indices = []
        for number, index in enumerate(track.indices):
            names = {}
            for engine in BUILT_IN_VERSIONS:
                body = (engine == "opensearch" and index.opensearch) or index.body
                names[engine] = (
                    f"index-{number}-{engine}.json" if index.opensearch else f"index-{number}.json"
                )
                write_json(ready / names[engine], msgspec.to_builtins(body))
            body_names = names if index.opensearch else names["elasticsearch"]
            indices.append({"name": index.name, "body": body_names, "types": index.types})
        for path in (
            path for corpus in track.corpora for file in corpus.documents for path in _beside(file, where)
        ):
            shutil.copy2(path, ready / path.name)
        return {
            "description": f"documents of track {track.name}",
            "indices": indices,
            "corpora": [msgspec.to_builtins(corpus) for corpus in track.corpora],
            "generator": track.generator,
        }

    return fill


def _beside(file: Documents, folder: Path) -> list[Path]:
    return [path for path in (folder / name for name in names_of(file)) if path.is_file()][:1]


def _described(client: SearchClient, name: str) -> _Index:
    """Read settings and mappings of a single index."""
    path = f"/{quote(name, safe=',*')}"
    try:
        indices = msgspec.convert(
            client.request("GET", path, params={"flat_settings": "true"}), dict[str, _Index]
        )
    except NodeRequestError as err:
        if err.status == HTTPStatus.NOT_FOUND:
            raise UsageError(f"the cluster has no index '{name}'") from err
        raise
    except msgspec.ValidationError as err:
        raise BenchctlError(f"the cluster describes the index '{name}' in an unknown form: {err}") from err
    if len(indices) != 1:
        names = ", ".join(sorted(indices)[:_MOST_NAMED]) or "none"
        raise UsageError(f"'{name}' matches {len(indices)} indices: {names}", hint="name one of them")
    (index,) = indices.values()
    source = index.mappings.get("_source", {})
    if source.get("enabled") in {False, "false"} or source.get("includes") or source.get("excludes"):
        raise UsageError(
            f"the index '{name}' does not keep whole documents (`_source` is disabled or excludes fields)"
        )
    return index


def _pages(client: SearchClient, name: str, share: float | None) -> Iterator[list[_Hit]]:
    """Yield the documents in index order, as of the first page: a random share, or all."""
    drawn = {
        "query": {"function_score": {
            "random_score": {"seed": _SEED, "field": "_seq_no"}, "boost_mode": "replace"}},
        "min_score": 1 - (share or 0),
    }  # fmt: skip
    every: dict[str, Any] = {"query": {"match_all": {}}}
    body = {"size": _PAGE_HITS, "sort": ["_doc"], "track_total_hits": True}
    body |= every if share is None or share >= 1 else drawn
    page = _page(client.search(name, body, {"scroll": _KEEP_ALIVE}, _TIMEOUT_S))
    try:
        left = page.hits.total.value
        while left > 0:
            if page.shards.failed or page.timed_out or not page.hits.hits:
                raise BenchctlError(
                    f"the cluster gave an incomplete page: {page.shards.failed} shards failed, "
                    f"{left:,} documents were still to come",
                    hint="check whether all shards of the index are available",
                )
            yield page.hits.hits
            left -= len(page.hits.hits)
            if left > 0:
                again = {"scroll": _KEEP_ALIVE, "scroll_id": page.scroll}
                page = _page(client.request("POST", "/_search/scroll", body=again, timeout_s=_TIMEOUT_S))
    finally:
        with suppress(NodeRequestError):  # it ends by itself, a little later
            client.request("DELETE", "/_search/scroll", body={"scroll_id": [page.scroll]})


def _page(answer: object) -> _Page:
    try:
        return msgspec.convert(answer, _Page)
    except msgspec.ValidationError as err:
        raise BenchctlError(
            f"the cluster answers a search with something else: {err}",
            hint="check that it is Elasticsearch from version 7 on, or OpenSearch",
        ) from err


def named(queries: Queries) -> Part:
    """Return the part of a track with searches of these names."""

    def fill(_ready: Path, _keys: Keys) -> Keys:
        counts = {"warmup-iterations": WARM_UP, "iterations": ITERATIONS}
        return {
            "operations": [
                {"name": query, "operation-type": "search", "body": body} for query, body in queries.items()
            ],
            "schedule": [{"operation": query, **counts} for query in queries],
        }

    return fill
