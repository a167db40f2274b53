"""Logs of searches, as engines write them: what is read of a line, and which lines are one search."""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from benchctl.corpus.query_log import LeftOut, Query, read_line, read_log
from benchctl.errors import UsageError

SAMPLES = sorted((Path(__file__).parent / "slow_logs").glob("*.json"))
AT = 1_780_000_000_000
BODY: dict[str, Any] = {"query": {"term": {"kind": {"value": "a"}}}, "size": 3}
Write = Callable[[Query], list[dict[str, Any]]]


def of_elasticsearch_8(query: Query, *, shards: Iterable[int] = (0,), of: int = 1) -> list[dict[str, Any]]:
    return [
        {
            "@timestamp": iso(query.at_ms + round(query.took_ms or 0)),
            "log.level": "WARN",
            "elasticsearch.slowlog.message": f"[{index}][{shard}]",
            "elasticsearch.slowlog.search_type": "QUERY_THEN_FETCH",
            # Escaped once more, as nodes do.
            "elasticsearch.slowlog.source": json.dumps(json.dumps(query.body))[1:-1],
            "elasticsearch.slowlog.took_millis": round(query.took_ms or 0),
            "elasticsearch.slowlog.total_shards": of,
            "event.dataset": "elasticsearch.index_search_slowlog",
            "log.logger": "index.search.slowlog.query",
        }
        for index in query.indices
        for shard in shards
    ]


def of_opensearch(query: Query, *, shards: Iterable[int] = (0,), of: int = 1) -> list[dict[str, Any]]:
    return [
        {
            "type": "index_search_slowlog",
            "timestamp": iso(query.at_ms + round(query.took_ms or 0)).replace(".", ","),
            "level": "WARN",
            "component": "i.s.s.query",
            "message": f"[{index}][{shard}]",
            "took_millis": str(round(query.took_ms or 0)),
            "search_type": "QUERY_THEN_FETCH",
            "total_shards": str(of),
            "source": json.dumps(query.body),
            "id": "",
        }
        for index in query.indices
        for shard in shards
    ]


def of_insights(query: Query) -> list[dict[str, Any]]:
    return [
        {
            "timestamp": query.at_ms,
            "search_type": "query_then_fetch",
            "source": query.body,
            "indices": list(query.indices),
            "measurements": {"latency": {"number": query.took_ms, "count": 1}},
        }
    ]


def of_plain(query: Query) -> list[dict[str, Any]]:
    path = f"/{','.join(query.indices)}/_search" + (f"?{query.params}" if query.params else "")
    return [{"timestamp": iso(query.at_ms), "path": path, "body": query.body, "took_ms": query.took_ms}]


def iso(at_ms: int) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415 - of this function alone

    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1000:03d}Z"


def write(path: Path, lines: Iterable[Any]) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def read(path: Path, *patterns: str) -> tuple[list[Query], Counter[str]]:
    left_out: Counter[str] = Counter()
    return list(read_log(path, patterns, lambda _read: None, left_out)), left_out


bodies = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
queries = st.builds(
    lambda at_ms, took_ms, body, index: Query(at_ms, (index,), "", {"query": body}, float(took_ms)),
    st.integers(AT, AT + 10**9),
    st.integers(0, 10_000),
    bodies,
    st.from_regex(r"[a-z][a-z0-9.-]{0,9}", fullmatch=True),
)


@pytest.mark.parametrize("form", [of_elasticsearch_8, of_opensearch, of_insights, of_plain])
@given(logged=st.lists(queries, min_size=1, max_size=4))
def test_what_was_asked_is_read_from_every_kind_of_log(
    form: Write, logged: list[Query], tmp_path_factory: pytest.TempPathFactory
):
    path = write(tmp_path_factory.mktemp("log") / "log.json", (line for one in logged for line in form(one)))
    assert read(path) == (logged, Counter())


@pytest.mark.parametrize("form", [of_elasticsearch_8, of_opensearch])
def test_the_shards_of_a_search_are_one_search(form: Any, tmp_path: Path):
    first, second = Query(AT, ("a", "b"), "", BODY, 5.0), Query(AT + 20, ("a", "b"), "", BODY, 7.0)
    # Two shards of two indices: of the second search, one could not match and says nothing.
    lines = [*form(first, shards=(1, 0), of=4), *form(second, shards=(0,), of=4)]
    assert read(write(tmp_path / "log.json", lines))[0] == [first, second]


def test_equal_searches_at_the_same_time_stay_two(tmp_path: Path):
    one = Query(AT, ("a", "b"), "", BODY, 0.0)
    # Both are at work at once: the second shard of the first comes behind the first of the second.
    parts = [one._replace(indices=(name,)) for name in ("a", "a", "b", "b")]
    lines = [line for part in parts for line in of_opensearch(part, of=2)]
    assert read(write(tmp_path / "log.json", lines))[0] == [one, one]


