"""The recorder gives back what it was given, over chunk borders, in the sample columns' types."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.load import recorder as recorder_module
from benchctl.load.operations import Answer
from benchctl.load.recorder import Recorder
from benchctl.load.transport import Exchange
from benchctl.results.samples import SAMPLE_DTYPES, Outcome

INT64 = st.integers(0, 2**62)
EXCHANGES = st.builds(
    Exchange,
    start_ns=INT64,
    connect_ns=INT64,
    first_byte_ns=INT64,
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
ROWS = st.lists(st.tuples(EXCHANGES, ANSWERS, INT64, st.booleans()), max_size=30)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recorder_module, "_MAX_CHUNK_ROWS", 4)


@pytest.mark.usefixtures("small_chunks")
@settings(deadline=None)
@given(rows=ROWS, expected=st.none() | st.integers(0, 40), origin_ns=st.integers(0, 2**61))
def test_columns_are_what_was_appended(
    rows: list[tuple[Exchange, Answer, int, bool]], expected: int | None, origin_ns: int
):
    recorder = Recorder(expected)
    for exchange, answer, intended_ns, warmup in rows:
        recorder.append(exchange, answer, intended_ns, warmup=warmup)
    columns = recorder.columns(origin_ns=origin_ns, schedule=1, task=2, boot=3, client=4)
    assert recorder.count == len(rows)
    assert {name: values.dtype for name, values in columns.items()} == dict(SAMPLE_DTYPES)
    found = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert found == [
        {
            "schedule": 1,
            "task": 2,
            "boot": 3,
            "client": 4,
            "warmup": warmup,
            "intended_ns": intended_ns - origin_ns,
            "start_ns": exchange.start_ns - origin_ns,
            "connect_ns": exchange.connect_ns,
            "first_byte_ns": exchange.first_byte_ns,
            "end_ns": exchange.end_ns - origin_ns,
            "status": exchange.status,
            "outcome": answer.outcome,
            "took_ms": answer.took_ms,
            "hits": answer.hits,
            "hits_exact": answer.hits_exact,
            "response_bytes": exchange.response_bytes,
            "failed_shards": answer.failed_shards,
        }
        for exchange, answer, intended_ns, warmup in rows
    ]


def test_a_long_task_crosses_the_real_chunk_border():
    recorder = Recorder()
    total = recorder_module._MAX_CHUNK_ROWS + 3
    exchange = Exchange(5, 0, 1, 9, 200, b"", 0)
    for number in range(total):
        recorder.append(exchange, Answer(Outcome.OK, took_ms=number), number, warmup=False)
    columns = recorder.columns(origin_ns=0, schedule=0, task=0, boot=0, client=0)
    assert np.array_equal(columns["took_ms"], np.arange(total))
