"""Vectors of data sets: searches for the nearest ones, held against the exact ones, and bulk requests."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.corpus.neighbours import (
    VectorContext,
    check_vectors,
    exact_neighbours,
    read_neighbours,
    read_vectors,
)
from benchctl.corpus.vectors import Space, Vectors, generated_groups, generated_queries, generated_vectors
from benchctl.errors import BenchctlError
from benchctl.load.transport import Answer, Judge, Request
from benchctl.load.work import (
    Source,
    WorkContext,
    Workload,
    WorkOrder,
    cannot,
    numbered,
    with_body,
)
from benchctl.load.work.bulk import open_sources
from benchctl.load.work.judges import UNDECODABLE, shorten
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.model import TrackOperation
from benchctl.track.operations.catalogue import parts_of
from benchctl.track.operations.search import Bulk, BulkVectors, VectorSearch

Neighbours = npt.NDArray[np.int64]

_QUERIES: Final = 1_000  # of the generated corpus, unless the operation says how many
_NUMBER: Final = "number"  # the field of generated documents that has theirs
_ID: Final = "_id"
_MARK: Final = "benchctl puts the vector here"
_MARKED: Final = msgspec.json.encode(_MARK)
_FORMAT: Final = "hdf5"
_DECIMALS: Final = (7, 4)
_KEPT: Final = 4096  # vectors of a task, encoded, and their requests
_BLOCK: Final = 256  # vectors that are read at a time


# The answer against the exact neighbours.


@lru_cache
def _numbers_of(field: str) -> Callable[[bytes], list[int]]:
    """Return what reads the numbers of an answer's hits: of a field, or of the `_id` where a hit lacks it.

    Runs between requests, so it decodes nothing else.
    """
    fields = msgspec.defstruct("Fields", [("number", list[Any], [])], rename={"number": field}, frozen=True)
    hit = msgspec.defstruct("Hit", [("id", str, ""), ("fields", fields, fields())], rename={"id": _ID})
    hits = msgspec.defstruct("Hits", [("hits", list[hit], [])])  # type: ignore[valid-type]
    decode = msgspec.json.Decoder(msgspec.defstruct("Found", [("hits", hits)])).decode

    def read(body: bytes) -> list[int]:
        found: Any = decode(body)
        return [int(one.fields.number[0] if one.fields.number else one.id) for one in found.hits.hits]

    return read


_NO_NUMBERS: tuple[type[Exception], ...] = (*UNDECODABLE, ValueError, TypeError, IndexError)


def recall(found: Sequence[int], exact: Collection[int], k: int) -> float | None:
    """Return the share of the exact neighbours among the k first hits; None where there is nothing to find.

    Args:
        found: numbers of hits, best first; only the first of equal ones counts.
        exact: the numbers of the k nearest; fewer where fewer exist.
        k: how many were asked for.
    """
    if not exact:
        return None
    return sum(number in exact for number in islice(dict.fromkeys(found), k)) / len(exact)


def _judged(judge: Judge, exact: Neighbours, field: str) -> Judge:
    """Return a judge that also holds answers against the neighbours of a query, -1 for none."""
    nearest = frozenset(number for number in exact.tolist() if number >= 0)
    k, read = len(exact), _numbers_of(field)

    def against(status: int, body: bytes) -> Answer:
        answer = judge(status, body)
        # What is accepted without having been searched has no time of the engine.
        if answer.outcome is not Outcome.OK or answer.took_ms < 0:
            return answer
        try:
            found = read(body)
        except _NO_NUMBERS as err:
            reason = shorten(f"no recall: the '{field}' of a hit is not the number of a vector: {err}")
            return msgspec.structs.replace(answer, outcome=Outcome.BAD_BODY, reason=reason)
        return msgspec.structs.replace(answer, recall=recall(found, nearest, k))

    return against


# Where vectors and their neighbours come from.

_SPACES: Mapping[str, Space] = {
    "l2_norm": "l2", "l2": "l2", "cosine": "cosine", "cosinesimil": "cosine", "dot_product": "dot_product",
    "max_inner_product": "dot_product", "innerproduct": "dot_product",
}  # fmt: skip
_USUAL_SPACE: Mapping[EngineName, str] = {"elasticsearch": "cosine", "opensearch": "l2"}


def _wrong(operation: VectorSearch | BulkVectors, what: str, hint: str = "") -> BenchctlError:
    return BenchctlError(f"operation '{operation.name}': {what}", hint=hint)


def _mapped(operation: VectorSearch | BulkVectors, context: WorkContext) -> tuple[int | None, str | None]:
    """The dimensions and the space of a field, by the mapping of its index, or of any; None where unknown."""
    bodies = context.indices or {context.index_name: context.index_body}
    own = bodies.get(operation.target or "")
    for body in bodies.values() if own is None else (own,):
        entry: Any = body.get("mappings", {})
        for key in (operation.field or "").split("."):
            entry = entry.get("properties", {}).get(key, {})
            if entry.get("type") == "nested":
                what = f"field '{operation.field}' is nested, and benchctl searches for one vector a document"
                raise _wrong(operation, what, "exclude the task, or search with a body of your own")
        if entry.get("type") in ("dense_vector", "knn_vector"):
            method = entry.get("method") or {}
            named = entry.get("similarity") or method.get("space_type") or entry.get("space_type")
            return entry.get("dims") or entry.get("dimension"), named or _USUAL_SPACE[context.engine]
    return None, None


def _file_of(
    operation: VectorSearch | BulkVectors,
    context: WorkContext,
    which: Literal["data_set", "neighbors_data_set"],
) -> Path | None:
    """Return the file of a data set; None where the operation names none."""
    path, corpus = getattr(operation, f"{which}_path"), getattr(operation, f"{which}_corpus")
    written = getattr(operation, f"{which}_format") or operation.data_set_format
    if (path or corpus) and written != _FORMAT:
        what = f"benchctl reads vectors of {_FORMAT} files, not of {written}"
        raise _wrong(operation, what, "exclude the task, or convert the file")
    if path or not corpus:
        return Path(path) if path else None
    if (corpus, _FORMAT) not in context.data_sets:
        what = f"the track has no corpus '{corpus}' of source-format {_FORMAT}"
        raise _wrong(operation, what, f"declare it, or give its file as {which}_path")
    return context.data_sets[corpus, _FORMAT]


@dataclass(frozen=True)
class _Queries:
    """Vectors to search for, and their exact neighbours."""

    rows: npt.NDArray[np.float32]  # vectors, shape (queries, dims)
    # Numbers of the nearest vectors, nearest first, -1 for none, shape (queries, k); None where unknown.
    exact: Neighbours | None
    id_field: str  # that has the number of a hit


def _queries(operation: VectorSearch, context: WorkContext, k: int, documents: int | None = None) -> _Queries:
    """Open queries and exact neighbours, which are found once for each corpus, k and filter.

    `documents` is how many vectors are searched, None if unknown.
    """
    file = _file_of(operation, context, "data_set")
    if file is None:
        return _generated(operation, context, k)
    vectors = _fitting(operation, context, read_vectors(file, "test"))
    exact = None
    if operation.has_truth:
        truth = _file_of(operation, context, "neighbors_data_set") or file
        exact = read_neighbours(truth, documents=documents, queries=vectors.count, k=k)
    return _Queries(vectors.rows(), exact, operation.id_field_name or _ID)


def _generated(operation: VectorSearch, context: WorkContext, k: int) -> _Queries:
    corpus = context.corpus
    if corpus is None or corpus.generator != "vectors":
        hint = "give data_set_path or data_set_corpus, or use a track whose generator is vectors"
        raise _wrong(operation, "no vectors to search for", hint)
    asked = generated_queries(corpus.seed, _QUERIES if operation.takes_all else operation.num_vectors or 0)
    vectors = _fitting(operation, context, asked)
    exact = None
    if operation.has_truth and context.home is not None:
        _, mapped = _mapped(operation, context)
        named = mapped or operation.space_type or "l2"
        if named not in _SPACES:
            hint = f"use one of {', '.join(_SPACES)}, or calculate-recall: false"
            raise _wrong(operation, f"cannot compute exact neighbours by {named} are unknown", hint)
        space = _SPACES[named]
        groups = operation.groups
        numbers = generated_groups(corpus.seed, corpus.documents)
        selected = None if groups is None else np.isin(numbers, list(groups))
        base = generated_vectors(corpus.seed, corpus.documents)
        path = exact_neighbours(context.home, base, vectors, k, space, selected=selected)
        exact = np.load(path, mmap_mode="r")
    return _Queries(vectors.rows(), exact, operation.id_field_name or _NUMBER)


def _fitting(operation: VectorSearch | BulkVectors, context: WorkContext, vectors: Vectors) -> Vectors:
    """Return as many vectors as the operation takes, if they have the dimensions of its field."""
    dims, _ = _mapped(operation, context)
    if dims not in (None, vectors.dims):
        what = f"{vectors.name} has {vectors.dims:,} dimensions, and field '{operation.field}' {dims:,}"
        raise _wrong(operation, what, "correct the track's mapping, or name another data set")
    most = vectors.count if operation.takes_all else operation.num_vectors or 0
    return replace(vectors, count=min(most, vectors.count))


# Requests.


def _template(operation: VectorSearch, engine: EngineName, k: int, id_field: str) -> dict[str, Any]:
    """Return the body of a search, with a mark in place of the vector."""
    own: dict[str, Any] = dict(operation.body)
    common = {"k": k, "filter": operation.applied_filter}
    candidates, factor, field = operation.candidates, operation.oversample_factor, str(operation.field)
    if engine == "elasticsearch":
        # Required before 8.13; later versions have the same default.
        least = candidates or min(math.ceil(1.5 * k), 10_000)
        rescored = None if factor is None else {"oversample": factor}
        made = {"field": field, "query_vector": _MARK, "num_candidates": least, "rescore_vector": rescored}
        own.pop("query", None)  # its hits would stand among the neighbours
        own["knn"] = {**_part(own, "knn"), **_given({**common, **made})}
    else:
        searched = None if candidates is None else {"ef_search": candidates}
        rescored = None if factor is None else {"oversample_factor": factor}
        made = {"vector": _MARK, "method_parameters": searched, "rescore": rescored}
        near = {"knn": {field: {**_part(own, "query", "knn", field), **_given({**common, **made})}}}
        both = {"bool": {"must": [near], "filter": operation.filter_body}}
        own["query"] = both if operation.filter_type == "boolean" else near
    if operation.filter_type == "post_filter":
        own["post_filter"] = operation.filter_body
    if operation.profile_query:
        own["profile"] = True
    ids = {} if id_field == _ID else {"docvalue_fields": [id_field]}
    return {"size": k, "_source": False, **ids, **own}


def _given(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parts.items() if value is not None}


def _part(body: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        found = body.get(key)
        body = found if isinstance(found, Mapping) else {}
    return body


def _refusal(operation: VectorSearch, engine: EngineName) -> str:
    """Return why an operation cannot be done; empty where it can."""
    if any(part is not None for part in (operation.min_score, operation.max_distance)):
        return "vector-search by radius: benchctl searches for the k nearest"
    kinds = ("efficient", "post_filter", *(["boolean"] if engine == "opensearch" else []))
    if operation.filter_type and operation.filter_type not in kinds:
        return f"vector-search with filter_type {operation.filter_type}: not {', '.join(kinds)}"
    return ""


def open_data_set(
    operation: VectorSearch, order: WorkOrder, request: Callable[[Mapping[str, Any]], Request]
) -> Workload:
    """Open a search for each vector of a data set, one after the other, over and over.

    Request i over all clients asks for vector i, modulo their number.

    Args:
        operation: whose vectors come from a data set.
        order: of its task.
        request: makes the request of a body.

    Raises:
        BenchctlError: If the data set, or what the operation says of it, cannot be used.
    """
    if reason := _refusal(operation, order.context.engine):
        return cannot(reason)
    if operation.field is None or operation.k is None:
        missing = "field" if operation.field is None else "k"
        raise _wrong(operation, f"vectors of a data set require {missing}")
    queries = _queries(operation, order.context, operation.k)
    body = _template(operation, order.context.engine, operation.k, queries.id_field)
    plain, bodies = request(body), order.bodies(operation, body)
    count, exact = len(queries.rows), queries.exact

    @lru_cache(maxsize=_KEPT)
    def encoded(query: int) -> bytes:
        return encode(queries.rows[query : query + 1])[0]

    # Whatever is made here, between a response and the next request, looks like a slow engine.
    @lru_cache(maxsize=_KEPT)
    def asked(query: int, template: bytes) -> Request:
        made = with_body(plain, template.replace(_MARKED, encoded(query), 1))
        if exact is None:
            return made
        return msgspec.structs.replace(made, judge=_judged(plain.judge, exact[query], queries.id_field))

    def make(number: int) -> Request:
        return asked(number % count, bodies.encode(number))

    made = numbered(make, order.clients)
    return replace(made, endless=False, requests=count * operation.repetitions)


def encode(rows: npt.NDArray[np.float32]) -> list[bytes]:
    """Return vectors as JSON, most in few decimals, that means the same float32, shape (n, dims)."""
    exact = values = rows.astype(np.float64)
    for decimals in _DECIMALS:
        short = np.round(exact, decimals)
        values = np.where(short.astype(np.float32) == rows, short, values)
    return [msgspec.json.encode(row) for row in values.tolist()]


def _documents(vectors: Vectors, field: str, id_field: str | None, start: int = 0) -> Iterator[bytes]:
    """Yield two bulk lines for each vector, from one on; without an id field, its number is the `_id`."""
    key, own = msgspec.json.encode(field), msgspec.json.encode(id_field)
    for first in range(start, vectors.count, _BLOCK):
        last = min(first + _BLOCK, vectors.count)
        rows = zip(range(first, last), encode(vectors.rows(first, last)), strict=True)
        if id_field is None:
            lines = [b'{"index":{"_id":"%d"}}\n{%b:%b}\n' % (number, key, row) for number, row in rows]
        else:
            lines = [b'{"index":{}}\n{%b:%b,%b:%d}\n' % (key, row, own, number) for number, row in rows]
        yield b"".join(lines)


def _indexed(operation: BulkVectors, context: WorkContext) -> tuple[Vectors, str]:
    """Return the vectors that are indexed, and the field that gets them."""
    file = _file_of(operation, context, "data_set")
    if file is None or operation.field is None:
        missing = "field" if file else "data_set_path or data_set_corpus"
        raise _wrong(operation, f"vectors of a data set require {missing}")
    return _fitting(operation, context, read_vectors(file)), operation.field


def check_data_sets(operations: Iterable[TrackOperation], context: WorkContext) -> None:
    """Read the vectors that a challenge indexes and searches for, which takes long for large files.

    Raises:
        BenchctlError: If a vector cannot be indexed or searched for, or published neighbours are those in
            another corpus than the one that the challenge indexes.
    """
    known = [part for operation in operations for part in parts_of(operation)]
    counts: Counter[str] = Counter()
    for filling in (operation for operation in known if isinstance(operation, BulkVectors)):
        _check_rows(filling, context, "train")
        counts[filling.index or context.index_name] += _indexed(filling, context)[0].count
    for search in (operation for operation in known if isinstance(operation, VectorSearch)):
        _check_rows(search, context, "test")
        if search.k is not None and _file_of(search, context, "data_set") is not None:
            _queries(search, context, search.k, counts.get(search.index or context.index_name))


def _check_rows(operation: VectorSearch | BulkVectors, context: WorkContext, part: VectorContext) -> None:
    file = _file_of(operation, context, "data_set")
    if file is not None:
        _, mapped = _mapped(operation, context)
        _check_file(file, part, _SPACES.get(mapped or "l2", "l2"))


@lru_cache
def _check_file(path: Path, part: VectorContext, space: Space) -> None:
    """Read a file once for all variants and points of a sweep."""
    check_vectors(read_vectors(path, part), space)


def open_bulk_vectors(operation: BulkVectors, order: WorkOrder) -> Workload:
    """Open the indexing of the vectors of a data set, shared among the clients.

    Raises:
        BenchctlError: If there is no data set, or it cannot be used.
    """
    vectors, indexed = _indexed(operation, order.context)
    field = None if operation.id_field_name == _ID else operation.id_field_name or None
    lines = partial(_documents, vectors, indexed, field)
    index = operation.index or order.context.index_name
    source = Source(lines, vectors.count, index=index, has_actions=True)
    common = {key: getattr(operation, key) for key in ("headers", "opaque_id", "retry_on_429")}
    common |= {"request_params": operation.request_params, "request_timeout": operation.request_timeout}
    bulk = Bulk(name=operation.name, bulk_size=operation.bulk_size, **common)
    return open_sources(bulk, order, [source])
