"""Answers of engines to searches, without what may legitimately differ, and what differs between two.

Two engines agree if their answers have as many hits, counted exactly, and the same digests of their top hits
and of their aggregations. Two answers of one index to the same request have the same hits by id as well.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

# Sort fields that tell where a document is in the index, not what it holds.
_PLACES_IN_INDEX = frozenset({"_doc", "_shard_doc"})
_SUB_AGGREGATIONS = ("aggs", "aggregations")
# Not compared: sketches depend on the order of the documents, and on chance; what scores alike comes in any
# order, and which of it makes it into the size is arbitrary.
_ESTIMATES = frozenset(
    {"percentiles", "percentile_ranks", "median_absolute_deviation", "boxplot", "random_sampler", "top_hits"}
    | {"significant_terms", "significant_text", "rare_terms", "sampler", "diversified_sampler"}
    | {"variable_width_histogram"}
)
# Every shard proposes its own best, and the engine decides which documents it holds.
_ESTIMATES_OVER_SHARDS = _ESTIMATES | {"terms", "multi_terms"}
# Sums of doubles depend on the order of the documents in their last digits; integers up to here are exact.
_DIGITS = 9
_EXACT = 2.0**53


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """An engine's answer to one operation, without what may legitimately differ."""

    total: int | None = None  # documents matched, counted exactly; None when the engine did not
    returned: int = 0  # number of hits in the answer
    # Digest of the sort values of the returned hits, in order. Ids are left out: documents with equal sort
    # values may come in any order.
    top_hits: str = ""
    aggregations: str = ""  # digest of the results of aggregations, without estimates
    # Digest of the ids of the returned hits, in no order, where the request sorts them by no value. Only
    # answers of one index have the same.
    ids: str = ""
    unsupported: str | None = None  # the node's reason when it cannot do the operation
    failed: str | None = None  # the node's reason when it refuses the request for another cause
    # Answers to the different requests of a log, of which this one is the sum; empty elsewhere.
    parts: "tuple[Answer, ...]" = ()


class _Total(msgspec.Struct):
    value: int
    relation: str = "eq"


class _Hit(msgspec.Struct):
    id: str = msgspec.field(name="_id", default="")
    sort: list[Any] = []


class _Hits(msgspec.Struct):
    # A bare number where the operation asks for `rest_total_hits_as_int`.
    total: _Total | int | None = None
    hits: list[_Hit] = []


class _Shards(msgspec.Struct):
    total: int = 1


class Found(msgspec.Struct):
    """The parts of a search's answer that are read; a running cluster may be anything."""

    hits: _Hits = msgspec.field(default_factory=_Hits)
    aggregations: Any = None
    shards: _Shards = msgspec.field(default_factory=_Shards, name="_shards")


def together(answers: list[Answer]) -> Answer:
    """Return the answers of a batch as one."""
    refused = next(
        (answer for answer in answers if answer.unsupported is not None or answer.failed is not None), None
    )
    if refused is not None:
        return refused
    totals = [answer.total for answer in answers if answer.total is not None]
    return Answer(
        total=sum(totals) if len(totals) == len(answers) else None,
        returned=sum(answer.returned for answer in answers),
        top_hits=_digest([answer.top_hits for answer in answers]),
        aggregations=_digest([answer.aggregations for answer in answers]),
        ids=_digest([answer.ids for answer in answers]),
    )


def of_log(answers: list[Answer]) -> Answer:
    """Return answers to different requests as one, in which those that failed have no hits."""
    good = [answer for answer in answers if answer.unsupported is None and answer.failed is None]
    if not good:
        return answers[0]
    return msgspec.structs.replace(together(good), parts=tuple(answers))


class _Batch(msgspec.Struct):
    responses: list[Found]


