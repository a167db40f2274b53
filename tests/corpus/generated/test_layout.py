import datetime as dt
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from benchctl.corpus.big5 import days, spans

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
