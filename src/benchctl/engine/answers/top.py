"""The first hits of an answer by their content, as far as two right answers must have the same."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from benchctl.results.answers import TopHits

TOP_HITS = 10
DIGEST_LENGTH = 16
BEGINNING_LENGTH = 120

# Scores are 32-bit floats, and a sum of a few of them may differ in its last bits.
SCORE_TOLERANCE = 1e-6

_DEFAULT_SIZE = 10
_CONTENT = ("_source", "fields")
# Where a document is in the index, not what it holds.
_PLACES_IN_INDEX = frozenset({"_doc", "_shard_doc"})
# Which documents these bring to the top is chance, or up to how the index was built.
_UNSETTLING = frozenset({"collapse", "knn", "rank", "rescore", "retriever", "terminate_after", "timeout"})

Hit = Mapping[str, Any]


def settled_columns(body: Mapping[str, Any]) -> int | None:
    """How many of a hit's sort values speak of its content; None for all of them.

    Those from `_doc` on follow from how the index was built.
    """
    names = _sort_names(body.get("sort"))
    return next((place for place, name in enumerate(names) if name in _PLACES_IN_INDEX), None)


def sort_values(body: Mapping[str, Any], hits: Sequence[Hit]) -> list[Any]:
    """Sort values of the hits, in order, without places in the index."""
    columns = settled_columns(body)
    if columns == 0:
        return []
    return [hit["sort"][:columns] for hit in hits if "sort" in hit]


def scores(hits: Sequence[Hit]) -> tuple[float, ...]:
    """Scores of the first hits; empty where something else sorts them."""
    found = [hit.get("_score") for hit in hits[:TOP_HITS] if "sort" not in hit]
    return tuple(float(score) for score in found if score is not None)


def top_hits(
    body: Mapping[str, Any], params: Mapping[str, str], total: int | None, hits: Sequence[Hit]
) -> tuple[TopHits, ...]:
    """The first hits in groups that sort alike, without those of which the answer shows only some.

    Args:
        body: as asked.
        params: of the URL, as asked.
        total: documents matched, as far as it was counted.
        hits: as answered.

    Returns:
        Groups that begin among the first ten hits. None at all where the order of hits means nothing, or
        hits come without their content.
    """
    if _unsettled(body, params) or not all(any(key in hit for key in _CONTENT) for hit in hits):
        return ()
    groups = list(_groups(body, hits))
    page = {"size": _DEFAULT_SIZE, **body, **params}
    if groups and len(hits) >= int(page["size"]) and total != len(hits):
        # Behind the last hit there may be others that sort like it.
        groups.pop()
    if groups and page.get("from"):
        groups.pop(0)
    return tuple(
        TopHits(
            first=first + 1,
            documents=len(group),
            by=_key(body, group[0]),
            digest=_digest(group),
            begins=_beginning(group[0]) if first == 0 and len(group) == 1 else "",
        )
        for first, group in groups
        if first < TOP_HITS
    )


def _unsettled(body: Mapping[str, Any], params: Mapping[str, str]) -> bool:
    """Whether which documents are at the top is no matter of what they hold."""
    if settled_columns(body) == 0 or not _UNSETTLING.isdisjoint({*body, *params}):
        return True
    return "knn" in _keys(body.get("query")) or "sort" in params


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _keys(one)


def _sort_names(sort: object) -> list[str]:
    """Fields of a sort, in any of the forms that a body may have it."""
    if isinstance(sort, list):
        return [name for one in sort for name in _sort_names(one)]
    if isinstance(sort, Mapping):
        return list(sort)
    return [sort] if isinstance(sort, str) else []


def _key(body: Mapping[str, Any], hit: Hit) -> Any:  # noqa: ANN401 - sort values may be of any type
    """What places a hit."""
    return hit["sort"][: settled_columns(body)] if "sort" in hit else hit.get("_score")


def _groups(body: Mapping[str, Any], hits: Sequence[Hit]) -> Iterator[tuple[int, list[Hit]]]:
    """Neighbours that sort alike, each group with the place of its first hit."""
    first = 0
    for place in range(1, len(hits) + 1):
        if place == len(hits) or not _alike(_key(body, hits[place - 1]), _key(body, hits[place])):
            yield first, list(hits[first:place])
            first = place


def _alike(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SCORE_TOLERANCE)
    return one == other


def _content(hit: Hit) -> bytes:
    return msgspec.json.encode({key: hit[key] for key in _CONTENT if key in hit}, order="sorted")


def _digest(group: Sequence[Hit]) -> str:
    parts = sorted(hashlib.sha256(_content(hit)).digest() for hit in group)
    return hashlib.sha256(b"".join(parts)).hexdigest()[:DIGEST_LENGTH]


def _beginning(hit: Hit) -> str:
    shown = next(hit[key] for key in _CONTENT if key in hit)
    return msgspec.json.encode(shown).decode()[:BEGINNING_LENGTH]