def answer_of(asked: Mapping[str, Any], found: Found) -> Answer:
    """Return what is compared of the answer to a search of this body."""
    total, hits = found.hits.total, found.hits.hits
    names = _sort_names(asked.get("sort"))
    columns = next((place for place, name in enumerate(names) if name in _PLACES_IN_INDEX), None)
    estimated = _ESTIMATES if found.shards.total == 1 else _ESTIMATES_OVER_SHARDS
    left_out = _aggregations(asked, estimated)
    top_hits = _digest([hit.sort[:columns] for hit in hits])
    if isinstance(total, _Total):
        total = total.value if total.relation == "eq" else None
    return Answer(
        total=total,
        returned=len(hits),
        top_hits=top_hits,
        aggregations=_digest(_without(left_out, found.aggregations)),
        ids="" if names and top_hits else _digest(sorted(hit.id for hit in hits)),
    )


def _sort_names(sort: object) -> list[str]:
    if isinstance(sort, list):
        return [name for key in sort for name in _sort_names(key)]
    if isinstance(sort, Mapping):
        return list(sort)
    return [sort] if isinstance(sort, str) else []


def _aggregations(asked: Any, kinds: frozenset[str]) -> set[str]:
    """Return the names of aggregations of these kinds, at any depth of a body, and of those made of them."""
    bodies = [*_named_aggregations(asked)]
    found = {name for name, body in bodies if kinds & body.keys()}
    while more := {name for name, body in bodies if found & _inputs(body)} - found:
        found |= more
    return found


