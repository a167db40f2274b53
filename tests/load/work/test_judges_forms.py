"""Forms of requests: judges by path, and filters of responses widened by what judges need."""

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.load.work.judges import (
    answerable,
    judge_health,
    judge_of,
    judge_plain,
)
from benchctl.results.samples import Outcome
from golden import Cases

SHARD_LOST = b'{"took":1,"count":1,"_shards":{"total":2,"failed":1}}'
FAILED_ITEMS = b'{"took":1,"failures":[{"cause":{"type":"x"}}]}'

FORMS = [
    ("POST", "/_search", SHARD_LOST),
    ("GET", "/a,b*/_search?size=0", SHARD_LOST),
    ("POST", "/a/type/_search/template", SHARD_LOST),
    ("POST", "/_search/scroll", SHARD_LOST),
    ("POST", "/a/_knn_search", SHARD_LOST),
    ("POST", "/_msearch", b'{"took":1,"responses":[%s]}' % SHARD_LOST),
    ("GET", "/a/_msearch/template", b'{"took":1,"responses":[%s]}' % SHARD_LOST),
    ("PUT", "/a/_bulk", b'{"errors":true,"items":[{"index":{"status":400}}]}'),
    ("GET", "/a/_count", SHARD_LOST),
    ("POST", "/_refresh", SHARD_LOST),
    ("POST", "/a/_forcemerge?max_num_segments=1", SHARD_LOST),
    ("POST", "/a/_search/point_in_time", SHARD_LOST),
    ("PUT", "/a/_doc/1?refresh", SHARD_LOST),
    ("POST", "/a/_async_search", b'{"is_running":false,"response":%s}' % SHARD_LOST),
    ("GET", "/_async_search/FmRl==", b'{"is_running":false,"response":%s}' % SHARD_LOST),
    ("POST", "/a/_update_by_query", FAILED_ITEMS),
    ("POST", "/_reindex", FAILED_ITEMS),
    ("GET", "/a/_field_caps?fields=*", FAILED_ITEMS),
    ("POST", "/a/_mget", b'{"docs":[{"_id":"1","error":{"type":"x"}}]}'),
    ("POST", "/_query", b'{"is_partial":true}'),
    ("PUT", "/_snapshot/r/s", b'{"snapshot":{"state":"PARTIAL"}}'),
]
OTHERS = [
    ("DELETE", "/_search/scroll"),
    ("DELETE", "/_search/point_in_time"),
    ("PUT", "/_search/pipeline/p"),
    ("POST", "/_snapshot/r/_verify"),
    ("GET", "/_snapshot/r/s"),
    ("PUT", "/a"),
    ("GET", "/a/_mapping"),
    ("GET", "/_cat/count"),
    ("HEAD", "/_search"),
]


@pytest.mark.parametrize(("method", "path", "partial"), FORMS)
def test_a_path_says_how_its_response_is_judged(method: str, path: str, partial: bytes):
    assert judge_of(method, path)(200, partial).outcome is Outcome.PARTIAL


@pytest.mark.parametrize(("method", "path"), OTHERS)
def test_other_paths_are_judged_by_their_status(method: str, path: str):
    assert judge_of(method, path) is judge_plain


def test_health_that_did_not_come_is_a_timeout():
    judge = judge_of("GET", "/_cluster/health/a")
    assert judge is judge_health
    assert judge(200, b'{"status":"red","timed_out":true}').outcome is Outcome.TIMEOUT


def patterns(path: str) -> list[str]:
    (filters,) = parse_qs(urlsplit(path).query)["filter_path"]
    return filters.split(",")


SEARCHED = ["took", "timed_out", "_shards.total", "_shards.failed"]


def test_a_filter_lets_through_what_a_search_is_judged_by(cases: Cases):
    def sent(asked: str) -> str:
        return ",".join(patterns(answerable("POST", f"/a/_search?size=1&filter_path={asked}&x=1", ())))

    cases("filters", sent)


def test_a_filter_of_nothing_but_what_is_needed_goes():
    assert answerable("POST", "/a/_search?filter_path=-_shards", ()) == "/a/_search?"
    assert answerable("POST", "/a/_search?size=1&filter_path=-**", ()) == "/a/_search?size=1"


def test_what_has_no_filter_or_needs_nothing_stays_as_it_is():
    for path in ("/a/_search?size=1", "/_cat/indices?filter_path=a,-b", "/a/_search"):
        assert answerable("GET", path, ()) == path
    assert patterns(answerable("GET", "/x?filter_path=a", ("b.c",))) == ["a", "b.c"]


@given(st.text(alphabet="ab*._-,%&=?", max_size=30))
def test_any_filter_is_passed_on(asked: str):
    sent = answerable("POST", f"/a/_search?filter_path={asked}", ())
    assert sent.startswith("/a/_search?")
