"""Bodies whose values change from request to request: a pure function of seed, key and request number.

Nothing here depends on a library's distributions or the platform: random bits come from counters, draws and
Zipf tables are integers, and dates are formatted from their fields.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from enum import Enum
from itertools import accumulate, count
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from benchctl.corpus.random_bits import key as mix_key
from benchctl.corpus.random_bits import mix
from benchctl.track.values import (
    EPOCH_UNITS_US,
    Choice,
    Date,
    Grid,
    Number,
    Placeholder,
    Pool,
    ValueSource,
    printf_form,
    split_text,
)

# The positions that a request draws from one source: both ends of a range, or one position twice.
Positions: TypeAlias = tuple[int, ...]
Draw: TypeAlias = Callable[[int], Positions]
Render: TypeAlias = Callable[[int], bytes]

_WORD = 64
_GOLDEN = 0x9E3779B97F4A7C15  # SplitMix64's distance between counters
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZIPF_DIGITS = 24  # more than the 64 bits of a table


class _Form(Enum):
    """A value's form in the encoded text."""

    JSON = "a whole JSON value"
    STRING = "part of a JSON string"
    PLAIN = "part of a plain text"


class _Stream(Enum):
    """Purposes of random bits; each has its own stream."""

    PLACE = 1
    WIDTH = 2
    REPEAT = 3
    RANK = 4
    POOL_PLACE = 5
    POOL_WIDTH = 6


@dataclass(frozen=True)
class _Slot:
    """A placeholder among the pieces: its source, which end of a range, and its renderer."""

    source: int
    end: int
    render: Render


class _Pieces:
    """A text cut at its placeholders."""

    def __init__(self, parts: Iterator[bytes | _Slot]) -> None:
        self.fixed = [b""]
        self.slots: list[tuple[int, int, int, Render]] = []
        for part in parts:
            if isinstance(part, bytes):
                self.fixed[-1] += part
            else:
                self.slots.append((len(self.fixed), part.source, part.end, part.render))
                self.fixed += [b"", b""]


class Bodies:
    """The bodies of one task's requests; thread-safe.

    For the same seed and key, sources of the same name have the same value in the same request: path and body
    agree, and the searches of a batch differ only if their keys do.

    Args:
        template: JSON or text with placeholders, accepted by `check_values`.
        values: name -> source; unused ones are not drawn.
        seed: of the run.
        key: what else the values depend on, such as the task's name.

    Raises:
        ValueError: If a placeholder has no value, or a source is invalid.
    """

    def __init__(self, template: Any, values: Mapping[str, ValueSource], *, seed: int, key: str) -> None:
        self._values = values
        self._root = mix_key(seed, _digest(key))
        self._order: dict[str, int] = {}
        self._draws: list[Draw] = []
        self._json = _Pieces(self._encoded(template))
        self._text = _Pieces(self._cut(template, _Form.PLAIN)) if isinstance(template, str) else None

    def encode(self, number: int) -> bytes:
        """Return the compact JSON of one request; the same object every time when it has no placeholders.

        `number` is the request's, from 0, over all clients of the task.
        """
        return self._fill(self._json, number)

    def text(self, number: int) -> str:
        """Return the text of one request.

        Raises:
            ValueError: If the template is not a string.
        """
        if self._text is None:
            raise ValueError("the template is JSON, not a text")
        return self._fill(self._text, number).decode()

    def _fill(self, pieces: _Pieces, number: int) -> bytes:
        if not pieces.slots:
            return pieces.fixed[0]
        drawn = [draw(number) for draw in self._draws]
        filled = pieces.fixed.copy()
        for place, source, end, render in pieces.slots:
            filled[place] = render(drawn[source][end])
        return b"".join(filled)

    def _encoded(self, template: Any) -> Iterator[bytes | _Slot]:
        """The template's JSON, cut at its placeholders."""
        if isinstance(template, str):
            pieces = split_text(template)
            if len(pieces) == 1 and isinstance(pieces[0], Placeholder):
                yield self._slot(pieces[0], _Form.JSON)
                return
            yield b'"'
            yield from self._cut(template, _Form.STRING)
            yield b'"'
        elif isinstance(template, Mapping):
            yield b"{"
            for place, (key, value) in enumerate(template.items()):
                yield (b"," if place else b"") + msgspec.json.encode(key) + b":"
                yield from self._encoded(value)
            yield b"}"
        elif isinstance(template, list | tuple):
            yield b"["
            for place, item in enumerate(template):
                yield b"," if place else b""
                yield from self._encoded(item)
            yield b"]"
        else:
            yield msgspec.json.encode(template)

    def _cut(self, text: str, form: _Form) -> Iterator[bytes | _Slot]:
        for piece in split_text(text):
            yield self._slot(piece, form) if isinstance(piece, Placeholder) else _shown(piece, form)

    def _slot(self, found: Placeholder, form: _Form) -> _Slot:
        source = self._values.get(found.name)
        if source is None or found.end not in source.ends:
            raise ValueError(f"'{found}' is not a known value")
        if problem := source.problem():
            raise ValueError(f"'{found}': {problem}")
        if found.name not in self._order:
            self._order[found.name] = len(self._draws)
            self._draws.append(_draw(source, mix_key(self._root, _digest(found.name))))
        return _Slot(self._order[found.name], source.ends.index(found.end), _renderer(source, form))


