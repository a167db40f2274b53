"""A search engine in plain Python, as slow as it is simple: what truths and expectations are held against."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from benchctl.corpus.big5 import generate

Document = dict[str, Any]
Predicate = Callable[[Document], bool]

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "gte": lambda value, bound: value >= bound,
    "gt": lambda value, bound: value > bound,
    "lte": lambda value, bound: value <= bound,
    "lt": lambda value, bound: value < bound,
}
STEPS = {"minute": 16, "hour": 13, "day": 10}


def documents(size: int, seed: int = 1) -> list[Document]:
    """The corpus of a size, parsed and flattened."""
    return [fields(json.loads(line)) for line in b"".join(generate(seed, size, 0, size)).splitlines()]


def fields(document: Document) -> Document:
    """Only what operations look at: half the memory of whole documents."""
    return {
        "@timestamp": document["@timestamp"],
        "aws.cloudwatch.log_stream": document["aws.cloudwatch"]["log_stream"],
        "cloud.region": document["cloud"]["region"],
        "event.id": document["event"]["id"],
        "host.name": document["host"]["name"],
        "log.file.path": document["log.file.path"],
        "message": document["message"],
        "message.words": frozenset(re.findall("[a-z]+", document["message"].lower())),
        "meta.file": document["meta"]["file"],
        "metrics.size": document["metrics"]["size"],
        "metrics.tmin": document["metrics"]["tmin"],
        "process.name": document["process"]["name"],
        "agent.id": document["agent"]["id"],
    }


def comparable(value: Any) -> Any:
    """Dates are compared as text of one form, numbers as they are."""
    return value.removesuffix("Z").removesuffix(".000") if isinstance(value, str) else value


def predicate(query: dict[str, Any]) -> Predicate:
    """The part of the query language that big5 uses; anything else is an error."""
    ((kind, body),) = query.items()
    match kind:
        case "match_all":
            return lambda _: True
        case "range":
            return _range(body)
        case "term" | "match":
            ((field, value),) = body.items()
            wanted = value["value"] if isinstance(value, dict) else value
            return lambda document: document[field] == wanted
        case "query_string":
            words = set(body["query"].removeprefix("message: ").split())
            # Behind the first word, any field will do.
            return lambda document: (
                bool(words & document["message.words"])
                or not words.isdisjoint(value for value in document.values() if isinstance(value, str))
            )
        case "bool":
            ((how, clauses),) = body.items()
            join = {"must": all, "should": any}[how]
            parts = [predicate(clause) for clause in clauses]
            return lambda document: join(part(document) for part in parts)
    raise AssertionError(f"unknown query {kind}")


def _range(body: dict[str, Any]) -> Predicate:
    ((field, bounds),) = body.items()
    checks = [(COMPARISONS[name], comparable(bound)) for name, bound in bounds.items()]
    return lambda document: all(check(comparable(document[field]), bound) for check, bound in checks)


def matching(body: dict[str, Any], corpus: Iterable[Document]) -> list[Document]:
    """The documents that a search matches; `search_after` takes nothing away from them."""
    query = predicate(body.get("query", {"match_all": {}}))
    return [document for document in corpus if query(document)]


def behind(body: dict[str, Any], found: Iterable[Document]) -> list[Document]:
    """Those of them that come behind `search_after`."""
    if "search_after" not in body:
        return list(found)
    ((field, order),) = body["sort"][0].items()
    check = _range({field: {"lt" if order == "desc" else "gt": body["search_after"][0]}})
    return [document for document in found if check(document)]


def sort_values(body: dict[str, Any], found: Iterable[Document]) -> list[list[Any]]:
    """Sort values of the hits that a sorted search returns."""
    ((field, order),) = body["sort"][0].items()
    falling = "desc" in (order, order["order"] if isinstance(order, dict) else "")
    values = sorted((document[field] for document in behind(body, found)), reverse=falling)
    return [[_millis(value) if field == "@timestamp" else value] for value in values[: body.get("size", 10)]]


def _millis(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def buckets(aggregation: dict[str, Any], found: list[Document]) -> list[tuple[Any, int]]:
    """Keys and counts of an aggregation's buckets, in order; sub-aggregations are not looked at."""
    ((kind, body),) = ((kind, body) for kind, body in aggregation.items() if kind != "aggs")
    match kind:
        case "date_histogram":
            counts = Counter(_key(document, aggregation) for document in found)
            step = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}[body["calendar_interval"]]
            return [(key, counts[key]) for key in range(min(counts), max(counts) + 1, step)]
        case "terms":
            return _frequent(Counter(document[body["field"]] for document in found), body)
        case "multi_terms":
            names = [one["field"] for one in body["terms"]]
            return _frequent(Counter(tuple(document[name] for name in names) for document in found), body)
        case "composite":
            return _composite(body, found)
        case "range":
            sizes = [document[body["field"]] for document in found]
            return [
                (
                    None,
                    sum(one.get("from", size) <= size < one.get("to", size + 1) for size in sizes),
                )
                for one in body["ranges"]
            ]
    raise AssertionError(f"unknown aggregation {kind}")


def _frequent(counts: Counter[Any], body: dict[str, Any]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: body.get("size", 10)]


def _composite(body: dict[str, Any], found: list[Document]) -> list[tuple[Any, int]]:
    definitions = [next(iter(one.values())) for one in body["sources"]]
    counts = Counter(tuple(_key(document, one) for one in definitions) for document in found)
    ordered = list(counts.items())
    for place, definition in reversed(list(enumerate(definitions))):
        falling = next(iter(definition.values())).get("order") == "desc"
        ordered.sort(key=lambda item: item[0][place], reverse=falling)
    return ordered[: body.get("size", 10)]


def _key(document: Document, definition: dict[str, Any]) -> Any:
    ((kind, body),) = definition.items()
    value = document[body["field"]]
    if kind == "terms":
        return value
    whole = "0000-00-00T00:00:00.000Z"
    length = STEPS[body["calendar_interval"]]
    return _millis(value[:length] + whole[length:])
