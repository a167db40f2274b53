"""Makes a track of a live cluster's index: its body, a sample of its documents, suitable searches."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import zstandard

from benchctl.disk import disk_errors
from benchctl.engine.client import SearchClient
from benchctl.engine.live_index import (
    Draw,
    Hit,
    LiveIndex,
    Operation,
    integer_setting,
    page_size,
    plan_draw,
    read_hits,
    read_live_index,
    read_page,
    suggest_operations,
)
from benchctl.engine.target import ClusterFacts
from benchctl.errors import BenchctlError, UsageError
from benchctl.track.load import load_track

DOCUMENTS_FILE = "documents.json.zst"

_FRAME_BYTES = 4 * 2**20  # separate frames can be decompressed in parallel
_LEVEL = 6
# Where a template would begin within a text.
_TEMPLATE = re.compile(r"\{(?=[{%#])")
_LOOKED_AT = 10  # documents whose size is representative
_TASK = """    {
      "operation": %s,
      "warmup-iterations": {{ warmup_iterations | default(50) }},
      "iterations": {{ iterations | default(100) }}
    }"""
_CHALLENGE = """{
  "name": "search",
  "description": "Searches on an existing index",
  "default": true,
  "schedule": [
%s
  ]
}
"""
_MAIN = """{%% import "rally.helpers" as rally with context %%}
{
  "version": 2,
  "description": %s,
  "indices": %s,
  "corpora": %s,
  "operations": [
    {{ rally.collect(parts="operations/*.json") }}
  ],
  "challenges": [
    {{ rally.collect(parts="challenges/*.json") }}
  ]
}
"""


@dataclass(frozen=True)
class Captured:
    """A captured track."""

    folder: Path
    documents: int  # in the track
    held: int  # in the index
    uncompressed_bytes: int
    compressed_bytes: int
    operations: tuple[str, ...]
    left_out: tuple[str, ...]  # settings of the index that another cluster may lack


@dataclass(frozen=True)
class _Written:
    documents: int
    uncompressed_bytes: int
    compressed_bytes: int


def capture(
    client: SearchClient,
    facts: ClusterFacts,
    name: str,
    folder: Path,
    *,
    docs: int | None,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Captured:
    """Make a track of the index `name`, with `docs` of its documents or all; the cluster is only read.

    The folder must not exist; a failed attempt leaves nothing behind. `progress` is called with the number of
    documents so far.

    Raises:
        UsageError: If the directory exists, or the index cannot become a track.
        BenchctlError: If the cluster refuses, or its answers are incomplete.
    """
    index = read_live_index(client, name)
    draw = plan_draw(client, name, docs=docs, seed=seed)
    operations = suggest_operations(client, index)
    with _construction(folder) as building:
        first = read_page(
            client.search(index.name, {"size": _LOOKED_AT, "query": {"match_all": {}}})
        ).hits.hits
        mean_bytes = sum(len(_encoded(hit)) for hit in first) / max(len(first), 1)
        pages = read_hits(client, name, draw, page=page_size(mean_bytes, index.largest_page))
        written = _write_documents(building / DOCUMENTS_FILE, pages, index, progress or (lambda _: None))
        _write_track(building, index, operations, written, _description(index, draw, written, facts))
        load_track(str(building), {})
    return Captured(
        folder,
        written.documents,
        draw.held,
        written.uncompressed_bytes,
        written.compressed_bytes,
        tuple(operation["name"] for operation in operations),
        index.left_out,
    )


def check_free(folder: Path) -> None:
    """Refuse an existing folder.

    Raises:
        UsageError: If the directory exists.
    """
    if folder.exists():
        raise UsageError(
            f"{folder} already exists", hint="choose another directory with --output, or remove it first"
        )


@contextmanager
def _construction(folder: Path) -> Iterator[Path]:
    """Make a directory beside this one that replaces it on success and is removed otherwise."""
    check_free(folder)
    building = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        building.mkdir(parents=True)
    except OSError as err:
        raise UsageError(f"cannot make {building}: {err.strerror}") from err
    try:
        with disk_errors(f"write the track to {building}"):
            yield building
            building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _write_documents(
    path: Path, pages: Iterator[list[Hit]], index: LiveIndex, progress: Callable[[int], None]
) -> _Written:
    """Documents, one per line, preceded by action lines if the index needs routing."""
    packer = zstandard.ZstdCompressor(level=_LEVEL)
    documents = raw_bytes = 0
    waiting = bytearray()
    with path.open("wb") as file:
        for page in pages:
            for hit in page:
                line = _encoded(hit["_source"]) + b"\n"
                if index.is_routed:
                    # Parents are found by their ids.
                    routing = {"routing": hit["_routing"]} if "_routing" in hit else {}
                    action = {"index": {"_index": index.name, "_id": hit["_id"], **routing}}
                    line = _encoded(action) + b"\n" + line
                waiting += line
                raw_bytes += len(line)
                if len(waiting) >= _FRAME_BYTES:
                    file.write(packer.compress(bytes(waiting)))
                    waiting.clear()
            documents += len(page)
            progress(documents)
        if waiting:
            file.write(packer.compress(bytes(waiting)))
    return _Written(documents, raw_bytes, path.stat().st_size)


def _encoded(value: object) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as err:
        raise BenchctlError("a document holds a number that is none in JSON") from err
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, separators=(",", ":")).encode()


def _write_track(
    folder: Path, index: LiveIndex, operations: tuple[Operation, ...], written: _Written, description: str
) -> None:
    documents = {
        "source-file": DOCUMENTS_FILE,
        "document-count": written.documents,
        "compressed-bytes": written.compressed_bytes,
        "uncompressed-bytes": written.uncompressed_bytes,
        **({"includes-action-and-meta-data": True} if index.is_routed else {}),
    }
    values = (
        description,
        [{"name": index.name, "body": "index.json"}],
        [{"name": index.name, "documents": [documents]}],
    )
    main = _MAIN % tuple(_literal(value).replace("\n", "\n  ") for value in values)
    tasks = ",\n".join(_TASK % _literal(operation["name"]) for operation in operations)
    files = {
        "track.json": main,
        "index.json": _index_body(index),
        "operations/default.json": ",\n".join(map(_literal, operations)) + "\n",
        "challenges/default.json": _CHALLENGE % tasks,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _index_body(index: LiveIndex) -> str:
    """The body with shards and replicas as parameters: a single node cannot have replicas."""
    settings = dict(index.settings)
    shards = settings.pop("index.number_of_shards", "1")
    settings.pop("index.number_of_replicas", None)
    settings.pop("index.auto_expand_replicas", None)
    body = {"settings": settings, "mappings": index.mappings, "aliases": index.aliases}
    head = (
        f'"index.number_of_shards": {{{{ number_of_shards | default({integer_setting(shards)}) }}}},\n'
        '    "index.number_of_replicas": {{ number_of_replicas | default(0) }}'
    )
    text = _literal({key: value for key, value in body.items() if value or key == "settings"})
    begin = '"settings": {'
    further = "\n  " if text[text.index(begin) + len(begin)] == "}" else ","
    return text.replace(begin, f"{begin}\n    {head}{further}", 1) + "\n"


def _literal(value: object) -> str:
    """JSON that Jinja2 does not interpret."""
    return _TEMPLATE.sub("\\\\u007b", json.dumps(value, indent=2, ensure_ascii=False))


def _description(index: LiveIndex, draw: Draw, written: _Written, facts: ClusterFacts) -> str:
    share = (
        f"all {draw.held:,} documents"
        if written.documents == draw.held
        else f"{written.documents:,} of {draw.held:,} documents, drawn at random with seed {draw.seed}"
    )
    return f"{index.name}, {share}, from {facts.engine} {facts.version}"
