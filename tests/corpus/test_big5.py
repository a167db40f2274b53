"""The big5 generator: its days and part files, and documents of the published form."""

import datetime as dt
import hashlib
import json
import re
import tracemalloc
from collections import Counter
from itertools import pairwise
from math import gcd
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.corpus.big5 import BLOCK_DOCUMENTS, GENERATOR_VERSION, NAME_STRIDE, days, generate, spans
from benchctl.corpus.tables import NAMES

SIZES = st.integers(1, 3_000_000)


@given(documents=st.integers(0, 2 * 10**9))
def test_days_have_no_gaps_and_are_equal_but_the_last(documents: int):
    found = days(documents)
    assert (found[0].start, found[-1].stop) == (0, documents)
    assert all(day.stop == after.start for day, after in pairwise(found))
    assert all(abs(day.documents - documents * 4 / 29) <= 1 for day in found[:-1])
    assert abs(found[-1].documents - documents / 29) <= 1


def test_calendar():
    found = days(100)
    assert [day.date for day in found] == [dt.date(2023, 1, number) for number in range(1, 9)]
    assert [day.seconds for day in found] == [86_400] * 7 + [21_600]


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


def test_part_names():
    names = [span.name for span in spans(1_000_000)]
    assert names[:3] == [
        "day-00-part-0000.ndjson.zst",
        "day-00-part-0001.ndjson.zst",
        "day-01-part-0000.ndjson.zst",
    ]
    assert names[-1] == "day-07-part-0000.ndjson.zst"


KEYS = {
    "@timestamp": None,
    "aws.cloudwatch": ["log_stream", "ingestion_time", "log_group"],
    "cloud": ["region"],
    "log.file.path": None,
    "input": ["type"],
    "data_stream": ["namespace", "type", "dataset"],
    "process": ["name"],
    "message": None,
    "event": ["id", "ingested", "dataset"],
    "host": ["name"],
    "metrics": ["size", "tmin"],
    "agent": ["id", "name", "type", "version", "ephemeral_id"],
    "tags": None,
    "meta": ["file"],
}

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


def test_seed_and_size_both_count():
    assert len({_whole(1, 500), _whole(2, 500), _whole(1, 600)[: len(_whole(1, 500))]}) == 3


def test_documents_of_the_largest_corpus():
    documents = 1_740_763_348
    lines = b"".join(generate(1, documents, documents - 5, documents)).decode().splitlines(keepends=True)
    assert len(lines) == 5
    assert all(DOCUMENT.fullmatch(line) and '"2023-01-08T0' in line for line in lines)


def test_blocks_are_whole_lines_of_bounded_number():
    for block in generate(1, 40_000, 3, 30_000):
        assert block.endswith(b"\n")
        assert block.count(b"\n") <= BLOCK_DOCUMENTS


def test_keys_are_those_of_big5_in_their_order():
    for line in _whole(1, 200).splitlines():
        document = json.loads(line)
        shape = {name: list(value) if isinstance(value, dict) else None for name, value in document.items()}
        assert shape == KEYS
        assert list(shape) == list(KEYS)
        assert document["tags"] == ["preserve_original_event"]


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


def test_meta_file_and_ingestion_follow_the_day(sample: list[dict[str, Any]]):
    assert all(document["meta.file"].startswith(document["@timestamp"][:10]) for document in sample)
    files = [document["meta.file"] for document in sample]
    assert files == sorted(files)
    assert len(set(files)) == 8 * 24
    hours = [document["message"][:13] for document in sample]
    assert hours == sorted(hours)


@pytest.mark.parametrize("field", ["aws.cloudwatch.log_stream", "host.name"])
def test_about_one_name_in_a_hundred_documents_a_day(sample: list[dict[str, Any]], field: str):
    for day in days(len(sample)):
        names = {document[field] for document in sample[day.start : day.stop]}
        assert len(names) == pytest.approx(day.documents / 100, abs=5)


def test_names_of_one_pool_differ():
    assert gcd(NAME_STRIDE, NAMES) == 1


def test_event_ids_hardly_repeat(sample: list[dict[str, Any]]):
    assert len({document["event.id"] for document in sample}) > 0.8 * len(sample)


def test_low_cardinality_fields(sample: list[dict[str, Any]]):
    for field, cardinality in (("process.name", 7), ("cloud.region", 25), ("agent.id", 10)):
        counts = Counter(document[field] for document in sample)
        assert len(counts) == cardinality
        mean = len(sample) / cardinality
        assert all(abs(count - mean) < 5 * mean**0.5 for count in counts.values())


def test_metrics(sample: list[dict[str, Any]]):
    sizes = [document["metrics.size"] for document in sample]
    assert (min(sizes), max(sizes)) == (1, 10_000)
    assert sum(size < 1000 for size in sizes) / len(sizes) == pytest.approx(0.05, abs=0.003)
    tmin = [document["metrics.tmin"] for document in sample]
    assert (min(tmin), max(tmin)) == (1, 2000)


@pytest.mark.parametrize("name", ["fuschiashoulder", "solarshark", "indigodagger"])
def test_rare_streams_have_their_share(sample: list[dict[str, Any]], name: str):
    found = sum(document["aws.cloudwatch.log_stream"] == name for document in sample)
    assert found == pytest.approx(40, abs=32)


def test_messages(sample: list[dict[str, Any]]):
    counts = Counter(len(document["message"].split(": ", 1)[1].split(" ")) for document in sample)
    assert set(counts) == set(range(1, 26))
    for animal in ("monkey", "jackal", "bear"):
        share = sum(animal in document["message.words"] for document in sample) / len(sample)
        assert 0.005 < share < 0.03


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


def test_the_empty_slice_has_no_blocks():
    assert list(generate(1, 10, 5, 5)) == []
