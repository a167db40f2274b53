"""A search engine in plain Python, as slow as it is simple: what operations must find is held against it."""

import json
import re
from collections.abc import Callable, Iterable
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