def zipf_table(size: int, alpha: float) -> list[int]:
    """Cumulative probabilities of Zipf's law for ranks 1 to `size`, in units of 2^-64; the last is 2^64.

    Rank k has weight k^-alpha (alpha 0 is uniform), by decimal arithmetic, whose ln and exp are correctly
    rounded by definition, unlike a C library's.
    """
    decimal = Context(prec=_ZIPF_DIGITS, traps=[])  # no traps: a hopeless rank's weight may underflow to 0
    exponent = Decimal(repr(-alpha))
    powers = (
        decimal.exp(decimal.multiply(exponent, decimal.ln(Decimal(rank)))) for rank in range(1, size + 1)
    )
    sums = list(accumulate(int(decimal.scaleb(power, _ZIPF_DIGITS)) for power in powers))
    return [(total << _WORD) // sums[-1] for total in sums]


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _word(stream: int, number: int) -> int:
    """64 random bits, those of `random_bits.words`."""
    return mix(stream + number * _GOLDEN)


def _draw(source: ValueSource, root: int) -> Draw:
    if isinstance(source, Choice):
        return _choose(source, mix_key(root, _Stream.PLACE.value))
    if source.pool is None:
        return _fresh(source.grid, root, _Stream.PLACE, _Stream.WIDTH)
    return _pooled(source.grid, source.pool, root)


def _choose(source: Choice, stream: int) -> Draw:
    # Before the index was asked, something stands for its terms.
    size = len(source.items) or 1
    if source.pick == "cycle":
        return lambda number: (number % size,)
    if source.pick == "random":
        return lambda number: (_word(stream, number) * size >> _WORD,)
    table = zipf_table(size, source.alpha)
    return lambda number: (bisect_right(table, _word(stream, number)),)


def _fresh(grid: Grid, root: int, for_place: _Stream, for_width: _Stream) -> Draw:
    """Draws from a grid: first the width, then one of the places where a range of that width fits.

    A word times a bound, shifted right, is uniform with a bias of at most bound / 2^64.
    """
    first, step, steps, narrowest, widest = grid
    places, widths = mix_key(root, for_place.value), mix_key(root, for_width.value)
    choices = widest - narrowest + 1
    if widest == 0:

        def draw_one(number: int) -> Positions:
            place = first + (_word(places, number) * (steps + 1) >> _WORD) * step
            return place, place

        return draw_one

    def draw(number: int) -> Positions:
        width = narrowest + (_word(widths, number) * choices >> _WORD)
        start = first + (_word(places, number) * (steps + 1 - width) >> _WORD) * step
        return start, start + width * step

    return draw


def _pooled(grid: Grid, pool: Pool, root: int) -> Draw:
    """Draws from a pool for its share of the requests, otherwise fresh ones."""
    members: dict[Positions, None] = {}
    fill = _fresh(grid, root, _Stream.POOL_PLACE, _Stream.POOL_WIDTH)
    for number in count():
        members[fill(number)] = None
        if len(members) == pool.size:
            break
    by_rank = list(members)
    table = zipf_table(pool.size, pool.alpha)
    fresh = _fresh(grid, root, _Stream.PLACE, _Stream.WIDTH)
    repeats, ranks = mix_key(root, _Stream.REPEAT.value), mix_key(root, _Stream.RANK.value)
    repeated_below = int(pool.share * 2.0**_WORD)

    def draw(number: int) -> Positions:
        if _word(repeats, number) < repeated_below:
            return by_rank[bisect_right(table, _word(ranks, number))]
        return fresh(number)

    return draw


def _renderer(source: ValueSource, form: _Form) -> Render:
    if isinstance(source, Choice):
        return [_shown(item, form) for item in source.items or ("",)].__getitem__
    if isinstance(source, Date):
        return _date_renderer(source.format, form)
    if isinstance(source, Number):
        # The nearest binary number prints as the decimal it stands for.
        scale = 10**source.decimals
        return lambda position: repr(position / scale).encode()
    return lambda position: b"%d" % position


def _date_renderer(date_format: str, form: _Form) -> Render:
    unit_us = EPOCH_UNITS_US.get(date_format)
    if unit_us is not None:
        return lambda position: b"%d" % (position // unit_us)
    text, attributes, _ = printf_form(date_format)
    template = _shown(text, form)
    fields = attrgetter(*attributes)
    return lambda position: template % fields(_EPOCH + timedelta(microseconds=position))


def _shown(value: Any, form: _Form) -> bytes:
    if form is _Form.JSON:
        return msgspec.json.encode(value)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text.encode() if form is _Form.PLAIN else msgspec.json.encode(text)[1:-1]
