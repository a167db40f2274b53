"""Answers of one index to the same request: which are compared, and in what they may differ."""

from typing import Any

import msgspec
import pytest

from benchctl.results.answers import Answer, Exchanged, change, difference, of_log, sample_answers

PATH = "/big5/_search"


def returned(*ids: str, sort: bool = False, shards: int = 1, relation: str = "eq", **more: Any) -> bytes:
    hits = [{"_id": name, "_score": 1.0, **({"sort": [7]} if sort else {})} for name in ids]
    total = {"value": 3, "relation": relation}
    return msgspec.json.encode(
        {"_shards": {"total": shards, "failed": 0}, "hits": {"total": total, "hits": hits}, **more}
    )


def changed(*answers: bytes, asked: bytes = b"{}", path: str = PATH, by_id: bool = True) -> int | None:
    sample = [Exchanged(path, asked, one) for one in answers]
    found = sample_answers(sample, constant=False, by_id=by_id)
    return None if found is None else found.changed


A, B = returned("1", "2"), returned("1", "3")


def test_hits_are_told_apart_by_id_in_any_order_where_nothing_sorts_them():
    assert changed(A, A, returned("2", "1")) == 0
    assert changed(A, B, A, B) == 2
    assert changed(A, returned("1")) == 1
    # Of equal sort values, any may come first.
    sorts = b'{"sort":"n"}'
    assert changed(returned("1", sort=True), returned("2", sort=True), asked=sorts) == 0
    # Those of a scroll without a sort are places in the index.
    assert changed(returned("1", sort=True), returned("2", sort=True)) == 1
    assert changed(A, B, by_id=False) == 0
    assert changed(A, returned("1"), by_id=False) == 1


def test_sums_may_differ_in_their_last_digits_alone():
    sums = [returned(aggregations={"s": {"value": value}}) for value in (0.1 + 0.2, 0.3, 0.31)]
    assert changed(*sums) == 1


def test_estimates_and_what_is_made_of_them_are_not_compared():
    by = {"p": {"percentiles": {"field": "n"}}}
    made = {"max_bucket": {"buckets_path": "h>p.50"}}
    asked = {
        "aggs": {"h": {"histogram": {"field": "n"}, "aggs": by}, "m": made, "s": {"sum": {"field": "n"}}}
    }
    body = msgspec.json.encode(asked)

    def found(estimate: float, exact: float) -> bytes:
        return returned(aggregations={"m": {"value": estimate}, "s": {"value": exact}})

    assert changed(found(1.0, 1.0), found(2.0, 1.0), asked=body) == 0
    assert changed(found(1.0, 1.0), found(1.0, 2.0), asked=body) == 1


def test_totals_are_compared_where_both_are_exact():
    exact, other = returned("1"), returned("1").replace(b'"value":3', b'"value":4')
    assert changed(exact, other) == 1
    assert changed(exact, other.replace(b'"eq"', b'"gte"')) == 0


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        (b'{"query":{"function_score":{"random_score":{}}}}', PATH),
        (b'{"query":{"script_score":{"script":"1"}}}', PATH),
        (b'{"query":{"knn":{"v":{"vector":[1],"k":2}}}}', PATH),
        (b'{"query":{"range":{"@timestamp":{"gte":"now-1h"}}}}', PATH),
        (b'{"timeout":"1s"}', PATH),
        (b"{}", f"{PATH}?terminate_after=10"),
    ],
)
def test_what_may_differ_by_chance_is_not_compared(asked: bytes, path: str):
    assert changed(A, B, asked=asked, path=path) is None


def test_other_requests_have_other_answers():
    sample = [Exchanged(PATH, b"{}", A), Exchanged(PATH, b'{"size":2}', B), Exchanged("/b/_search", b"{}", B)]
    found = sample_answers(sample, constant=False, by_id=True)
    assert found is not None
    assert (found.checked, found.repeated, found.changed) == (3, 0, 0)


def test_all_searches_of_a_batch_are_compared():
    asked = b'{}\n{"size":1}\n{}\n{"size":2}\n'
    one, other = (b'{"responses":[' + A + b"," + last + b"]}" for last in (A, B))
    assert changed(one, one, other, asked=asked, path="/big5/_msearch") == 1


def test_what_cannot_be_read_is_not_compared():
    assert changed(b"not found", b'{"hits":[]}', A, asked=b"") == 0
    assert changed(A, B, asked=b"[1]") is None


def test_the_first_page_is_that_of_the_check_before():
    pages = [(b'{"size":1,"search_after":[7]}', B), (b'{"post_filter":{}}', B), (b'{"size":1}', A)]
    sample = [Exchanged(PATH, asked, found) for asked, found in pages]
    found = sample_answers(sample, constant=True, by_id=True)
    assert found is not None
    alone = sample_answers(sample[-1:], constant=True, by_id=True)
    assert alone is not None
    assert found.first == alone.first
    varying = sample_answers(sample, constant=False, by_id=True)
    assert varying is not None
    assert varying.first is None


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Answer(total=3, returned=2, ids="a"), ""),
        (Answer(total=None, returned=2, ids="a"), ""),
        (Answer(total=3, returned=2), ""),
        (Answer(total=3, returned=2, top_hits="c", ids="a"), ""),
        (Answer(total=3, returned=2, top_hits="c", ids="b"), "ids of the hits"),
        (Answer(total=4, returned=2, ids="a"), "total hits 3 against 4"),
        (Answer(total=3, returned=1, ids="b"), "2 hits returned against 1"),
        (Answer(total=3, returned=2, ids="b"), "ids of the hits"),
    ],
)
def test_the_first_difference_is_named(found: Answer, text: str):
    assert change(Answer(total=3, returned=2, ids="a"), found) == text


HELD, OTHER = Answer(total=5, returned=3, top_hits="a"), Answer(total=6, returned=3, top_hits="a")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ((HELD, HELD), ""),
        ((HELD, OTHER), "1 of 2 different requests, the first: total hits 5 against 6"),
        ((OTHER, OTHER), "2 of 2 different requests, the first: total hits 5 against 6"),
        (
            (HELD, Answer(failed="no")),
            "1 of 2 different requests, the first: does not fail against fails: no",
        ),
    ],
)
def test_different_requests_of_a_log_are_compared_one_by_one(found: tuple[Answer, ...], text: str):
    assert difference(of_log([HELD, HELD]), of_log(list(found))) == text


def test_what_fails_on_both_sides_is_no_difference_and_what_always_fails_is_a_failure():
    half = of_log([HELD, Answer(failed="no")])
    assert difference(half, of_log([HELD, Answer(unsupported="never")])) == ""
    # Hits are those of the requests that had some.
    assert (half.total, half.returned, len(half.parts)) == (5, 3, 2)
    assert of_log([Answer(failed="no"), Answer(failed="nor")]).failed == "no"
