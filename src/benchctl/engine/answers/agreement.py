"""Do engines answer alike, and rightly? What counts as a difference, and what does not."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from benchctl.engine.answers.answers import Answer, AnswerBook
from benchctl.engine.answers.estimates import estimates, says_estimated, without
from benchctl.results.model import AnswerCheck, AnswerFinding
from benchctl.track.operations.common import Operation, Varying

# Sums of doubles depend on the order of the documents, and shards may add in any order.
RELATIVE_TOLERANCE = 1e-9
_DETAIL_LENGTH = 160


def compare_answers(
    operations: Iterable[Operation],
    books: Mapping[str, AnswerBook],
    baseline: str,
    expected: Mapping[str, AnswerBook] = MappingProxyType({}),
    shards: int = 1,
) -> AnswerCheck:
    """Hold every variant's answers against the baseline's, and against what is known to be right.

    Args:
        operations: what was asked.
        books: variant name -> its book, complete for the operations.
        baseline: the variant to hold the others against.
        expected: variant name -> what its documents make the only right answers, as far as that is known.
        shards: of the index; over several, some aggregations are estimates, which are not compared.
    """
    names: list[str] = []
    exact: dict[str, dict[str, int]] = {}
    findings: list[AnswerFinding] = []
    for operation in operations:
        names.append(operation.name)
        asked = operation.templates if isinstance(operation, Varying) else {}
        left_out = estimates(asked, shards)
        answers = {
            variant: _exact(book.get(operation) or Answer(), left_out) for variant, book in books.items()
        }
        exact[operation.name] = {
            variant: answer.total for variant, answer in answers.items() if answer.total is not None
        }
        for variant, answer in answers.items():
            findings += _judge(operation.name, variant, answer, baseline, answers[baseline])
            known = expected[variant].get(operation) if variant in expected else None
            if known is not None and (detail := contradiction(known, answer)):
                findings.append(AnswerFinding(operation.name, variant, "", "wrong", detail))
    return AnswerCheck(tuple(names), exact, tuple(findings))


def _exact(answer: Answer, left_out: frozenset[str]) -> Answer:
    """An answer without the aggregations of these names."""
    return msgspec.structs.replace(answer, aggregations=without(left_out, answer.aggregations))


def _judge(
    operation: str, variant: str, answer: Answer, baseline: str, expected: Answer
) -> list[AnswerFinding]:
    if answer.unsupported is not None:
        return [AnswerFinding(operation, variant, baseline, "unsupported", answer.unsupported)]
    if answer.failed is not None:
        return [AnswerFinding(operation, variant, baseline, "failed", answer.failed)]
    if variant == baseline or expected.unsupported is not None or expected.failed is not None:
        return []
    detail = difference(expected, answer)
    return [AnswerFinding(operation, variant, baseline, "different", detail)] if detail else []


@dataclass(frozen=True)
class Unlike:
    """Where two pieces of answers part, and what each of them has there.

    Attributes:
        where: the way there, such as `aggregations.days.buckets[3].doc_count`.
        expected, found: what is there, in words; where objects have other keys, those that only one has.
        how: of the two: other values, another number of entries, or other keys.
    """

    where: str
    expected: str
    found: str
    how: Literal["values", "entries", "keys"] = "values"

    @property
    def text(self) -> str:
        """All of it in one line."""
        match self.how:
            case "values":
                detail = f"{self.expected} against {self.found}"
            case "entries":
                detail = f"{self.expected} entries against {self.found}"
            case "keys":
                detail = "only one side has " + ", ".join(filter(None, (self.expected, self.found)))
        return f"{self.where}: {detail}"[:_DETAIL_LENGTH]


def difference(expected: Answer, found: Answer) -> str:
    """The first way in which two answers differ, in words; empty when they agree."""
    if expected.total != found.total:
        return f"total hits {expected.total} against {found.total}"
    if expected.returned != found.returned:
        return f"{expected.returned} hits returned against {found.returned}"
    part = unlike(expected.sort_values, found.sort_values, "sort values")
    part = part or unlike(expected.aggregations, found.aggregations, "aggregations")
    return part.text if part else ""


def contradiction(expected: Answer, found: Answer) -> str:
    """The first way in which an answer is wrong, in words; empty when it is right, or there is none.

    Args:
        expected: what must be found; of its aggregations, objects need not have all keys.
        found: what an engine says.
    """
    if found.unsupported is not None or found.failed is not None:
        return ""
    known = _within(expected.aggregations, found.aggregations)
    return difference(expected, msgspec.structs.replace(found, aggregations=known))


def _within(shape: Any, found: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """What is found, without the keys of objects that the shape does not have."""
    if isinstance(shape, dict) and isinstance(found, dict):
        return {key: _within(shape[key], value) for key, value in found.items() if key in shape}
    if isinstance(shape, list) and isinstance(found, list) and len(shape) == len(found):
        return [_within(one, other) for one, other in zip(shape, found, strict=True)]
    return found


def unlike(expected: Any, found: Any, where: str) -> Unlike | None:  # noqa: ANN401 - JSON of any shape
    """The first place where two pieces of answers differ; None when they agree.

    Args:
        expected: sort values or aggregations.
        found: the same of another answer.
        where: how to call the whole.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        if says_estimated(expected) or says_estimated(found):
            return None
        if expected.keys() != found.keys():
            lost, new = expected.keys() - found.keys(), found.keys() - expected.keys()
            return Unlike(where, ", ".join(sorted(lost)), ", ".join(sorted(new)), how="keys")
        pairs = [(f"{where}.{key}", value, found[key]) for key, value in expected.items()]
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return Unlike(where, str(len(expected)), str(len(found)), how="entries")
        expected, found = without_ties(expected), without_ties(found)
        pairs = [(f"{where}[{place}]", one, found[place]) for place, one in enumerate(expected)]
    else:
        return None if same(expected, found) else Unlike(where, repr(expected), repr(found))
    return next((part for place, one, other in pairs if (part := unlike(one, other, place))), None)


def without_ties(entries: list[Any]) -> list[Any]:
    """Buckets with scores in an order of their own; other lists as they are.

    Significant terms of equal scores come in any order, and which of them are within the size is open: of
    those that score like the last one, only numbers are left.
    """
    if not entries or not all(isinstance(entry, dict) and "score" in entry for entry in entries):
        return entries
    last = entries[-1]["score"]
    settled = sorted(entries, key=lambda entry: (-entry["score"], str(entry.get("key"))))
    numbers = ("score", "doc_count", "bg_count")
    return [
        {name: entry.get(name) for name in numbers} if entry["score"] == last else entry for entry in settled
    ]


def same(expected: object, found: object, tolerance: float = RELATIVE_TOLERANCE) -> bool:
    """Whether two plain values are alike, numbers within a relative tolerance."""
    numbers = (int, float)
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, numbers) and isinstance(found, numbers):
        return math.isclose(expected, found, rel_tol=tolerance)
    return expected == found
