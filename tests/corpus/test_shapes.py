"""Shapes of searches: values make no difference, everything else does; and values as other words."""

import json
import re
from datetime import datetime
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchctl.corpus.shapes import Anonymizer, changed, described, shape

words = st.text("abcdefgh", min_size=1, max_size=6)
fields = st.sampled_from(["kind", "type", "size", "source.name", "@timestamp"])
values = words | st.integers(-999, 10**6) | st.booleans()


def clause(field: str, value: Any) -> dict[str, Any]:
    return {"term": {field: {"value": value, "boost": 1.0}}}


searches = st.builds(
    lambda terms, size, by: {
        "size": size,
        "query": {"bool": {"filter": [clause(*term) for term in terms]}},
        "aggs": {"own name": {"terms": {"field": by, "size": 5}}},
        "sort": [{by: {"order": "desc"}}],
    },
    st.lists(st.tuples(fields, values), min_size=1, max_size=3),
    st.integers(0, 100),
    fields,
)


@given(searches)
def test_a_change_that_changes_nothing_leaves_a_search_as_it_is(search: dict[str, Any]):
    assert changed(search, lambda value, _inside: value) == search


@given(searches, values)
def test_values_make_no_shape(search: dict[str, Any], value: Any):
    other = changed(search, lambda _value, _inside: value)
    assert shape(other) == shape(search)
    assert described(other) == described(search)


@given(searches)
def test_what_is_done_does(search: dict[str, Any]):
    filters = search["query"]["bool"]["filter"]
    assert shape(search | {"size": search["size"] + 1}) != shape(search)
    assert shape(search | {"query": {"bool": {"must": filters}}}) != shape(search)
    assert shape(search | {"aggs": {"own name": {"terms": {"field": "other", "size": 5}}}}) != shape(search)


def test_how_many_values_or_like_clauses_there_are_does_not():
    one, two = ({"query": {"terms": {"kind": kinds}}} for kinds in (["a"], ["a", "b"]))
    assert shape(one) == shape(two)
    few, more = ({"query": {"bool": {"should": [clause("kind", n) for n in range(k)]}}} for k in (1, 3))
    assert shape(few) == shape(more)
    of_two = {"query": {"bool": {"should": [clause("kind", 1), clause("type", 1)]}}}
    assert shape(of_two) != shape(few)


@pytest.mark.parametrize(
    ("search", "name"),
    [
        ({}, "match_all"),
        ({"query": {"match_all": {}}}, "match_all"),
        ({"query": {"range": {"@timestamp": {"gte": 1}}}, "size": 0}, "range:@timestamp"),
        (
            {
                "query": {"bool": {"must": [{"term": {"kind": 1}}, {"exists": {"field": "a"}}]}},
                "aggs": {"x": {"date_histogram": {"field": "at"}, "aggs": {"y": {"avg": {"field": "n"}}}}},
                "sort": [{"at": "desc"}],
            },
            "term:kind+exists:a+date_histogram:at+avg:n+sort:at",
        ),
        ({"query": {"multi_match": {"query": "a b", "fields": ["title^2"]}}}, "multi_match:title_2"),
    ],
)
def test_a_shape_has_a_name_in_a_few_words(search: dict[str, Any], name: str):
    assert described(search) == name


def test_a_long_name_is_cut():
    search = {"query": {"bool": {"must": [{"term": {f"field-{n}": 1}} for n in range(20)]}}}
    assert len(described(search)) == 60
    assert described(search).endswith("~")


@given(searches)
def test_anonymized_searches_keep_their_shape_and_no_word(search: dict[str, Any]):
    own = Anonymizer()
    hidden = own.body(search)
    assert shape(hidden) == shape(search)
    texts = {
        term["value"]
        for one in search["query"]["bool"]["filter"]
        for term in one["term"].values()
        if isinstance(term["value"], str)
    }
    written = {json.dumps(text) for text in texts}
    left = json.dumps([one["term"] for one in hidden["query"]["bool"]["filter"]])
    # Field names are kept, and may be the same words.
    assume(not texts & {"kind", "type", "size"})
    assert not any(f": {text}" in left for text in written)


@given(st.lists(words, min_size=2, max_size=8))
def test_the_same_word_is_the_same_word_everywhere(texts: list[str]):
    own = Anonymizer()
    found = [own.body({"query": {"match": {"f": text.upper()}}})["query"]["match"]["f"] for text in texts]
    other = [own.body({"query": {"term": {"g": text}}})["query"]["term"]["g"] for text in texts]
    assert found == other
    assert len(set(found)) == len(set(texts))


