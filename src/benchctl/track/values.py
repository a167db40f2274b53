"""Where the changing values of a request come from: seeded, so that every variant gets the same requests."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from benchctl.track.grid import US_DIGITS, Grid, date_grid, integer_grid, number_grid, with_widths
from benchctl.track.placeholder import End, Placeholder, is_name, placeholders

_POOL_LIMIT = 100_000
_MOST_VALUES = 2**64  # one random word tells so many apart


class Pool(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """Values that come again, as users' do: some of the requests take one of `size` fixed values, by Zipf.

    OpenSearch Benchmark's words for the same are N (`size`), repeat frequency (`share`) and alpha.

    Attributes:
        size: how many different values the pool holds.
        share: how many of the requests take theirs from it, 0 to 1; the others get fresh ones.
        alpha: of Zipf's law; 0 is uniform.
    """

    size: int
    share: float = 1.0
    alpha: float = 1.0

    def problem(self, possible: int) -> str:
        """What is wrong with it; empty when nothing is.

        Args:
            possible: how many different values its source has.
        """
        if not 1 <= self.size <= _POOL_LIMIT:
            return f"size {self.size} is not from 1 to {_POOL_LIMIT}"
        if self.size > possible:
            return f"size {self.size} is more than the {possible} values that there are"
        if not 0 <= self.share <= 1:
            return f"share {self.share} is not from 0 to 1"
        return _alpha_problem(self.alpha)


class _Source(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="kebab",
    omit_defaults=True,
    kw_only=True,
    tag_field="kind",
):
    """What all sources have in common."""

    @property
    def ends(self) -> tuple[End, ...]:
        """What may follow its name in a placeholder: nothing, or the ends of a range."""
        return ("",)


class Choice(_Source, frozen=True, kw_only=True, tag="list"):
    """One of some values.

    Attributes:
        items: the values, at least one.
        pick: one after the other, at random, or by Zipf's law in the order of the list.
        alpha: of Zipf's law.
    """

    items: tuple[Any, ...]
    pick: Literal["cycle", "random", "zipf"] = "cycle"
    alpha: float = 1.0

    def problem(self) -> str:
        """What is wrong with it; empty when nothing is."""
        if not self.items:
            return "items is empty"
        if self.pick != "zipf" and self.alpha != 1:
            return f"alpha means nothing to pick '{self.pick}'"
        return _alpha_problem(self.alpha)


class _Drawn(_Source, frozen=True, kw_only=True):
    """A source that draws from a grid.

    Attributes:
        pool: lets values come again; None makes every value a fresh one.
    """

    pool: Pool | None = None

    @property
    def grid(self) -> Grid:
        """What it draws from.

        Raises:
            ValueError: there is no such grid; the text says why.
        """
        raise NotImplementedError

    def problem(self) -> str:
        """What is wrong with it; empty when nothing is."""
        try:
            grid = self.grid
        except ValueError as err:
            return str(err)
        if grid.steps >= _MOST_VALUES:
            return "min and max are more than 2^64 - 1 steps apart"
        wrong = "" if self.pool is None else self.pool.problem(grid.possible)
        return f"pool: {wrong}" if wrong else ""


class _Range(_Drawn, frozen=True, kw_only=True):
    """A source of ranges."""

    @property
    def ends(self) -> tuple[End, ...]:
        """What follows its name in a placeholder."""
        return ("from", "to")


class Integer(_Drawn, frozen=True, kw_only=True, tag="integer"):
    """A whole number from `min` to `max`, both included."""

    min: int
    max: int

    @property
    def grid(self) -> Grid:
        """In ones."""
        return integer_grid(self.min, self.max)


class Number(_Drawn, frozen=True, kw_only=True, tag="number"):
    """A decimal number from `min` to `max`, both included.

    Attributes:
        decimals: digits behind the point.
    """

    min: float
    max: float
    decimals: int = 6

    @property
    def grid(self) -> Grid:
        """In units of 10^-decimals."""
        return number_grid(self.min, self.max, self.decimals)


class Date(_Drawn, frozen=True, kw_only=True, tag="date"):
    """A moment from `min` to `max`, both included, in UTC, on the grid that begins at `min`.

    Attributes:
        min, max: ISO 8601; UTC unless they say otherwise.
        step: of the grid, seconds, as fine as microseconds.
        format: strftime's directives %Y %m %d %H %M %S %f, or `epoch_millis`, or `epoch_second`.
    """

    min: str
    max: str
    step: float = 1.0
    format: str = "%Y-%m-%dT%H:%M:%S"

    @property
    def grid(self) -> Grid:
        """In microseconds since 1970."""
        return date_grid(self.min, self.max, self.step, self.format)


class IntegerRange(_Range, frozen=True, kw_only=True, tag="integer-range"):
    """A range of whole numbers within `min` and `max`: `${name.from}` and `${name.to}`.

    All widths are equally likely, and so are all places for a width.

    Attributes:
        min_width, max_width: `to` minus `from`.
    """

    min: int
    max: int
    min_width: int
    max_width: int

    @property
    def grid(self) -> Grid:
        """In ones."""
        grid = integer_grid(self.min, self.max)
        return with_widths(grid, self.min_width, self.max_width)


class NumberRange(_Range, frozen=True, kw_only=True, tag="number-range"):
    """A range of decimal numbers; drawn as those of whole numbers are.

    Attributes:
        min_width, max_width: `to` minus `from`.
        decimals: digits behind the point.
    """

    min: float
    max: float
    min_width: float
    max_width: float
    decimals: int = 6

    @property
    def grid(self) -> Grid:
        """In units of 10^-decimals."""
        grid = number_grid(self.min, self.max, self.decimals)
        return with_widths(grid, self.min_width, self.max_width, self.decimals)


class DateRange(_Range, frozen=True, kw_only=True, tag="date-range"):
    """A range of time within `min` and `max`; drawn as those of whole numbers are.

    Attributes:
        min_width, max_width: `to` minus `from`, seconds.
        step: grid of both ends, seconds, from `min` on.
        format: as for a date.
    """

    min: str
    max: str
    min_width: float
    max_width: float
    step: float = 1.0
    format: str = "%Y-%m-%dT%H:%M:%S"

    @property
    def grid(self) -> Grid:
        """In microseconds since 1970."""
        grid = date_grid(self.min, self.max, self.step, self.format)
        return with_widths(grid, self.min_width, self.max_width, US_DIGITS)


ValueSource = Choice | Integer | Number | Date | IntegerRange | NumberRange | DateRange


def check_values(values: Mapping[str, ValueSource], texts: Any) -> str:  # noqa: ANN401 - JSON of any shape
    """Say what is wrong with an operation's values, or with what stands for them.

    Args:
        values: name -> source.
        texts: everything in which placeholders may stand: a body, a path, a list of them.

    Returns:
        One sentence without a final full stop that names the value or the placeholder; empty when nothing is
        wrong.
    """
    for name, source in values.items():
        if not is_name(name):
            return f"values: '{name}' is no name: write letters, digits, '_' and '-'"
        if problem := source.problem():
            return f"values.{name}: {problem}"
    used = set()
    try:
        for found in placeholders(texts):
            _check_placeholder(found, values)
            used.add(found.name)
    except ValueError as err:
        return str(err)
    unused = next((name for name in values if name not in used), None)
    if unused is None:
        return ""
    return f"values.{unused}: nothing uses it: {_how_to_use(unused, values[unused])}"


def _check_placeholder(found: Placeholder, values: Mapping[str, ValueSource]) -> None:
    source = values.get(found.name)
    if source is None:
        known = f"known: {', '.join(values)}" if values else "the operation has no values"
        raise ValueError(f"'{found}' stands for no value ({known}); $${{ writes the characters themselves")
    if found.end not in source.ends:
        raise ValueError(f"'{found}' stands for no value: {_how_to_use(found.name, source)}")


def _how_to_use(name: str, source: ValueSource) -> str:
    return "write " + " or ".join(str(Placeholder(name, end)) for end in source.ends)


def _alpha_problem(alpha: float) -> str:
    return "" if alpha >= 0 and math.isfinite(alpha) else f"alpha {alpha} is not 0 or more"
