"""Amounts as people write them: sizes, durations, percentages and counts, each parsed and printed here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Final, Generic, TypeVar

from msgspec import Meta

from benchctl.errors import UsageError

N = TypeVar("N", int, float)

_NUMBER: Final = r"[0-9]+(_[0-9]+)*(\.[0-9]+)?"
_LONGEST: Final = 24
_AMOUNT: Final = re.compile(rf"(?P<number>{_NUMBER})(?P<unit> ?%|[A-Za-z]*)", re.ASCII)


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind(Generic[N]):
    """A kind of amounts."""

    name: str  # what messages call an amount
    metavar: str  # what help calls it
    examples: str  # as people should write them
    number: type[N]  # of values
    units: Mapping[str, int | Fraction]  # unit -> how many of that which values are in
    printed: tuple[str, ...]  # units that amounts are printed in, the largest first
    least: int
    most: int
    most_text: str  # the same, as people write it
    whole: str = ""  # what values are whole numbers of; empty where they need not be

    @property
    def written(self) -> Meta:
        """Return the form of such texts in files, for msgspec and JSON Schema."""
        units = "|".join(" ?%" if unit == "%" else unit for unit in self.units if unit)
        return Meta(
            pattern=f"^{_NUMBER}({units}){'?' if '' in self.units else ''}$",
            max_length=_LONGEST,
            description=f"a {self.name} such as {self.examples}",
        )

    def amount(self, text: str) -> Fraction | None:
        """Return exactly what a text says; None if it is no amount of this kind."""
        match = _AMOUNT.fullmatch(text) if len(text) <= _LONGEST else None
        factor = None if match is None else self.units.get(match["unit"].strip())
        if match is None or factor is None:
            return None
        return Fraction(match["number"].replace("_", "")) * factor

    def parse(self, text: str) -> N:
        """Return the value of a text.

        Raises:
            UsageError: If it is no amount of this kind, is too small or too large, or has to be whole.
        """
        fraction = self.amount(text.strip())
        if fraction is None or (self.least and not fraction):
            raise UsageError(
                f"invalid {self.name} '{text}' (expected e.g. {self.examples})",
                hint=self._guess(text.strip()),
            )
        if self.whole and fraction.denominator != 1:
            raise UsageError(f"invalid {self.name} '{text}' (expected a whole number of {self.whole})")
        if fraction < self.least:
            raise UsageError(f"invalid {self.name} '{text}' (expected at least {self.text(self.least)})")
        if fraction > self.most:
            raise UsageError(f"invalid {self.name} '{text}' (expected at most {self.most_text})")
        return self.number(fraction)

    def _guess(self, text: str) -> str:
        """Return a hint with the amount that was probably meant: `30` is `30m`, and `1mio` is `1m`."""
        if self.amount(f"{text}{self.printed[0]}"):
            return f"add a unit: {text}{self.printed[0]}"
        shorter = (text[:end] for end in range(len(text) - 1, 0, -1) if text[end].isalpha())
        near = next((candidate for candidate in shorter if self.amount(candidate)), None)
        return f"write {re.split(', | or ', self.examples)[0]}" if near is None else f"did you mean '{near}'?"

    def text(self, value: float) -> str:
        """Return a value as people write it, in the largest printed unit of which it is a whole number."""
        exact = Fraction(str(value))
        for unit in self.printed:
            count = exact / self.units[unit]
            if exact and count.denominator == 1:
                return f"{count}{unit}"
        last = self.printed[-1]
        return f"{float(exact / self.units[last]):.12g}{last}"


_MIB: Final = 2**20
_BYTES: Final = {"b": 1, "k": 2**10, "kb": 2**10, "m": _MIB, "mb": _MIB, "g": 2**30, "gb": 2**30}
SIZE: Final = Kind(
    name="size",
    metavar="size",
    examples="512m or 4g",
    number=int,
    units={form: Fraction(size, _MIB) for unit, size in _BYTES.items() for form in (unit, unit.upper())},
    printed=("g", "m"),
    least=256,  # no engine starts with less
    most=2**40,
    most_text="2^40 MiB",
    whole="MiB",
)
"""Of the heap of a node, in MiB."""

DURATION: Final = Kind(
    name="duration",
    metavar="duration",
    examples="90s, 30m or 2h",
    number=float,
    units={"us": Fraction(1, 10**6), "ms": Fraction(1, 10**3), "s": 1, "m": 60, "h": 3600, "d": 86_400},
    printed=("m", "s"),
    least=0,
    most=36_500 * 86_400,  # clocks and calendars end somewhere
    most_text="100 years",
)
"""In seconds."""

PERCENT: Final = Kind(
    name="percentage",
    metavar="percent",
    examples="3% or 0.5%",
    number=float,
    units={"%": Fraction(1, 100)},
    printed=("%",),
    least=0,
    most=10**7,
    most_text="10^9%",
)
"""Value as a fraction."""

COUNT: Final = Kind(
    name="document count",
    metavar="n",
    examples="300k, 1m or 20_000",
    number=int,
    units={"": 1, "k": 10**3, "K": 10**3, "m": 10**6, "M": 10**6, "b": 10**9, "B": 10**9},
    printed=("m", "k", ""),
    least=1,
    most=10**15,
    most_text="10^15",
    whole="documents",
)

KINDS: Final[tuple[Kind[Any], ...]] = (SIZE, DURATION, PERCENT, COUNT)

# Amounts in files, as written.
Size = Annotated[str, SIZE.written]
Duration = Annotated[str, DURATION.written]
Percent = Annotated[str, PERCENT.written]
Count = Annotated[str, COUNT.written]