def test_equal_searches_far_apart_stay_two(tmp_path: Path):
    one, other = Query(AT, ("a",), "", BODY, 0.0), Query(AT + 60_000, ("a",), "", BODY, 0.0)
    lines = [*of_opensearch(one, shards=(0,), of=2), *of_opensearch(other, shards=(1,), of=2)]
    assert read(write(tmp_path / "log.json", lines))[0] == [one, other]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"log.logger": "index.search.slowlog.fetch"}, "fetch phase"),
        ({"event.dataset": "elasticsearch.index_indexing_slowlog", "log.logger": "index"}, "another kind"),
        ({"elasticsearch.slowlog.source": '{"query":{"te'}, "cut off"),
        ({"elasticsearch.slowlog.source": '{"pit":{"id":"x"}}'}, "point in time"),
        ({"elasticsearch.slowlog.source": '{"slice":{"id":0,"max":2}}'}, "slice"),
        ({"@timestamp": "yesterday"}, "without a time"),
    ],
)
def test_what_cannot_be_sent_again_is_left_out_by_name(changes: dict[str, Any], words: str):
    (line,) = of_elasticsearch_8(Query(AT, ("a",), "", BODY, 1.0))
    with pytest.raises(LeftOut, match=words):
        read_line(line | changes)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"path": "/a/_msearch", "body": {}}, "_msearch"),
        ({"path": "/a/_search?scroll=1m", "body": {}}, "scroll"),
        ({"path": "/_search/scroll", "body": {}}, "_search/scroll"),
        ({"body": "{"}, "cut off"),
        ({"body": [1]}, "another body"),
        ({"answer": 42}, "another kind"),
    ],
)
def test_so_it_is_of_plain_lines(line: dict[str, Any], words: str):
    with pytest.raises(LeftOut, match=words):
        read_line({"timestamp": AT} | line)


def test_parameters_of_a_plain_line_stay_but_for_those_of_its_form(tmp_path: Path):
    path = "/a,b-*/_search?request_cache=false&pretty"
    (found,), _ = read(write(tmp_path / "log.json", [{"timestamp": AT, "path": path, "body": BODY}]))
    assert found == Query(AT, ("a", "b-*"), "request_cache=false", BODY, None)


def test_patterns_choose_indices_and_the_rest_is_counted(tmp_path: Path):
    logged = [
        Query(AT + place, (name,), "", BODY, 1.0) for place, name in enumerate(("logs-1", "logs-2", "x"))
    ]
    lines = [line for one in logged for line in of_plain(one)]
    found, left_out = read(write(tmp_path / "log.json", [*lines, "no json", '"text"']), "logs-*")
    assert found == logged[:2]
    assert left_out == {
        "a search of another index": 1,
        "a line that cannot be read as JSON": 1,
        "a line of another kind": 1,
    }


def test_compressed_logs_and_an_export_in_one_object_are_read(tmp_path: Path):
    one = Query(AT, ("a",), "", BODY, 2.5)
    text = "\n".join(map(json.dumps, of_insights(one))).encode()
    (tmp_path / "log.json.gz").write_bytes(gzip.compress(text))
    (tmp_path / "log.json.zst").write_bytes(zstandard.compress(text))
    whole = json.dumps({"top_queries": of_insights(one) * 2}, indent=1)
    (tmp_path / "top.json").write_text(whole, encoding="utf-8")
    assert read(tmp_path / "log.json.gz")[0] == read(tmp_path / "log.json.zst")[0] == [one]
    assert read(tmp_path / "top.json")[0] == [one, one]


def test_a_file_without_searches_is_refused_with_what_it_has(tmp_path: Path):
    with pytest.raises(UsageError, match="2 x a line that cannot be read as JSON"):
        read(write(tmp_path / "log.log", ["[2026-11-30][WARN] took[1ms]", "more of it"]))
    with pytest.raises(UsageError, match="it is empty"):
        read(write(tmp_path / "empty.json", []))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem)
def test_samples_that_nodes_have_written_are_read(sample: Path):
    # Written by `test_query_logs` among the tests on nodes, which knows what it asked.
    found, left_out = read(sample)
    kinds = [next(iter(one.body.get("query", {"none": 0}))) for one in found]
    assert kinds[:4] == ["term", "range", "match_all", "bool"]
    assert all(one.indices == ("things",) and one.at_ms > AT // 2 for one in found)
    assert any("point in time" in kind for kind in left_out)


@pytest.mark.parametrize(
    ("line", "at_ms"),
    [
        ({"timestamp": 1_780_000_000}, AT),
        ({"timestamp": "1780000000"}, AT),
        ({"timestamp": AT}, AT),
        ({"timestamp": 1500}, 1500),
        ({"timestamp": AT * 1000}, None),
        ({"timestamp": 10**25}, None),
    ],
)
def test_times_are_milliseconds_or_seconds(line: dict[str, Any], at_ms: int | None):
    if at_ms is None:
        with pytest.raises(LeftOut, match="not in milliseconds"):
            read_line({"body": {}, **line})
    else:
        assert read_line({"body": {}, **line}).query.at_ms == at_ms


@pytest.mark.parametrize("took", [-1, 1e300, float("inf"), float("nan"), None])
def test_a_time_that_is_none_is_unknown(took: float | None):
    assert read_line({"timestamp": AT, "body": {}, "took_ms": took}).query.took_ms is None


def test_odd_lines_are_searches_or_counted(tmp_path: Path):
    deep = '{"timestamp": 1, "body": ' + '{"a":' * 5_000 + "1" + "}" * 5_000 + "}"
    lines = [
        {"timestamp": 1, "path": "/_all/_search", "body": {}},
        {"timestamp": 2, "path": "/a/_search/", "body": {}},
        {"timestamp": 3, "index": [1, "b"], "body": {}},
        {"timestamp": 4, "path": "/a/_MSearch", "body": {}},
        {"timestamp": 5, "body": {}, "took_ms": "soon"},
        deep,
    ]
    found, left_out = read(write(tmp_path / "log.json", lines))
    assert [query.indices for query in found] == [("_all",), ("a",), ("1", "b")]
    assert sum(left_out.values()) == 3
    assert left_out["a request to /_MSearch"] == 1


def test_an_export_that_is_cut_short_is_refused(tmp_path: Path):
    (tmp_path / "top.json").write_text('{"top_queries": [{"source": {}', encoding="utf-8")
    with pytest.raises(UsageError, match="not one JSON object"):
        read(tmp_path / "top.json")
