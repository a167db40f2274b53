"""Every search of the big5 track must find something from 100,000 documents up, or it measures nothing."""

from datetime import UTC, datetime

import pytest

from benchctl.track.load import load_track
from benchctl.track.operations.search import Search
from plain_search import Document, behind, matching

TRACK, _ = load_track("big5", {})
BODIES = {name: one.body for name, one in TRACK.operations.items() if isinstance(one, Search)}


def sized(first: int, last: int) -> dict[str, object]:
    return {"query": {"range": {"metrics.size": {"gte": first, "lte": last}}}}


# What only together with something else is asked for: neither half may be empty.
HALVES = {
    "the small term alone": {"query": {"term": {"aws.cloudwatch.log_stream": "indigodagger"}}},
    "the small range alone": sized(10, 20),
    **{
        f"only {word}": {"query": {"query_string": {"query": f"message: {word}"}}}
        for word in ("monkey", "jackal", "bear")
    },
}


@pytest.mark.parametrize("name", [*BODIES, *HALVES])
def test_every_search_matches(sample: list[Document], name: str):
    body = BODIES.get(name) or HALVES[name]
    assert len(behind(body, matching(body, sample))) >= 10


def test_range_matches_the_blogs_share(sample: list[Document]):
    assert len(matching(BODIES["range"], sample)) / len(sample) == pytest.approx(0.276, abs=0.001)


def test_every_size_bucket_of_the_range_aggregations_is_filled(sample: list[Document]):
    for first, stop in ((1, 10), (10, 100), (100, 1000), (1000, 2000), (2000, 10_001)):
        assert any(first <= document["metrics.size"] < stop for document in sample)


def test_every_hour_has_documents(sample: list[Document]):
    hours = {document["@timestamp"][:13] for document in sample}
    assert len(hours) == 7 * 24 + 6
    assert datetime.fromisoformat(max(hours) + ":00:00Z") < datetime(2023, 1, 8, 6, tzinfo=UTC)
