"""Sources of changing values of requests: seeded, so that every variant gets the same requests."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

End = Literal["", "from", "to"]

_ENDS: Mapping[str | None, End] = {None: "", "from": "from", "to": "to"}
_SHOWN = 20
_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_MARK = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][\w-]*)(?:\.(?P<end>from|to))?\})?", re.ASCII)


class Placeholder(NamedTuple):
    """`${name}` in a text, or one end of a range: `${name.from}`, `${name.to}`."""

    name: str
    end: End = ""

    def __str__(self) -> str:
        return f"${{{self.name}.{self.end}}}" if self.end else f"${{{self.name}}}"


def split_text(text: str) -> list[str | Placeholder]:
    """Split a text into literal pieces (`$${` already read as `${`) and placeholders.

    Raises:
        ValueError: If a `${` begins no placeholder.
    """
    pieces: list[str | Placeholder] = []
    plain = ""
    position = 0
    for mark in _MARK.finditer(text):
        plain += text[position : mark.start()]
        position = mark.end()
        if mark[0] == "$${":
            plain += "${"
        elif mark["name"] is None:
            start = text[mark.start() :][:_SHOWN]
            raise ValueError(
                f"'{start}' begins no placeholder: write ${{name}}, or $${{ for the characters themselves"
            )
        else:
            pieces += [plain] if plain else []
            pieces.append(Placeholder(mark["name"], _ENDS[mark["end"]]))
            plain = ""
    plain += text[position:]
    return [*pieces, plain] if plain else pieces


def placeholders(texts: Any) -> Iterator[Placeholder]:
    """Yield all placeholders in the strings of a JSON value, except in keys of objects.

    Raises:
        ValueError: If a `${` begins no placeholder.
    """
    if isinstance(texts, str):
        yield from (piece for piece in split_text(texts) if isinstance(piece, Placeholder))
    elif isinstance(texts, Mapping):
        for part in texts.values():
            yield from placeholders(part)
    elif isinstance(texts, list | tuple):
        for part in texts:
            yield from placeholders(part)


# Grids: bounds, steps and widths as people write them, converted to integers.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
US_DIGITS = 6
_NUMBER_DIGITS = 15  # decimal numbers of so many digits stay distinct in binary

# Numeric formats of the engines, and the microseconds of their units.
EPOCH_UNITS_US: Mapping[str, int] = {"epoch_second": 1_000_000, "epoch_millis": 1_000}


class Grid(NamedTuple):
    """The values first, first + step, ... first + steps * step."""

    first: int  # the smallest value, in integer units of the source: ones, 10^-decimals, microseconds
    step: int  # between neighbours, same unit
    steps: int  # from the first to the last
    narrowest: int = 0  # minimum and maximum width of a range, in steps; 0 for single values
    widest: int = 0

    @property
    def possible(self) -> int:
        """The number of different values, or ranges, that can be drawn."""
        widths = self.widest - self.narrowest + 1
        # A range of w steps can start at steps + 1 - w places; summed over all widths.
        return widths * (2 * (self.steps + 1) - self.narrowest - self.widest) // 2


def _moment_us(key: str, text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{key} '{text}' is not a date in ISO 8601") from None
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _is_shown(time_us: int, date_format: str) -> bool:
    """Return whether a format tells a moment from all others."""
    if date_format in EPOCH_UNITS_US:
        return time_us % EPOCH_UNITS_US[date_format] == 0
    try:
        moment = _EPOCH + timedelta(microseconds=time_us)
        return datetime.strptime(moment.strftime(date_format), date_format).replace(tzinfo=UTC) == moment
    except (ValueError, OverflowError):
        return False


def _scaled(key: str, value: float, digits: int) -> int:
    """A number in units of 10^-digits, exactly as written in decimal.

    Raises:
        ValueError: If it has more decimals, or is not finite.
    """
    written = Decimal(repr(value))
    if not written.is_finite():
        raise ValueError(f"{key} {value} is not finite")
    units = written.scaleb(digits)
    if units != units.to_integral_value():
        raise ValueError(f"{key} {value} has more than {digits} decimals")
    return int(units)


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """The base of what tracks declare: unknown keys are errors, and words are joined by hyphens."""


POOL_LIMIT = 100_000
_Size = Annotated[int, msgspec.Meta(ge=1, le=POOL_LIMIT)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_FieldName = Annotated[str, msgspec.Meta(min_length=1)]
_Alpha = Annotated[float, msgspec.Meta(ge=0, le=1000)]  # of Zipf's law; 0 is uniform


class Pool(Entry, frozen=True):
    """Values that come again, as users' do: some of the requests take one of `size` fixed values, by Zipf.

    OpenSearch Benchmark's words for the same are N (`size`), repeat frequency (`share`) and alpha.
    """

    size: _Size  # how many different values the pool holds
    # How many of the requests take theirs from it; the others get fresh ones.
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    alpha: _Alpha = 1.0


class _Source(Entry, frozen=True, kw_only=True, tag_field="kind"):
    """The base of all sources."""

    @property
    def ends(self) -> tuple[End, ...]:
        """The possible suffixes of its name in a placeholder: none, or the ends of a range."""
        return ("",)


class Choice(_Source, frozen=True, kw_only=True, tag="list"):
    """Choice among values."""

    items: tuple[Any, ...]  # the values, at least one
    # One after the other, at random, or by Zipf's law in the order of the list.
    pick: Literal["cycle", "random", "zipf"] = "cycle"
    alpha: _Alpha = 1.0

    def __post_init__(self) -> None:
        if not self.items and type(self) is Choice:
            raise ValueError("items is empty")
        if self.pick != "zipf" and self.alpha != 1:
            raise ValueError(f"alpha has no effect on pick '{self.pick}'")


class Terms(Choice, frozen=True, kw_only=True, tag="terms"):
    """Choice among a field's terms by their number of matches, read from the index once, before the run."""

    # With doc values: a keyword, a number, a date. Of a list of them, a value is `{FIELD: TERM}`, as a term
    # query takes it.
    field: _FieldName | Annotated[tuple[_FieldName, ...], msgspec.Meta(min_length=1)]
    # `least`, `below`: documents that a term hits, from so many on and fewer than so many; under 1 a share
    # of all.
    least: float
    below: float
    # How many terms at most, drawn at random, the same for the same documents. Of a list of fields, so many
    # of every order of magnitude of their hits, which come equally often, however few terms one has.
    size: _Size = 100
    items: tuple[Any, ...] = ()  # those; none before the index was asked
    pick: Literal["cycle", "random", "zipf"] = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.fields)) < len(self.fields):
            raise ValueError(f"field names a duplicate: {', '.join(self.fields)}")
        if not 0 < self.least < self.below or (self.least < 1) != (self.below < 1):
            raise ValueError(
                f"least {self.least:g} and below {self.below:g} are not a range of documents or shares"
            )

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields, one or more."""
        return (self.field,) if isinstance(self.field, str) else self.field


class _Drawn(_Source, frozen=True, kw_only=True):
    """A source that draws from a grid: single values or, with a greatest width, ranges.

    All widths are equally likely, and so are all places for a width.
    """

    min: Any
    max: Any
    # `to` minus `from` of ranges, `${name.from}` to `${name.to}`, seconds for dates; None for single values.
    max_width: float | None = None
    min_width: float = 0.0
    pool: Pool | None = None  # lets values come again; None makes every value a fresh one

    def __post_init__(self) -> None:
        possible = self.grid.possible
        if self.pool is not None and self.pool.size > possible:
            raise ValueError(f"pool: size {self.pool.size} is more than the {possible} available values")

    @property
    def ends(self) -> tuple[End, ...]:
        """The possible suffixes of its name in a placeholder: none, or the ends of a range."""
        return ("",) if self.max_width is None else ("from", "to")

    def _bounds(self) -> tuple[int, int, int, int]:
        """The first and last value, the step between neighbours, and the decimals of a width."""
        raise NotImplementedError

    @property
    def grid(self) -> Grid:
        """The grid that it draws from.

        Raises:
            ValueError: If there is no such grid; the text tells why.
        """
        first, last, step, digits = self._bounds()
        if last < first:
            raise ValueError(f"max {self.max} is below min {self.min}")
        grid = Grid(first, step, (last - first) // step)
        if self.max_width is None:
            return grid
        low = _scaled("min-width", self.min_width, digits)
        high = _scaled("max-width", self.max_width, digits)
        if not 0 <= low <= high <= grid.steps * step:
            raise ValueError("min-width and max-width are not from 0 up to the width from min to max")
        narrowest, widest = -(-low // step), high // step
        if widest < narrowest:
            raise ValueError(
                f"no multiple of step lies between min-width {self.min_width} and max-width {self.max_width}"
            )
        return grid._replace(narrowest=narrowest, widest=widest)


class Integer(_Drawn, frozen=True, kw_only=True, tag="integer"):
    """A whole number from `min` to `max`, both included; the grid is in ones."""

    min: _Int64
    max: _Int64

    def _bounds(self) -> tuple[int, int, int, int]:
        return self.min, self.max, 1, 0


class Number(_Drawn, frozen=True, kw_only=True, tag="number"):
    """A decimal number from `min` to `max`, both included; the grid is in units of 10^-decimals."""

    min: float
    max: float
    decimals: Annotated[int, msgspec.Meta(ge=0, le=_NUMBER_DIGITS)] = 6  # digits behind the point

    def _bounds(self) -> tuple[int, int, int, int]:
        first, last = _scaled("min", self.min, self.decimals), _scaled("max", self.max, self.decimals)
        if max(abs(first), abs(last)) >= 10**_NUMBER_DIGITS:
            raise ValueError(f"min or max has more than {_NUMBER_DIGITS} digits with its decimals")
        return first, last, 1, self.decimals


class Date(_Drawn, frozen=True, kw_only=True, tag="date"):
    """A moment from `min` to `max`, both included, in UTC; the grid is in microseconds since 1970."""

    # `min`, `max`: ISO 8601; UTC unless they say otherwise.
    min: str
    max: str
    step: float = 1.0  # of the grid, which begins at `min`: seconds, as fine as microseconds
    # Strftime's directives, or `epoch_millis`, or `epoch_second`.
    format: str = "%Y-%m-%dT%H:%M:%S"

    def _bounds(self) -> tuple[int, int, int, int]:
        step_us = _scaled("step", self.step, US_DIGITS)
        if step_us < 1:
            raise ValueError(f"step {self.step} is not above 0")
        first, last = _moment_us("min", self.min), _moment_us("max", self.max)
        for key, value, time_us in (("min", self.min, first), ("step", self.step, first + step_us)):
            if not _is_shown(time_us, self.format):
                raise ValueError(f"{key} {value} cannot be written in format '{self.format}' shows")
        return first, last, step_us, US_DIGITS


ValueSource = Choice | Terms | Integer | Number | Date


def check_values(values: Mapping[str, ValueSource], texts: Any) -> str:
    """Return what is wrong with an operation's values, or with the placeholders in `texts`.

    Returns:
        One sentence without a final full stop that names the value or the placeholder; empty when nothing is
        wrong.
    """
    for name in values:
        if not _NAME.fullmatch(name):
            return f"values: '{name}' is not a name: write letters, digits, '_' and '-'"
    used = set()
    try:
        for placeholder in placeholders(texts):
            _check_placeholder(placeholder, values)
            used.add(placeholder.name)
    except ValueError as err:
        return str(err)
    unused = next((name for name in values if name not in used), None)
    if unused is None:
        return ""
    return f"values.{unused}: nothing uses it: {_how_to_use(unused, values[unused])}"


def _check_placeholder(found: Placeholder, values: Mapping[str, ValueSource]) -> None:
    source = values.get(found.name)
    if source is None:
        hint = f"known: {', '.join(values)}" if values else "the operation has no values"
        raise ValueError(f"'{found}' is not a known value ({hint}); $${{ writes the characters themselves")
    if found.end not in source.ends:
        raise ValueError(f"'{found}' is not a known value: {_how_to_use(found.name, source)}")


def _how_to_use(name: str, source: ValueSource) -> str:
    return "write " + " or ".join(str(Placeholder(name, end)) for end in source.ends)
