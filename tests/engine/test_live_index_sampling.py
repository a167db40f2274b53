"""Samples of a live index: exact in number, even, the same again, and never short without a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.live_index import PAGE_BYTES, page_size, plan_draw, read_hits, read_page
from benchctl.errors import BenchctlError, UsageError
from live_cluster import NAME, LiveCluster


def drawn(cluster: LiveCluster, docs: int | None, *, seed: int = 1, page: int = 7) -> list[int]:
    draw = plan_draw(cluster.client, NAME, docs=docs, seed=seed)
    return [hit["_source"]["n"] for hits in read_hits(cluster.client, NAME, draw, page=page) for hit in hits]


def cluster_of(count: int) -> LiveCluster:
    return LiveCluster([{"n": number} for number in range(count)])


def test_all_documents_come_in_their_order():
    cluster = cluster_of(50)
    assert drawn(cluster, None) == list(range(50))
    assert drawn(cluster, 50) == drawn(cluster, 1000) == list(range(50))
    assert max(cluster.pages) == 7
    assert cluster.scrolls == 0


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**31 - 1), st.integers(1, 50))
def test_a_sample_has_exactly_the_number_that_was_asked_for(held: int, docs: int, seed: int, page: int):
    found = drawn(cluster_of(held), docs, seed=seed, page=page)
    assert len(found) == min(held, docs)
    assert found == sorted(set(found))


def test_a_draw_that_comes_out_small_is_repeated():
    cluster = LiveCluster([{"n": number} for number in range(1000)], low_scores=True)
    assert len(drawn(cluster, 100)) == 100


def test_the_same_seed_draws_the_same_and_another_seed_others():
    cluster = cluster_of(1000)
    assert drawn(cluster, 100, seed=3) == drawn(cluster, 100, seed=3)
    assert drawn(cluster, 100, seed=3) != drawn(cluster, 100, seed=4)


def test_a_sample_is_even():
    times = [0] * 10
    for seed in range(60):
        for number in drawn(cluster_of(200), 20, seed=seed, page=50):
            times[number // 20] += 1
    assert sum(times) == 60 * 20
    assert all(80 <= count <= 160 for count in times)


def test_an_index_without_documents_is_refused():
    with pytest.raises(UsageError, match="has no documents"):
        drawn(cluster_of(0), None)


def test_incomplete_pages_are_failures_and_close_the_scroll():
    for fault, words in (
        ({"fail_page": 2}, "incomplete page: 1 shards failed"),
        ({"empty_page": 3}, "stopped giving documents while 36 were still to come"),
        ({"without_source": True}, "document 0 comes without its `_source`"),
    ):
        cluster = LiveCluster([{"n": number} for number in range(50)], **fault)  # type: ignore[arg-type]
        with pytest.raises(BenchctlError, match=words):
            drawn(cluster, None)
        assert cluster.scrolls == 0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([], "Expected `object`, got `array`"),
        ({"hits": {"hits": []}}, "required field `total`"),
        ({"hits": {"hits": [], "total": 5}}, r"got `int` - at `\$.hits.total`"),
        ({"hits": {"hits": [], "total": {"value": -5}}}, "`int` >= 0"),
        ({"hits": {"hits": ["a"], "total": {"value": 1}}}, r"got `str` - at `\$.hits.hits\[0\]`"),
    ],
)
def test_what_is_no_answer_to_a_search_is_told(answer: object, said: str):
    with pytest.raises(BenchctlError, match=f"answers a search with something else: .*{said}"):
        read_page(answer)


def test_whoever_stops_reading_closes_the_scroll():
    cluster = cluster_of(50)
    pages = read_hits(cluster.client, NAME, plan_draw(cluster.client, NAME, docs=None, seed=1), page=5)
    assert len(next(pages)) == 5
    assert cluster.scrolls == 1
    pages.close()  # type: ignore[attr-defined]
    assert cluster.scrolls == 0


def test_pages_are_bounded_by_bytes_and_by_the_index():
    assert page_size(1000.0, None) == 2000
    assert page_size(100_000.0, None) == round(PAGE_BYTES / 100_000)
    assert page_size(10.0**9, None) == 10
    assert page_size(1000.0, 5) == 5
