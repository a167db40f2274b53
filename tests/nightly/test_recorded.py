import pytest

from benchctl.errors import UsageError
from benchctl.nightly.simulation import Columns, Recorded, read_recorded


def read(text: str, **columns: str) -> Recorded:
    return read_recorded(text.splitlines(keepends=True), source="history.csv", columns=Columns(**columns))


def test_a_header_names_the_columns_in_any_order():
    found = read("Commit,Value,TIME\nabc,10.5,2026-01-01\ndef,11,2026-01-02\n")
    (one,) = found.series
    assert found.times == ("2026-01-01", "2026-01-02")
    assert one.values.tolist() == [10.5, 11.0]
    assert one.nights.tolist() == [1, 2]


def test_without_a_header_time_comes_first_and_value_second():
    assert read("2026-01-01,10\n2026-01-02,11\n").times == ("2026-01-01", "2026-01-02")
    assert read("1;10\n2;11\n").series[0].values.tolist() == [10.0, 11.0]


def test_times_decide_on_the_order_and_equal_ones_are_forks():
    found = read("time,value\n10,3\n9,1\n10,4\n9.0,2\n")
    assert found.series[0].values.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert found.series[0].nights.tolist() == [1, 1, 2, 2]
    assert found.series[0].forks.tolist() == [1, 2, 1, 2]


def test_moments_in_several_time_zones_are_put_in_order():
    found = read("time,value\n2026-01-01T12:00+02:00,1\n2026-01-01T11:00Z,2\n")
    assert found.series[0].values.tolist() == [1.0, 2.0]


def test_several_series_share_the_nights():
    found = read("time,test,value\n1,a,10\n2,b,20\n3,a,11\n", series="test")
    assert [(one.key.task, one.nights.tolist()) for one in found.series] == [("a", [1, 3]), ("b", [2])]


def test_empty_lines_are_passed_over():
    assert read("time,value\n\n1,10\n,\n2,11\n").series[0].nights.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("", {}, "history.csv: there are no values"),
        ("time,value\n", {}, "history.csv: there are no values"),
        ("when,value\n1,2\n", {}, "history.csv, line 1: no column time"),
        ("time,value\n1,2\n", {"value": "ms"}, "history.csv, line 1: no column ms"),
        ("1,2\n", {"series": "test"}, "history.csv, line 1: no header"),
        ("time,value\n1,2\n2\n", {}, "history.csv, line 3: 1 cells, where at least 2 are needed"),
        ("time,value\n1,2\n2,fast\n", {}, "history.csv, line 3: fast is not a positive number"),
        ("time,value\n1,-2\n", {}, "history.csv, line 2: -2 is not a positive number"),
        ("time,value\n1,inf\n", {}, "history.csv, line 2: inf is not a positive number"),
        ("time,value\n1,0\n", {}, "history.csv, line 2: 0 is not a positive number"),
        ("time,value\n1,\n", {}, "history.csv, line 2: an empty cell is not a positive number"),
        ("time,value\nyesterday,2\n", {}, "history.csv, line 2: yesterday is not a time"),
        ("time,value\n1,2\n2026-01-01,2\n", {}, "history.csv, line 3: 2026-01-01 is a date, times before"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, columns: dict[str, str], message: str):
    with pytest.raises(UsageError) as caught:
        read(text, **columns)
    assert str(caught.value).startswith(message)
