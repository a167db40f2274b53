"""Composite aggregations are found wherever they stand, and changed nowhere else."""

from copy import deepcopy
from typing import Any

from benchctl.track.operations.search import change_composite, composite_at, composites

INNER: dict[str, Any] = {"sources": [{"d": {"date_histogram": {"field": "t"}}}], "size": 5}
BODY: dict[str, Any] = {
    "size": 0,
    "aggregations": {
        "plain": {"avg": {"field": "n"}},
        "outer": {
            "nested": {"path": "p"},
            "aggs": {"days": {"composite": INNER, "aggs": {"most": {"max": {"field": "n"}}}}},
        },
    },
}
PATH = ("aggregations", "outer", "aggs", "days", "composite")


def test_a_composite_aggregation_is_found_by_its_path():
    assert list(composites(BODY)) == [PATH]
    assert composite_at(BODY, PATH) == INNER
    assert list(composites({"aggs": {"a": {"composite": INNER}, "b": {"composite": INNER}}})) == [
        ("aggs", "a", "composite"),
        ("aggs", "b", "composite"),
    ]


def test_what_is_no_aggregation_is_passed_over():
    assert list(composites({"query": {"composite": INNER}, "aggs": {"a": None, "b": 7}})) == []
    assert list(composites({"aggs": [1], "aggregations": None})) == []


def test_a_change_comes_behind_its_own_keys_and_leaves_the_original():
    before = deepcopy(BODY)
    changed = change_composite(BODY, PATH, {"size": 9, "after": {"d": 1}})
    assert before == BODY
    assert list(composite_at(changed, PATH).items()) == [
        ("sources", INNER["sources"]),
        ("size", 9),
        ("after", {"d": 1}),
    ]
    changed["aggregations"]["outer"]["aggs"]["days"]["composite"] = INNER
    assert changed == BODY
