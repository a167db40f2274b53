"""Grids: what people write as bounds, steps and widths, as whole numbers."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.track.values import Grid, date_grid, integer_grid, number_grid, printf_form, with_widths

DAY_US = 86_400_000_000


@given(st.integers(0, 12), st.data())
def test_the_possible_values_of_a_grid_are_counted_exactly(steps: int, data: st.DataObject):
    narrowest = data.draw(st.integers(0, steps))
    widest = data.draw(st.integers(narrowest, steps))
    ranges = [(at, at + width) for width in range(narrowest, widest + 1) for at in range(steps - width + 1)]
    assert Grid(0, 1, steps, narrowest, widest).possible == len(ranges)


def test_numbers_count_in_their_last_decimal():
    assert number_grid(-0.5, 1.25, 2) == Grid(-50, 1, 175)
    assert with_widths(number_grid(0, 10, 1), 0.3, 2.0, 1) == Grid(0, 1, 100, 3, 20)
    assert with_widths(integer_grid(1, 9), 0, 8) == Grid(1, 1, 8, 0, 8)


def test_dates_count_in_microseconds_from_their_first_on():
    grid = date_grid("2023-01-01", "2023-01-02T12:00:00", 86_400, "%Y.%m.%d")
    assert grid == Grid(19_358 * DAY_US, DAY_US, 1)


def test_dates_are_utc_unless_they_say_otherwise():
    plain = date_grid("2023-01-01T00:00:00", "2023-01-02", 1, "epoch_second")
    assert plain == date_grid("2023-01-01T02:00:00+02:00", "2023-01-02T00:00:00Z", 1, "epoch_second")


def test_widths_are_rounded_to_the_grid_inwards():
    grid = date_grid("2023-01-01", "2023-01-02", 60, "epoch_millis")
    assert with_widths(grid, 61, 200.5, 6)[-2:] == (2, 3)


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)))  # noqa: DTZ001 - bounds
def test_a_format_shows_every_field_with_all_its_digits(moment: datetime):
    template, fields, unit_us = printf_form("%%%d/%m/%Y %H:%M:%S.%f (%Y)")
    shown = template % tuple(getattr(moment, field) for field in fields)
    clock = moment.time().isoformat("microseconds")
    assert shown == f"%{moment.day:02}/{moment.month:02}/{moment.year:04} {clock} ({moment.year:04})"
    assert unit_us == 1


@pytest.mark.parametrize(
    ("date_format", "unit_us"),
    [
        ("%Y-%m-%d", DAY_US),
        ("%d.%m.%Y %H", 3_600_000_000),
        ("%H:%M %Y%m%d", 60_000_000),
        ("%Y%m%d%H%M%S", 1_000_000),
    ],
)
def test_a_format_is_as_fine_as_its_least_unit(date_format: str, unit_us: int):
    assert printf_form(date_format)[2] == unit_us
