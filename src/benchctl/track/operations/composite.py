"""Where a composite aggregation stands in a body: its pages are asked for there, and read there."""

from collections.abc import Iterator, Mapping
from typing import Any

_SUB_AGGREGATIONS = ("aggs", "aggregations")

Names = tuple[str, ...]
"""Of nested aggregations, from the outermost to the composite one."""


def composites(body: Mapping[str, Any]) -> Iterator[Names]:
    """Every composite aggregation of a search body, with the names of those around it."""
    for key in _SUB_AGGREGATIONS:
        for name, aggregation in _objects(body.get(key)):
            if isinstance(aggregation.get("composite"), Mapping):
                yield (name,)
            for inner in composites(aggregation):
                yield (name, *inner)


def change_composite(body: Mapping[str, Any], names: Names, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a search body whose composite aggregation has further keys, behind its own.

    Args:
        body: of a search; it is left as it is.
        names: as `composites` gives them.
        changes: keys and values.
    """
    key = next(key for key in _SUB_AGGREGATIONS if names[0] in (body.get(key) or {}))
    inner = body[key][names[0]]
    if len(names) > 1:
        changed = change_composite(inner, names[1:], changes)
    else:
        changed = {**inner, "composite": {**inner["composite"], **changes}}
    return {**body, key: {**body[key], names[0]: changed}}


def composite_at(body: Mapping[str, Any], names: Names) -> Mapping[str, Any]:
    """The composite aggregation itself: its sources, size and so on."""
    found: Mapping[str, Any] = body
    for name in names:
        found = next(found[key][name] for key in _SUB_AGGREGATIONS if name in (found.get(key) or {}))
    composite: Mapping[str, Any] = found["composite"]
    return composite


def _objects(found: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The entries of an object that are objects themselves; of anything else, none."""
    if isinstance(found, Mapping):
        yield from ((name, value) for name, value in found.items() if isinstance(value, Mapping))
