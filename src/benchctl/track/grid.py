"""What values are drawn from: bounds, steps and widths as people write them, read as whole numbers."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
US_DIGITS = 6
_DAY_US = 86_400_000_000
_NUMBER_DIGITS = 15  # decimal numbers of so many digits keep apart as binary ones
_FINER_THAN_US = re.compile(r"[.,]\d{7}")

# Formats of the engines' own that are numbers, and the microseconds in one of their units.
EPOCH_UNITS_US: Mapping[str, int] = {"epoch_second": 1_000_000, "epoch_millis": 1_000}

# strftime's letter -> the field of a datetime, its width, and the microseconds in one of its units. Months
# and years have no fixed length. The C library is not asked: it pads years differently from system to system.
_DIRECTIVES = {
    "Y": ("year", 4, _DAY_US),
    "m": ("month", 2, _DAY_US),
    "d": ("day", 2, _DAY_US),
    "H": ("hour", 2, 3_600_000_000),
    "M": ("minute", 2, 60_000_000),
    "S": ("second", 2, 1_000_000),
    "f": ("microsecond", 6, 1),
}
_FEWEST_DIRECTIVES = 3


class Grid(NamedTuple):
    """What a source draws from: first, first + step, ... first + steps * step.

    Attributes:
        first: the least value, in whole units of the source: ones, 10^-decimals, microseconds.
        step: between neighbours, same unit.
        steps: from the first to the last.
        narrowest, widest: least and greatest width of a range, in steps; 0 for single values.
    """

    first: int
    step: int
    steps: int
    narrowest: int = 0
    widest: int = 0

    @property
    def possible(self) -> int:
        """How many different values, or ranges, can be drawn."""
        widths = self.widest - self.narrowest + 1
        # A range of w steps can begin at steps + 1 - w places; summed over all widths.
        return widths * (2 * (self.steps + 1) - self.narrowest - self.widest) // 2


def integer_grid(low: int, high: int) -> Grid:
    """The whole numbers from `low` to `high`.

    Raises:
        ValueError: a bound has more than 64 bits, which engines cannot hold, or max is below min.
    """
    for key, value in (("min", low), ("max", high)):
        if not -(2**63) <= value < 2**64:
            raise ValueError(f"{key} {value} has more than 64 bits")
    return _grid(low, high, (low, high))


def number_grid(low: float, high: float, decimals: int) -> Grid:
    """The decimal numbers from `low` to `high`, in units of 10^-decimals.

    Raises:
        ValueError: a bound is not one of them, or max is below min.
    """
    if not 0 <= decimals <= _NUMBER_DIGITS:
        raise ValueError(f"decimals {decimals} is not from 0 to {_NUMBER_DIGITS}")
    first, last = _scaled("min", low, decimals), _scaled("max", high, decimals)
    for key, value, units in (("min", low, first), ("max", high, last)):
        if abs(units) >= 10**_NUMBER_DIGITS:
            raise ValueError(f"{key} {value} with {decimals} decimals has more than {_NUMBER_DIGITS} digits")
    return _grid(low, high, (first, last))


def date_grid(low: str, high: str, step_s: float, date_format: str) -> Grid:
    """Moments from `low` up to `high`, `step_s` apart, in microseconds since 1970.

    Raises:
        ValueError: a bound, the step or the format is wrong, or the format does not tell the moments apart.
    """
    step_us = _scaled("step", step_s, US_DIGITS)
    if step_us < 1:
        raise ValueError(f"step {step_s} is not above 0")
    grid = _grid(low, high, (_moment_us("min", low), _moment_us("max", high)), step_us)
    unit_us = EPOCH_UNITS_US.get(date_format) or printf_form(date_format)[2]
    for key, value, time_us in (("step", step_s, step_us), ("min", low, grid.first)):
        if time_us % unit_us:
            raise ValueError(f"{key} {value} is finer than format '{date_format}' shows")
    return grid


def with_widths(grid: Grid, narrowest: float, widest: float, digits: int = 0) -> Grid:
    """A grid of ranges.

    Args:
        grid: of their ends.
        narrowest: their least width.
        widest: their greatest.
        digits: the grid counts in 10^-digits of what the widths are in.

    Raises:
        ValueError: no range on the grid is as wide.
    """
    low, high = _scaled("min-width", narrowest, digits), _scaled("max-width", widest, digits)
    if low < 0:
        raise ValueError(f"min-width {narrowest} is below 0")
    if high < low:
        raise ValueError(f"max-width {widest} is below min-width {narrowest}")
    if high > grid.steps * grid.step:
        raise ValueError(f"max-width {widest} is wider than the grid from min to max")
    first, last = -(-low // grid.step), high // grid.step
    if last < first:
        raise ValueError(f"no multiple of step lies between min-width {narrowest} and max-width {widest}")
    return grid._replace(narrowest=first, widest=last)


def printf_form(date_format: str) -> tuple[str, tuple[str, ...], int]:
    """A date format as printf's template for the fields of a datetime.

    Returns:
        The template, the datetime's attributes that it takes, and the microseconds in the finest of them.

    Raises:
        ValueError: the format is not one.
    """
    letters: list[str] = []

    def directive(match: re.Match[str]) -> str:
        letter = match[1]
        if letter == "%":
            return "%%"
        if letter not in _DIRECTIVES:
            known = " ".join(f"%{known}" for known in _DIRECTIVES)
            raise ValueError(f"format '{date_format}' has '%{letter}': benchctl knows {known} and %%")
        letters.append(letter)
        return f"%0{_DIRECTIVES[letter][1]}d"

    template = re.sub("%(.?)", directive, date_format, flags=re.DOTALL)
    wanted = list(_DIRECTIVES)[: max(len(set(letters)), _FEWEST_DIRECTIVES)]
    missing = next((letter for letter in wanted if letter not in letters), None)
    if missing is not None:
        raise ValueError(
            f"format '{date_format}' lacks %{missing}: it has to show the date, and every unit above its last"
        )
    return template, tuple(_DIRECTIVES[letter][0] for letter in letters), _DIRECTIVES[wanted[-1]][2]


def _moment_us(key: str, text: str) -> int:
    """A moment in microseconds since 1970."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{key} '{text}' is no date in ISO 8601") from None
    if _FINER_THAN_US.search(text):
        raise ValueError(f"{key} '{text}' is finer than a microsecond")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _grid(low: float | str, high: float | str, bounds: tuple[int, int], step: int = 1) -> Grid:
    first, last = bounds
    if last < first:
        raise ValueError(f"max {high} is below min {low}")
    return Grid(first, step, (last - first) // step)


def _scaled(key: str, value: float, digits: int) -> int:
    """A number in units of 10^-digits, exactly, as it is written in decimal.

    Raises:
        ValueError: it has more digits behind the point, or is not finite.
    """
    written = Decimal(repr(value))
    if not written.is_finite():
        raise ValueError(f"{key} {value} is not finite")
    units = written.scaleb(digits)
    if units != units.to_integral_value():
        raise ValueError(f"{key} {value} has more than {digits} decimals")
    return int(units)