@pytest.mark.parametrize("form", ["{}", "{}T10:20:30Z", "{} 10:20:30", "{}T10:20:30.123+02:00"])
def test_dates_keep_their_distances_and_their_form(form: str):
    own = Anonymizer()
    body = {"query": {"range": {"at": {"gte": form.format("2023-03-05"), "lt": form.format("2023-03-07")}}}}
    hidden = own.body(body)["query"]["range"]["at"]
    assert re.sub(r"\d", "0", hidden["gte"]) == re.sub(r"\d", "0", body["query"]["range"]["at"]["gte"])
    low, high = (datetime.fromisoformat(hidden[key]) for key in ("gte", "lt"))
    assert (high - low).days == 2
    assert hidden["gte"] != body["query"]["range"]["at"]["gte"]


def test_numbers_dates_in_milliseconds_and_addresses():
    own = Anonymizer()
    hidden = own.body(
        {
            "query": {
                "bool": {
                    "filter": [
                        {"term": {"customer": 12345}},
                        {"range": {"price": {"gte": 10, "lt": 100.5}}},
                        {"range": {"at": {"gte": 1_700_000_000_000, "lt": 1_700_000_060_000}}},
                        {"term": {"ip": "192.168.1.7"}},
                        {"range": {"seen": {"gte": "now-1h/h"}}},
                        {"query_string": {"query": "error AND NOT 42*"}},
                    ]
                }
            }
        }
    )["query"]["bool"]["filter"]
    assert len(str(hidden[0]["term"]["customer"])) == 5
    assert hidden[0]["term"]["customer"] != 12345
    assert hidden[1]["range"]["price"] == {"gte": 10, "lt": 100.5}
    moved = hidden[2]["range"]["at"]
    assert moved["lt"] - moved["gte"] == 60_000
    assert moved["gte"] == 1_700_000_000_000 + own.shift_ms
    assert re.fullmatch(r"10(\.\d+){3}", hidden[3]["term"]["ip"])
    assert hidden[4]["range"]["seen"]["gte"] == "now-1h/h"
    assert re.fullmatch(r"w[0-9a-f]{8} AND NOT \d\d\*", hidden[5]["query_string"]["query"])


@pytest.mark.parametrize(
    "search",
    [
        {"_source": {"includes": ["user.name"], "excludes": ["blob"]}, "sort": ["_score", {"at": "desc"}]},
        {"aggs": {"by": {"terms": {"field": "kind", "size": 5, "shard_min_doc_count": 0}}}},
        {"aggs": {"c": {"composite": {"sources": [{"d": {"terms": {"field": "kind", "order": "asc"}}}]}}}},
        {"aggs": {"r": {"bucket_script": {"buckets_path": {"a": "b>c"}, "script": "params.a / 2"}}}},
        {"sort": [{"at": {"order": "asc", "missing": "_last", "unmapped_type": "date"}}]},
        {"suggest": {"s": {"term": {"field": "title", "max_edits": 2, "suggest_mode": "always"}}}},
    ],
)
def test_what_is_done_stays_as_it_is(search: dict[str, Any]):
    assert Anonymizer().body(search) == search


@pytest.mark.parametrize(
    "query",
    [
        {"term": {"field": "SECRET"}},
        {"term": {"type": "SECRET"}},
        {"terms": {"distance": ["SECRET"]}},
        {"script_score": {"script": {"source": "1", "params": {"type": "SECRET", "size": "SECRET"}}}},
        {"percolate": {"field": "q", "document": {"type": "SECRET", "source": ["SECRET"]}}},
        {"more_like_this": {"fields": ["a"], "like": [{"doc": {"type": "SECRET"}}, "SECRET"]}},
        {"sparse_vector": {"field": "v", "query_vector": {"SECRET": 1.5}}},
        {"nested": {"path": "p", "query": {"match_phrase": {"p.x": {"query": "a SECRET b"}}}}},
        {"function_score": {"query": {"prefix": {"x": "SECRET"}}, "boost_mode": "sum"}},
        {"range": {"at": {"gte": "2026-11-30 SECRET"}}},
    ],
)
def test_no_value_is_kept_for_what_its_key_is_called(query: dict[str, Any]):
    hidden = json.dumps(Anonymizer().body({"query": query, "aggs": {"f": {"filter": query}}}))
    assert "SECRET" not in hidden


def test_bounds_that_are_texts_keep_their_distance_and_date_math_stays():
    own = Anonymizer()
    bounds = {"gte": "1700000000000", "lte": "1700003600000", "gt": "now-1d/d+3h", "lt": "2023-01-05||+1M/d"}
    hidden = own.body({"query": {"range": {"at": bounds}}})["query"]["range"]["at"]
    assert int(hidden["lte"]) - int(hidden["gte"]) == 3_600_000
    assert hidden["gt"] == bounds["gt"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d\|\|\+1M/d", hidden["lt"])
    assert hidden["lt"] != bounds["lt"]
    assert own.body({"query": {"term": {"n": 1e307}}}) == {"query": {"term": {"n": 1e307}}}
    assert own.body({"query": {"term": {"n": "9" * 5_000}}})["query"]["term"]["n"].startswith("w")
