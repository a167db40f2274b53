"""The search for the highest load that meets an objective: pure, driven by a caller that tries loads."""

import bisect
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from benchctl.results.figures import RedlineEnd, StepVerdict

Phase = Literal["search", "retry", "confirm"]
Try = Callable[[int, Phase], StepVerdict]
"""Tries the load of a rung, and tells whether it met the objective."""

CONFIRMATIONS = 2
# Twelve find a load on a 3% grid; the rest is for steps that contradict each other.
MOST_STEPS = 40
# Where a load that failed once passes, the answer is not far above.
_NEAR = 2
_EVEN_STRIDES = 3


@dataclass(frozen=True)
class Ladder:
    """Rates or factors of a search: a geometric grid, whose `ratio` (> 1) is the resolution of the answer.

    Every block shifts the grid by `shift` rungs, from 0 to 1: on one grid, forks that differ by less than a
    rung would be identical, and the spread that tests are based on would be the grid's. It ends exactly at
    `most`, on the rung `top`, whatever the shift.
    """

    ratio: float
    shift: float = 0.0
    most: float = math.inf

    @property
    def top(self) -> int | None:
        """The highest rung; None where there is none."""
        if math.isinf(self.most):
            return None
        rung = self.at_most(self.most)
        return rung + (self._grid(rung) < self.most)

    def load(self, rung: int) -> float:
        """Return the rate or factor of a rung."""
        return min(self._grid(rung), self.most)

    def at_most(self, load: float) -> int:
        """Return the highest rung of the endless grid whose load does not exceed this one."""
        rung = round(math.log(load) / math.log(self.ratio))
        while self._grid(rung) > load:
            rung -= 1
        while self._grid(rung + 1) <= load:
            rung += 1
        return rung

    def _grid(self, rung: int) -> float:
        return float(self.ratio ** (rung + self.shift))

    def rungs(self, factor: float) -> int:
        """Return a factor in rungs, at least one."""
        return max(1, round(math.log(factor) / math.log(self.ratio)))


class ClientLadder:
    """Numbers of clients of a search: neighbours are a ratio apart, but at least one client.

    It is the same in every block: there is nothing between whole numbers that it could be shifted by.
    """

    def __init__(self, least: int, most: int, ratio: float) -> None:
        counts = [least]
        while counts[-1] < most:
            counts.append(min(max(counts[-1] + 1, math.floor(counts[-1] * ratio)), most))
        self._counts = tuple(counts)

    @property
    def top(self) -> int:
        """The highest rung."""
        return len(self._counts) - 1

    def load(self, rung: int) -> float:
        """Return the clients of a rung, from 0."""
        return float(self._counts[rung])

    def at_most(self, load: float) -> int:
        """Return the highest rung with no more clients than this, at least 0."""
        return max(0, bisect.bisect_right(self._counts, load) - 1)

    def rungs(self, factor: float, near: float) -> int:
        """Return a factor in rungs, near that many clients; at least one."""
        return max(1, self.at_most(factor * near) - self.at_most(near))


@dataclass(frozen=True)
class Found:
    """The end of a search."""

    rung: int | None  # the highest that met the objective; None when none did, or none is reliable
    end: RedlineEnd
    # The rung that decided it: found, where the driver was the limit, the lowest, or the last tried. It was
    # tried, whatever the end.
    at: int


class Search:
    """Bisection over the rungs between the highest that passed and the lowest that failed.

    It differs from bisecting a function: a step is a measurement and can be wrong, and the node may still
    warm up. So a failed neighbour is retried before it is believed, and the search goes on above it if it
    passes; and a load counts as found only when it passes twice more in a row, one rung lower after each
    failure.

    Args:
        attempt: tries a rung.
        least: the lowest rung to try.
        most: the highest rung to try; None for no bound.
        leap: the stride of the first few steps, in rungs; a load far above capacity costs minutes to recover
            from. If these lead nowhere, the guess was poor, and strides double.
    """

    def __init__(self, attempt: Try, *, least: int, most: int | None, leap: int) -> None:
        self._attempt = attempt
        self._least = least
        self._most = most
        self._leap = leap
        self._passed: int | None = None
        self._failed: int | None = None
        self._retried: set[int] = set()
        self._steps = 0
        self._last = least

    def run(self, first: int) -> Found:
        """Search from a rung that is likely to be near; it is moved into the bounds."""
        try:
            self._bracket(self._bounded(first), self._leap)
            return self._confirm(self._settle())
        except _Over as end:
            return end.found

    def _bounded(self, rung: int) -> int:
        rung = max(rung, self._least)
        return rung if self._most is None else min(rung, self._most)

    def _bracket(self, rung: int, stride: int) -> None:
        """Stride until the answer lies between two rungs, or at the highest."""
        for number in itertools.count(1):
            passed = self._try(rung, "search")
            if passed and (self._failed is not None or rung == self._most):
                return
            if not passed and self._passed is not None:
                return
            if not passed and rung == self._least:
                raise _Over(Found(None, "missed", rung))
            if number > _EVEN_STRIDES:
                stride *= 2
            rung = self._bounded(rung + stride if passed else rung - stride)

    def _settle(self) -> int:
        """Bisect, retrying what failed once; returns the highest rung that passed."""
        while True:
            low, high = self._passed, self._failed
            if low is None:
                raise _Over(Found(None, "missed", self._least))
            if high is None:
                if low == self._most:
                    return low
                self._bracket(self._bounded(low + _NEAR), _NEAR)
            elif high - low > 1:
                self._try((low + high) // 2, "search")
            elif high in self._retried:
                return low
            else:
                self._retried.add(high)
                self._try(high, "retry")

    def _confirm(self, rung: int) -> Found:
        while True:
            if all(self._try(rung, "confirm") for _ in range(CONFIRMATIONS)):
                return Found(rung, "max-rate" if rung == self._most else "found", rung)
            if rung == self._least:
                raise _Over(Found(None, "missed", rung))
            rung -= 1

    def _try(self, rung: int, phase: Phase) -> bool:
        """Measure a step; if the driver limited it, retry once."""
        verdict = self._measure(rung, phase)
        if verdict == "driver-limited":
            verdict = self._measure(rung, "retry")
        if verdict == "driver-limited":
            raise _Over(Found(self._passed, "driver-limited", rung))
        if verdict == "pass":
            self._passed = rung if self._passed is None else max(rung, self._passed)
            if self._failed is not None and self._failed <= rung:
                self._failed = None
        else:
            self._failed = rung if self._failed is None else min(rung, self._failed)
            if self._passed is not None and self._passed >= rung:
                self._passed = None
        return verdict == "pass"

    def _measure(self, rung: int, phase: Phase) -> StepVerdict:
        if self._steps == MOST_STEPS:
            raise _Over(Found(None, "unsettled", self._last))
        self._steps += 1
        self._last = rung
        return self._attempt(rung, phase)


class _Over(Exception):  # noqa: N818 - it ends the search, and is not an error
    def __init__(self, found: Found) -> None:
        super().__init__(found.end)
        self.found = found
