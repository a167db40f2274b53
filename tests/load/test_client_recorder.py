"""A client's samples and failures as they are recorded: nothing lost, added up by kind."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.load import client as recorder_module
from benchctl.load.client import Failure, Recorder, Tally, count_tooks, merge_failures, merge_tooks
from benchctl.load.transport import Answer, Exchange
from benchctl.results.samples import (
    ROW_DTYPE,
    SAMPLE_DTYPES,
    Columns,
    Outcome,
    RowOwner,
    SampleSpool,
    concatenate,
)

INT64 = st.integers(0, 2**62)
EXCHANGES = st.builds(
    Exchange,
    start_ns=INT64,
    connect_ns=INT64,
    end_ns=INT64,
    status=st.integers(0, 999),
    body=st.just(b""),
    response_bytes=INT64,
)
ANSWERS = st.builds(
    Answer,
    outcome=st.sampled_from(Outcome),
    took_ms=st.integers(-1, 2**31 - 1),
    hits=st.integers(-1, 2**63 - 1),
    hits_exact=st.booleans(),
    failed_shards=st.integers(0, 2**15 - 1),
)
OWN = st.fixed_dictionaries(
    {
        "warmup": st.booleans(),
        "turn": st.integers(0, 2**31 - 1),
        "part": st.integers(0, 2**15 - 1),
        "attempt": st.integers(0, 127),
        "weight": st.integers(0, 2**31 - 1),
        "processing_ns": INT64,
    }
)
ROWS = st.lists(st.tuples(EXCHANGES, ANSWERS, INT64, OWN), max_size=30)
EXCHANGE = Exchange(5, 0, 9, 200, b"", 0)
PLACE = RowOwner(origin_ns=0, schedule=0, task=0, boot=0, client=0)

Fill = Callable[[Recorder], None]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recorder_module, "_TASK_BYTES", 16 * ROW_DTYPE.itemsize)
    monkeypatch.setattr(recorder_module, "_MOST_CHUNK_ROWS", 4)
    monkeypatch.setattr(recorder_module, "_LEAST_CHUNK_ROWS", 2)


def recorded(spool: SampleSpool, place: RowOwner, fill: Fill, expected: int | None) -> Columns:
    file = spool.file(place)
    recorder = Recorder(expected, file)
    fill(recorder)
    recorder.finish()
    return concatenate(list(file.pieces()))


@pytest.mark.usefixtures("small_chunks")
@settings(deadline=None)
@given(
    rows=ROWS,
    expected=st.none() | st.integers(0, 40),
    origin_ns=st.integers(0, 2**61),
    on_disk=st.booleans(),
)
def test_columns_are_what_was_appended(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[Exchange, Answer, int, dict[str, int]]],
    expected: int | None,
    origin_ns: int,
    on_disk: bool,  # noqa: FBT001 - hypothesis draws it
):
    def fill(recorder: Recorder) -> None:
        for number, (exchange, answer, intended_ns, own) in enumerate(rows):
            assert recorder.count == number
            recorder.append(exchange, answer, intended_ns, **own)
        assert recorder.count == len(rows)

    place = RowOwner(origin_ns=origin_ns, schedule=1, task=2, boot=3, client=4)
    if on_disk:
        with SampleSpool(tmp_path_factory.mktemp("spool") / "x") as spool:
            columns = recorded(spool, place, fill, expected)
    else:
        recorder = Recorder(expected)
        fill(recorder)
        columns = recorder.columns(place)
    assert {name: values.dtype for name, values in columns.items()} == dict(SAMPLE_DTYPES)
    found = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert found == [
        {
            "schedule": 1,
            "task": 2,
            "boot": 3,
            "client": 4,
            "intended_ns": intended_ns - origin_ns,
            "start_ns": exchange.start_ns - origin_ns,
            "connect_ns": exchange.connect_ns,
            "end_ns": exchange.end_ns - origin_ns,
            "status": exchange.status,
            "outcome": answer.outcome,
            "took_ms": answer.took_ms,
            "hits": answer.hits,
            "hits_exact": answer.hits_exact,
            "response_bytes": exchange.response_bytes,
            "failed_shards": answer.failed_shards,
            **own,
        }
        for exchange, answer, intended_ns, own in rows
    ]


@pytest.mark.parametrize("expected", [None, 100])
def test_a_long_task_crosses_the_real_border_of_buffers(tmp_path: Path, expected: int | None):
    total = 3 * recorder_module._MOST_CHUNK_ROWS + 3

    def fill(recorder: Recorder) -> None:
        for number in range(total):
            recorder.append(EXCHANGE, Answer(Outcome.OK, took_ms=number), number, warmup=False)

    with SampleSpool(tmp_path / "spool") as spool:
        columns = recorded(spool, PLACE, fill, expected)
    assert np.array_equal(columns["took_ms"], np.arange(total))


@pytest.mark.parametrize(("clients", "megabytes"), [(1, 100), (8, 100), (100, 100), (500, 200)])
def test_all_clients_of_a_task_share_the_memory(tmp_path: Path, clients: int, megabytes: int):
    with SampleSpool(tmp_path / "spool") as spool:
        recorder = Recorder(None, spool.file(PLACE), clients=clients)
        longest = Recorder(recorder_module._TASK_BYTES // clients // ROW_DTYPE.itemsize, clients=clients)
    assert recorder._spare is not None
    assert clients * (len(recorder._buffer) + len(recorder._spare)) < megabytes * 2**20
    assert clients * len(longest._buffer) < megabytes * 2**20


def test_a_task_that_fits_is_written_only_when_it_has_ended(tmp_path: Path):
    with SampleSpool(tmp_path / "spool") as spool:
        recorder = Recorder(1_000, spool.file(PLACE))
        for _ in range(1_000):
            recorder.append(EXCHANGE, Answer(Outcome.OK), 0, warmup=False)
        assert list((tmp_path / "spool").iterdir()) == []
        recorder.finish()
        assert len(list((tmp_path / "spool").iterdir())) == 1


@pytest.mark.usefixtures("small_chunks")
def test_a_full_disk_ends_the_task_with_an_error(tmp_path: Path):
    with SampleSpool(tmp_path / "spool") as spool:
        (tmp_path / "spool" / "000000.rows").symlink_to("/dev/full")
        recorder = Recorder(None, spool.file(PLACE))
        with pytest.raises(BenchctlError, match="No space left"):
            append_many(recorder)


def append_many(recorder: Recorder) -> None:
    for _ in range(20):
        recorder.append(EXCHANGE, Answer(Outcome.OK), 0, warmup=False)


BATCHES = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), max_size=6)


@given(BATCHES, BATCHES)
def test_times_of_searches_of_two_clients_are_those_of_one(first: list[list[int]], second: list[list[int]]):
    def counted(batches: list[list[int]]) -> list[Counter[int]]:
        found: list[Counter[int]] = []
        for one in batches:
            count_tooks(found, one)
        return found

    merged = merge_tooks([counted(first), counted(second)])
    assert list(merged) == counted(first + second)
    assert all(sum(one.values()) == len(first + second) for one in merged[:1])


def test_failures_are_counted_by_outcome_with_the_first_few_reasons():
    tally = Tally()
    for number in range(9):
        tally.fail(Outcome.RESET, f"reason {number // 2}")
    tally.fail(Outcome.HTTP_ERROR, "")
    assert tally.failures == (
        Failure(Outcome.HTTP_ERROR, 1, ()),
        Failure(Outcome.RESET, 9, ("reason 0", "reason 1", "reason 2")),
    )


def test_failures_of_clients_are_added_up():
    one = (Failure(Outcome.RESET, 2, ("a", "b")),)
    two = (Failure(Outcome.TIMEOUT, 1, ("t",)), Failure(Outcome.RESET, 3, ("b", "c", "d")))
    assert merge_failures([one, two]) == (
        Failure(Outcome.TIMEOUT, 1, ("t",)),
        Failure(Outcome.RESET, 5, ("a", "b", "c")),
    )
