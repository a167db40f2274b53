"""Answers in the form that a run keeps: small, and without what two right answers may differ in."""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from benchctl.engine.answers.agreement import without_ties
from benchctl.engine.answers.answers import Answer, AnswerBook, operation_digest
from benchctl.engine.answers.estimates import estimates, says_estimated, without
from benchctl.engine.answers.top import BEGINNING_LENGTH, DIGEST_LENGTH
from benchctl.results.answers import ANSWERS_VERSION, Cut, KeptAnswer, VariantAnswers
from benchctl.track.operations.common import Operation, Varying

WHOLE_BYTES = 32 * 1024
"""Sort values and aggregations of up to so many bytes are kept whole."""

# What agrees must have one digest: numbers go in by their place on a logarithmic scale of such steps, wide
# beside the tolerance of comparisons. The offset keeps round numbers off the edges between two steps.
_STEP = 1e-6
_OFFSET = 0.4142135

_SCORES = "scores"
_BOUNDS = frozenset({"gte", "gt", "lte", "lt", "from", "to"})
_NOW = re.compile(r"now([-+/|]|$)")
_NOW_IN_WORDS = re.compile(r"(?:[\[{]|\bTO )now\b")


def keep_answers(
    variant: str, operations: Iterable[Operation], book: AnswerBook, *, shards: int, anew: bool
) -> VariantAnswers:
    """What a run keeps of a variant's answers.

    Args:
        variant: its label.
        operations: what it was asked, in order.
        book: complete for them.
        shards: of the index; over several, scores and some aggregations depend on which document is where.
        anew: whether it was asked for this run.
    """
    kept = [keep(operation, book.get(operation) or Answer(), shards) for operation in operations]
    return VariantAnswers(ANSWERS_VERSION, variant, anew, tuple(kept))


def keep(operation: Operation, answer: Answer, shards: int) -> KeptAnswer:
    """One answer in the form that is kept; see `keep_answers`."""
    asked = operation.templates if isinstance(operation, Varying) else {}
    estimated = estimates(asked, shards)
    # Every shard reckons by how rare a word is on itself.
    unlike_scores = shards > 1 and bool(answer.scores)
    aggregations = without(estimated, answer.aggregations)
    sort_values_cut = cut(answer.sort_values)
    aggregations_cut = cut(aggregations)
    return KeptAnswer(
        operation=operation.name,
        question=operation_digest(operation),
        total=answer.total,
        returned=answer.returned,
        sort_values=[] if sort_values_cut else answer.sort_values,
        sort_values_cut=sort_values_cut,
        aggregations=None if aggregations_cut else aggregations,
        aggregations_cut=aggregations_cut,
        scores=() if unlike_scores else answer.scores,
        top=() if unlike_scores else answer.top,
        left_out=(*sorted(estimated), *([_SCORES] if unlike_scores else [])),
        unsteady=unsteady(asked),
        unsupported=answer.unsupported,
        failed=answer.failed,
    )


def cut(found: Any) -> Cut | None:  # noqa: ANN401 - JSON of any shape
    """What is left of something large; None for what is kept whole."""
    encoded = msgspec.json.encode(found)
    if len(encoded) <= WHOLE_BYTES:
        return None
    return digested(found)


def digested(found: Any) -> Cut:  # noqa: ANN401 - JSON of any shape
    """Sort values or aggregations as if they were too large to keep."""
    encoded = msgspec.json.encode(found)
    settled = msgspec.json.encode(_settled(found), order="sorted")
    return Cut(
        size_bytes=len(encoded),
        entries=len(found) if isinstance(found, list) else entries(found),
        digest=hashlib.sha256(settled).hexdigest()[:DIGEST_LENGTH],
        begins=encoded[:BEGINNING_LENGTH].decode(errors="ignore"),
    )


def entries(aggregations: Any) -> int:  # noqa: ANN401 - JSON of any shape
    """How many buckets there are, at all depths."""
    if isinstance(aggregations, list):
        return sum(entries(one) for one in aggregations)
    if not isinstance(aggregations, dict):
        return 0
    buckets = aggregations.get("buckets")
    own = len(buckets) if isinstance(buckets, dict | list) else 0
    return own + sum(entries(one) for one in aggregations.values())


def _settled(found: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """The same for two answers that agree."""
    if isinstance(found, dict):
        return None if says_estimated(found) else {key: _settled(value) for key, value in found.items()}
    if isinstance(found, list):
        return [_settled(one) for one in without_ties(found)]
    if isinstance(found, float) and found:
        return [found > 0, math.floor(math.log(abs(found)) / _STEP + _OFFSET)]
    return found


def unsteady(asked: Any) -> str:  # noqa: ANN401 - JSON of any shape
    """Why an answer may change although documents and engine do not; empty when it may not.

    Args:
        asked: one body, or several.
    """
    for key, value in _pairs(asked):
        if key == "random_score":
            return "random scores"
        if isinstance(value, str) and (
            (key in _BOUNDS and _NOW.match(value)) or _NOW_IN_WORDS.search(value) is not None
        ):
            return "asks for what is relative to now"
    return ""


def _pairs(asked: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON of any shape
    if isinstance(asked, list):
        for one in asked:
            yield from _pairs(one)
    elif isinstance(asked, dict):
        for key, value in asked.items():
            yield key, value
            yield from _pairs(value)
