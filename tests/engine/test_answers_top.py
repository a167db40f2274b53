"""The first hits by their content: what is settled, and what is left to chance."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.answers import scores, sort_values, top_hits
from benchctl.results.model import TopHits

BY_N: dict[str, Any] = {"sort": [{"n": "asc"}]}


def hit(text: str, *sort: Any, score: float | None = None) -> dict[str, Any]:
    found = {"_id": text + "-id", "_score": score, "_source": {"message": text}}
    return {**found, "sort": list(sort)} if sort else found


def top(
    hits: list[dict[str, Any]],
    body: Mapping[str, Any] = BY_N,
    params: Mapping[str, str] | None = None,
    total: int | None = None,
) -> tuple[TopHits, ...]:
    return top_hits(body, params or {}, len(hits) if total is None else total, hits)


def places(found: tuple[TopHits, ...]) -> list[tuple[int, int, Any]]:
    return [(group.first, group.documents, group.by) for group in found]


def test_hits_that_sort_alike_are_one_group_in_any_order():
    one = top([hit("a", 1), hit("b", 2), hit("c", 2), hit("d", 3)])
    other = top([hit("a", 1), hit("c", 2), hit("b", 2), hit("d", 3)])
    assert one == other
    assert places(one) == [(1, 1, [1]), (2, 2, [2]), (4, 1, [3])]
    assert one != top([hit("a", 1), hit("b", 2), hit("x", 2), hit("d", 3)])


def test_the_very_first_hit_is_shown_where_it_is_alone():
    assert top([hit("a" * 500, 1)])[0].begins == '{"message":"' + "a" * 108
    assert top([hit("a", 1), hit("b", 1)])[0].begins == ""


def test_ids_do_not_count():
    assert top([{**hit("a", 1), "_id": "x"}]) == top([{**hit("a", 1), "_id": "y"}])


def test_of_the_last_hits_there_may_be_more_behind():
    hits = [hit("a", 1), hit("b", 2), hit("c", 2)]
    body = {**BY_N, "size": 3}
    assert places(top(hits, body, total=4)) == [(1, 1, [1])]
    assert places(top(hits, body, total=3)) == [(1, 1, [1]), (2, 2, [2])]
    # Fewer than were asked for: a search_after has come to the end.
    assert places(top(hits, {**BY_N, "size": 4}, total=9)) == [(1, 1, [1]), (2, 2, [2])]
    assert places(top(hits, BY_N, {"size": "3"}, total=9)) == [(1, 1, [1])]


@pytest.mark.parametrize(("body", "params"), [({"from": 1}, {}), ({}, {"from": "1"})])
def test_before_the_first_hit_of_a_later_page_there_may_be_others_like_it(
    body: dict[str, Any], params: dict[str, str]
):
    hits = [hit("a", 1), hit("b", 2), hit("c", 3)]
    assert places(top(hits, {**BY_N, **body}, params)) == [(2, 1, [2]), (3, 1, [3])]


def test_groups_that_begin_behind_the_tenth_hit_are_not_kept():
    hits = [hit(str(place), place // 2) for place in range(1, 40)]
    assert places(top(hits, {**BY_N, "size": 100}))[-1] == (10, 2, [5])


def test_scores_place_hits_where_nothing_sorts_them_within_rounding():
    hits = [hit("a", score=2.5), hit("b", score=1.5), hit("c", score=1.5000001), hit("d", score=1.0)]
    assert places(top(hits, {})) == [(1, 1, 2.5), (2, 2, 1.5), (4, 1, 1.0)]
    assert scores(hits) == (2.5, 1.5, 1.5000001, 1.0)
    assert scores([hit("a", 1, score=2.5)]) == ()
    assert len(scores([hit("a", score=1.0)] * 20)) == 10


@pytest.mark.parametrize(
    "body",
    [
        {"sort": "_doc"},
        {"sort": ["_doc", "n"]},
        {"sort": [{"_shard_doc": "asc"}]},
        {**BY_N, "collapse": {"field": "n"}},
        {**BY_N, "terminate_after": 3},
        {"query": {"bool": {"should": [{"knn": {"field": "v"}}]}}},
        {"rescore": {}},
    ],
)
def test_an_order_that_is_chance_has_no_top(body: dict[str, Any]):
    assert top([hit("a", 1), hit("b", 2)], body) == ()


def test_an_order_of_the_url_is_not_read():
    assert top([hit("a", 1)], {}, {"sort": "_doc"}) == ()


def test_hits_without_content_have_no_top():
    assert top([{"_id": "a", "sort": [1]}]) == ()
    assert places(top([{"_id": "a", "sort": [1], "fields": {"n": [1]}}])) == [(1, 1, [1])]


def test_places_in_the_index_are_no_sort_values():
    hits = [hit("a", 1, 77), hit("b", 1, 12)]
    body = {"sort": [{"n": {"order": "asc"}}, "_doc"]}
    assert sort_values(body, hits) == [[1], [1]]
    assert places(top(hits, body)) == [(1, 2, [1])]
    assert sort_values({"sort": "_doc"}, hits) == []
    assert sort_values(BY_N, hits) == [[1, 77], [1, 12]]


@given(st.lists(st.integers(0, 4), max_size=12), st.randoms(use_true_random=False))
def test_no_order_of_ties_shows(values: list[int], chance: Any):
    hits = [hit(str(place), value) for place, value in enumerate(values)]
    mixed = list(hits)
    chance.shuffle(mixed)
    for one in (hits, mixed):
        one.sort(key=lambda row: row["sort"])
    assert top(hits) == top(mixed)
    assert sum(group.documents for group in top(hits)) <= len(hits)
