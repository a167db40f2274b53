"""The big5 generator: its days and part files, and documents of the published form."""

import hashlib
import re
import tracemalloc
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.corpus.big5 import GENERATOR_VERSION, days, generate, spans

SIZES = st.integers(1, 3_000_000)


@given(documents=st.integers(0, 2 * 10**9))
def test_days_have_no_gaps_and_are_equal_but_the_last(documents: int):
    found = days(documents)
    assert (found[0].start, found[-1].stop) == (0, documents)
    assert all(day.stop == after.start for day, after in pairwise(found))
    assert all(abs(day.documents - documents * 4 / 29) <= 1 for day in found[:-1])
    assert abs(found[-1].documents - documents / 29) <= 1


@given(documents=SIZES, most=st.integers(1000, 100_000))
def test_parts_cover_the_corpus_in_order_and_within_days(documents: int, most: int):
    found = list(spans(documents, most=most))
    assert (found[0].start, found[-1].stop) == (0, documents)
    assert all(span.stop == after.start for span, after in pairwise(found))
    assert all(0 < span.stop - span.start <= most for span in found)
    assert len({span.name for span in found}) == len(found)
    by_number = {day.number: day for day in days(documents)}
    for span in found:
        day = by_number[int(span.name[4:6])]
        assert day.start <= span.start < span.stop <= day.stop


# Every value in its own form, and every repetition of a value equal to its first occurrence.
DOCUMENT = re.compile(
    r'\{"@timestamp":"(?P<date>2023-01-0[1-8])T\d\d:\d\d:\d\d\.000Z","aws\.cloudwatch":\{"log_stream":"(?P<stream>[a-z]+)",'
    r'"ingestion_time":"(?P<ingestion>2023-0[45]-\d\dT(?P<clock>\d\d:\d\d:\d\d)\.\d{3}Z)","log_group":"/var/log/messages"\},'
    r'"cloud":\{"region":"[a-z]+-[a-z]+-\d"\},"log\.file\.path":"/var/log/messages/(?P=stream)",'
    r'"input":\{"type":"aws-cloudwatch"\},"data_stream":\{"namespace":"default","type":"logs","dataset":"generic"\},'
    r'"process":\{"name":"(?P<process>[a-z]+)"\},"message":"(?P=ingestion) (Apr|May) \d\d (?P=clock) '
    r'ip(-\d{1,3}){4} (?P=process):( [a-z]+){1,25}","event":\{"id":"[a-z]+",'
    r'"ingested":"2023-07-\d\dT\d\d:\d\d:\d\d\.\d{6}Z","dataset":"generic"\},"host":\{"name":"(?P<host>[a-z]+)"\},'
    r'"metrics":\{"size":[1-9]\d*,"tmin":[1-9]\d*\},"agent":\{"id":"(?P<agent>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})",'
    r'"name":"(?P=host)","type":"filebeat","version":"8\.8\.0","ephemeral_id":"(?P=agent)"\},'
    r'"tags":\["preserve_original_event"\],"meta":\{"file":"(?P=date)/168\d{7}-gotext\.ndjson\.gz"\}\}\n'
)


def _whole(seed: int, documents: int) -> bytes:
    return b"".join(generate(seed, documents, 0, documents))


def test_golden_digest():
    """If this changes on purpose, so must GENERATOR_VERSION: corpora and prepared indices depend on it."""
    digest = hashlib.sha256(_whole(1, 10_000)).hexdigest()
    assert (GENERATOR_VERSION, digest) == (
        1,
        "cccf28fdd6fe526fd459ce85cb9772f7946a65434db3a004ae91537a1da32276",
    )


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**64 - 1),
    documents=st.integers(1, 12_000),
    cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_a_slice_equals_that_part_of_the_whole(seed: int, documents: int, cuts: tuple[float, float]):
    start, stop = sorted(int(cut * documents) for cut in cuts)
    lines = _whole(seed, documents).splitlines(keepends=True)
    assert len(lines) == documents
    assert b"".join(generate(seed, documents, start, stop)) == b"".join(lines[start:stop])


def test_documents_of_the_largest_corpus():
    documents = 1_740_763_348
    lines = b"".join(generate(1, documents, documents - 5, documents)).decode().splitlines(keepends=True)
    assert len(lines) == 5
    assert all(DOCUMENT.fullmatch(line) and '"2023-01-08T0' in line for line in lines)


def test_every_document_has_the_form_of_big5():
    for block in generate(7, 20_000, 0, 20_000):
        for line in block.decode("ascii").splitlines(keepends=True):
            assert DOCUMENT.fullmatch(line), line


def test_mean_size_is_that_of_the_published_corpus():
    assert len(_whole(1, 50_000)) / 50_000 == pytest.approx(64_048_001_338 / 69_223_950, rel=0.005)


def test_days_follow_one_another_but_times_within_are_in_no_order(sample: list[dict[str, Any]]):
    stamps = [document["@timestamp"] for document in sample]
    dates = [stamp[:10] for stamp in stamps]
    assert dates == sorted(dates)
    for day in days(len(sample)):
        times = stamps[day.start : day.stop]
        assert {time[:10] for time in times} == {day.date.isoformat()}
        rising = sum(first < second for first, second in pairwise(times))
        assert 0.47 < rising / len(times) < 0.53
        hours = Counter(int(time[11:13]) for time in times)
        assert set(hours) == set(range(day.seconds // 3600))
        mean = len(times) / len(hours)
        assert all(abs(count - mean) < 5 * mean**0.5 for count in hours.values())


def test_memory_does_not_grow_with_the_slice():
    next(generate(1, 10**9, 0, 10))
    peaks = []
    for documents in (20_000, 100_000):
        tracemalloc.start()
        total = sum(map(len, generate(1, 10**9, 0, documents)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert total > 900 * documents
    assert max(peaks) < 32e6
    assert peaks[1] < 1.1 * peaks[0]


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (4, 3), (0, 11), (11, 11)])
def test_slices_outside_of_the_corpus_are_refused(start: int, stop: int):
    with pytest.raises(ValueError, match="not a slice"):
        list(generate(1, 10, start, stop))