def _named_aggregations(asked: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, value in asked.items() if isinstance(asked, dict) else ():
        if key in _SUB_AGGREGATIONS and isinstance(value, dict):
            yield from ((name, one) for name, one in value.items() if isinstance(one, dict))
        yield from _named_aggregations(value)
    for value in asked if isinstance(asked, list) else ():
        yield from _named_aggregations(value)


def _inputs(body: Mapping[str, Any]) -> set[str]:
    """Return the names in the paths of a pipeline aggregation: `a>b.50` has a, b and 50."""
    paths = [one.get("buckets_path") for one in body.values() if isinstance(one, dict)]
    texts = [text for path in paths for text in (path.values() if isinstance(path, dict) else [path])]
    return {word for text in texts if isinstance(text, str) for word in re.split(r"[>.\[]", text)}


def _without(names: set[str], found: Any) -> Any:
    """Return results of aggregations without those of these names."""
    if isinstance(found, dict):
        return {key: _without(names, value) for key, value in found.items() if key not in names}
    if isinstance(found, list):
        return [_without(names, value) for value in found]
    return found


def _digest(found: Any) -> str:
    """Return the digest of a part of an answer; empty for one that has nothing in it."""
    is_empty = not found or (isinstance(found, list) and not any(found))
    return "" if is_empty else hashlib.sha256(repr(_rounded(found)).encode()).hexdigest()[:16]


def _rounded(value: Any) -> Any:
    """Return a value whose text is the same wherever it is equal but for the last digits of doubles."""
    if isinstance(value, dict):
        return {key: _rounded(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    if not isinstance(value, float):
        return value
    if not (value.is_integer() and abs(value) < _EXACT):
        value = float(f"{value:.{_DIGITS}g}")
    return int(value) if value.is_integer() else value


def difference(expected: Answer, found: Answer) -> str:
    """Return the first difference between two answers, as text; empty when they agree."""
    if expected.parts and len(expected.parts) == len(found.parts):
        pairs = zip(expected.parts, found.parts, strict=True)
        unlike = [text for text in (difference(*pair) for pair in pairs) if text]
        share = f"{len(unlike):,} of {len(found.parts):,} different requests"
        return f"{share}, the first: {unlike[0]}" if unlike else ""
    refusals = [answer.unsupported or answer.failed for answer in (expected, found)]
    if any(refusals):
        told = [f"fails: {refusal}" if refusal else "does not fail" for refusal in refusals]
        return "" if all(refusals) else f"{told[0]} against {told[1]}"
    if expected.total != found.total:
        return f"total hits {expected.total} against {found.total}"
    if expected.returned != found.returned:
        return f"{expected.returned} hits returned against {found.returned}"
    if expected.top_hits != found.top_hits:
        return "sort values of the top hits"
    return "results of aggregations" if expected.aggregations != found.aggregations else ""


def change(expected: Answer, found: Answer) -> str:
    """Return the first difference between answers of one index to the same request; empty for none.

    What only one of them has is not compared: an exact total, ids, or the places of hits that a scroll
    without a sort gives as sort values.
    """
    if None in (expected.total, found.total):
        found = msgspec.structs.replace(found, total=expected.total)
    if "" in (expected.top_hits, found.top_hits):
        found = msgspec.structs.replace(found, top_hits=expected.top_hits)
    ids_differ = expected.ids and found.ids and expected.ids != found.ids
    return difference(expected, found) or ("ids of the hits" if ids_differ else "")


class Exchanged(NamedTuple):
    """A measured search, and what came back."""

    path: str  # with its query
    asked: bytes  # the request's body
    returned: bytes  # the response's body


class AnswerSample(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Comparison of the measured answers of a task in a fork, on a sample of them."""

    checked: int  # answers read
    repeated: int  # of these, answers to a request that had been answered before
    changed: int  # of these, answers unlike the first one to the same request
    example: str  # what is expected, by the first one, against what was found; empty if none changed
    # To the first request, or the first page, where all requests are the same and nothing had changed the
    # documents; None elsewhere.
    first: Answer | None


_SEARCHES = re.compile(r"/_m?search(\?|$)")
_BATCH = re.compile(r"/_msearch(\?|$)")
# What may differ from one time to the next: chance, scripts, limits of time, the clock, and searches for
# neighbours, whose segments tell each other what they found.
_BY_CHANCE = re.compile(
    rb'"(random\w*|\w*script\w*|\w*knn\w*|neural\w*|terminate_after|timeout)"|(terminate_after|timeout)='
    rb"|\bnow\b|now[-+/]"
)
# Not the request of the check before, which is for the first page and counts hits exactly, whereupon some
# versions count those that `post_filter` removes.
_UNLIKE_CHECK = re.compile(rb'"((search_)?after|post_filter)":')
_UNREADABLE = (msgspec.DecodeError, ValueError, AttributeError, RecursionError)


def is_comparable(path: str) -> bool:
    """Return whether responses to this path are those of searches that start anew, or of batches of them."""
    return _SEARCHES.search(path) is not None


def sample_answers(sample: Iterable[Exchanged], *, constant: bool, by_id: bool) -> AnswerSample | None:
    """Compare answers to the same requests; None where there are none that can be compared.

    Args:
        sample: in the order of each client's requests.
        constant: whether all requests of the task are the same, of documents that nothing has changed.
        by_id: whether the index is the same all the time, and in one copy.
    """
    firsts: dict[tuple[str, bytes], Answer] = {}
    checked, repeated, changes = 0, 0, list[str]()
    for one in sample:
        if _BY_CHANCE.search(one.path.encode() + b" " + one.asked):
            continue
        try:
            found = _read(one)
        except _UNREADABLE:  # an error that the operation ignores, or a body that is no JSON
            continue
        if not by_id:
            found = msgspec.structs.replace(found, ids="")
        checked += 1
        first = firsts.setdefault((one.path, one.asked), found)
        if first is not found:
            repeated += 1
            changes += filter(None, [change(first, found)])
    opening = [found for (_, asked), found in firsts.items() if not _UNLIKE_CHECK.search(asked)]
    if not checked:
        return None
    return AnswerSample(
        checked,
        repeated,
        len(changes),
        example=changes[0] if changes else "",
        first=opening[0] if constant and opening else None,
    )


def _read(one: Exchanged) -> Answer:
    """Read the answer to a search, or to a batch of them."""
    decode = msgspec.json.decode
    if not _BATCH.search(one.path):
        return answer_of(decode(one.asked or b"{}"), decode(one.returned, type=Found))
    bodies = [decode(line) for line in one.asked.splitlines() if line.strip()][1::2]
    batch = decode(one.returned, type=_Batch).responses
    return together([answer_of(body, found) for body, found in zip(bodies, batch, strict=True)])
