"""Aggregations that estimate: two engines that both work need not say the same."""

from collections.abc import Iterator
from typing import Any

_SUB_AGGREGATIONS = ("aggs", "aggregations")

# Sketches that depend on the order in which documents come, and on chance.
_SKETCHES = frozenset(
    {"percentiles", "percentile_ranks", "median_absolute_deviation", "boxplot", "random_sampler"}
)
# Ids differ from one index build to the next, and documents that sort alike come in any order.
_ALWAYS = _SKETCHES | {"top_hits"}
# Every shard proposes its own best, and which documents are on it is up to the engine.
_OVER_SHARDS = frozenset(
    {"significant_terms", "significant_text", "rare_terms", "sampler", "diversified_sampler"}
)

_ERROR_BOUND = "doc_count_error_upper_bound"


def estimates(asked: Any, shards: int) -> frozenset[str]:  # noqa: ANN401 - JSON of any shape
    """Names of those aggregations, at any depth, whose results are not to be compared.

    Args:
        asked: one body, or several.
        shards: of what is searched.
    """
    kinds = _ALWAYS | _OVER_SHARDS if shards > 1 else _ALWAYS
    return frozenset(name for name, definition in _aggregations(asked) if kinds & definition.keys())


def _aggregations(asked: Any) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401 - JSON of any shape
    if isinstance(asked, list):
        for one in asked:
            yield from _aggregations(one)
    elif isinstance(asked, dict):
        for key, value in asked.items():
            if key in _SUB_AGGREGATIONS and isinstance(value, dict):
                yield from ((name, one) for name, one in value.items() if isinstance(one, dict))
            yield from _aggregations(value)


def without(names: frozenset[str], found: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Results of aggregations without those of some names."""
    if not names:
        return found
    if isinstance(found, dict):
        return {key: without(names, value) for key, value in found.items() if key not in names}
    if isinstance(found, list):
        return [without(names, one) for one in found]
    return found


def says_estimated(result: dict[str, Any]) -> bool:
    """Whether the engine itself gives an error for the counts of frequent terms; -1 is an unknown one."""
    bound: object = result.get(_ERROR_BOUND, 0)
    return bound != 0
