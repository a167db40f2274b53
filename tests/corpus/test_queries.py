"""The log of a track: its searches by shape, at their times, as they are sent."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchctl.corpus.queries import query_log
from benchctl.errors import BenchctlError

LINES: list[dict[str, Any]] = [
    {"timestamp": 1000, "shape": "a", "body": {"size": 1}},
    {"timestamp": 1500, "shape": "b", "index": "x,y-*", "params": "request_cache=false", "body": {"size": 2}},
    {"timestamp": 1500, "shape": "a", "took_ms": 3.0, "body": {"size": 1}},
    {"timestamp": 4000, "shape": "a", "body": {"size": 3}},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "queries.json"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in LINES), encoding="utf-8")
    return file


def test_searches_of_a_shape_are_in_the_order_of_the_log_with_their_times(path: Path):
    log = query_log(path)
    assert log.places("a").tolist() == [0, 2, 3]
    assert log.places(None).tolist() == [0, 1, 2, 3]
    assert log.since_ns(log.places("a")).tolist() == [0, 500_000_000, 3_000_000_000]
    assert log.sent(0, "big5") == ("/big5/_search", b'{"size": 1}')
    assert log.sent(1, "big5") == ("/x,y-*/_search?request_cache=false", b'{"size": 2}')


def test_different_searches_come_once(path: Path):
    log = query_log(path)
    assert list(log.distinct("a", 9)) == [("", {}, {"size": 1}), ("", {}, {"size": 3})]
    assert len(list(log.distinct(None, 2))) == 2


def test_a_log_is_read_once_until_it_changes(path: Path):
    first = query_log(path)
    assert query_log(path) is first
    path.write_text('{"timestamp": 5, "body": {}}\n', encoding="utf-8")
    assert query_log(path).places(None).tolist() == [0]


def test_what_is_no_log_is_refused_with_its_line(tmp_path: Path, path: Path):
    with pytest.raises(BenchctlError, match="has none of shape 'c'"):
        query_log(path).places("c")
    for name, text, words in (
        ("a", '{"timestamp": 1}\nno\n', "line 2"),
        ("b", "", "cannot read"),
        ("c", "{}\n", "1"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(BenchctlError, match=words):
            query_log(tmp_path / name)
    with pytest.raises(BenchctlError, match="No such file"):
        query_log(tmp_path / "nothing")
