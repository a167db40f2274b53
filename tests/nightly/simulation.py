"""Made-up series of nights whose truth is known, and the screen and its confirmation replayed over them."""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from rich.console import Console

from benchctl.nightly.night import status_of
from benchctl.nightly.records import FindingStatus
from benchctl.nightly.series import DEFAULT_MARGIN, Nights, Screened, screen
from benchctl.results.plan import FIRST_LOOK
from benchctl.stats.compare import Comparison
from benchctl.stats.decisions import DECIDED
from benchctl.stats.inference import Floats
from comparing import compare

TEN: Final = math.log(1.1)
FIVE: Final = math.log(1.05)
MOST_FORKS: Final = 50


@dataclass(frozen=True)
class Process:
    """How nights come about, in natural logarithms of a time.

    Attributes:
        nights: how many there are.
        night_sd: from night to night.
        fork_sd: from fork to fork of a confirmation.
        step: by which the engine gets slower (above 0) or faster from night `at` on.
        until: first night that does not show the step any more; None for never.
        drift: by which it gets slower every night from night `at` on.
        ar: correlation of neighbouring nights.
        heavy: nights have t3 noise of the same SD.
    """

    nights: int = 60
    night_sd: float = 0.02
    fork_sd: float = 0.05
    step: float = 0.0
    at: int = 1
    until: int | None = None
    drift: float = 0.0
    ar: float = 0.0
    heavy: bool = False

    @property
    def truth(self) -> Floats:
        """What the engine takes in each night, shape (nights,)."""
        number = np.arange(1, self.nights + 1)
        lasting = (number >= self.at) & (number < (self.until or self.nights + 1))
        levels: Floats = lasting * (self.step + self.drift * (number - self.at + 1))
        return levels

    def draw(self, series: int, rng: np.random.Generator) -> list[Nights]:
        """Draw series."""
        shape = (series, self.nights)
        noise = rng.standard_t(3, shape) / math.sqrt(3) if self.heavy else rng.standard_normal(shape)
        for night in range(1, self.nights):
            noise[:, night] = self.ar * noise[:, night - 1] + math.sqrt(1 - self.ar**2) * noise[:, night]
        numbers = np.arange(1, self.nights + 1)
        ones = np.ones(self.nights, np.int64)
        zeros = np.zeros(self.nights)
        return [
            Nights(numbers, row, zeros, ones, higher_is_better=False)
            for row in self.truth + self.night_sd * noise
        ]


def screened(nights: Nights, night: int, **other: list[int]) -> Screened | None:
    """Screen a night with those before it as usual."""
    usual = other.pop("usual", list(range(1, night)))
    return screen(nights, night, usual=usual, margin=DEFAULT_MARGIN, **other)


def first_screened(nights: Nights, start: int, end: int) -> int | None:
    """Return the first night of a range that is screened."""
    return next((night for night in range(start, end) if screened(nights, night) is not None), None)


def confirmation(
    effect: float, fork_sd: float, rng: np.random.Generator, most: int = MOST_FORKS
) -> Comparison:
    """Run last-good against tonight, pair by pair, until there is a verdict."""
    good, tonight = np.exp(rng.normal(0.0, fork_sd, (2, most)) + np.array([[0.0], [effect]]))
    for forks in range(FIRST_LOOK, most + 1):
        found = compare(
            good[:forks].tolist(),
            tonight[:forks].tolist(),
            higher_is_better=False,
            margin=DEFAULT_MARGIN,
            looks=None,
        )
        if found.verdict in DECIDED:
            break
    return found


def replay(nights: Nights, process: Process, rng: np.random.Generator) -> Iterator[tuple[int, FindingStatus]]:
    """Yield every night with a finding and what became of it, as `nightly run` goes along.

    After an alarm, the nights since the change are the new level.
    """
    usual: list[int] = []
    doubtful: list[int] = []
    cleared: list[int] = []
    for night in range(1, process.nights + 1):
        found = screened(nights, night, usual=usual, doubtful=doubtful, cleared=cleared)
        if found is None:
            usual.append(night)
            continue
        effect = float(process.truth[night - 1] - process.truth[found.last_good - 1])
        status = status_of(confirmation(effect, process.fork_sd, rng))
        match status:
            case "refuted":
                usual.append(night)
                cleared.append(night)
            case "confirmed":
                usual = [one for one in usual if one >= found.since] + [night]
                doubtful = []
            case _:
                doubtful.append(night)
        yield night, status


CONSOLE: Final = Console(width=100, highlight=False)
SCREENED_WITHIN: Final = 6
CELLS: Final[dict[str, Process]] = {
    "no change": Process(),
    "no change, t3": Process(heavy=True),
    "no change, AR .3": Process(ar=0.3),
    **{
        f"{name} at night {at}": Process(nights=at + SCREENED_WITHIN - 1, step=step, at=at)
        for name, step in (("+10%", TEN), ("-10%", -TEN), ("+5%", FIVE), ("-5%", -FIVE))
        for at in (5, 10, 60)
    },
    "+10% at night 60, t3": Process(nights=65, step=TEN, at=60, heavy=True),
    "+10% at night 60, AR .3": Process(nights=65, step=TEN, at=60, ar=0.3),
    "+1% a night from night 30 on": Process(nights=44, drift=0.01, at=30),
    "+0.2% a night from night 10 on": Process(nights=59, drift=0.002, at=10),
}


def share_screened(process: Process, series: int, seed: int) -> float:
    """Return the share of series that are screened from the change on, of those that were not before."""
    rng = np.random.default_rng(seed)
    drawn = process.draw(series, rng)
    quiet = [one for one in drawn if first_screened(one, 2, process.at) is None]
    return sum(first_screened(one, process.at, process.nights + 1) is not None for one in quiet) / len(quiet)


def shares_confirmed(
    effect: float, series: int, seed: int, most: int = MOST_FORKS
) -> dict[FindingStatus, float]:
    """Return what becomes of findings whose truth is an effect, with forks whose SD is 5%."""
    rng = np.random.default_rng(seed)
    found = [status_of(confirmation(effect, 0.05, rng, most)) for _ in range(series)]
    statuses: tuple[FindingStatus, ...] = ("confirmed", "refuted", "unconfirmed")
    return {one: found.count(one) / series for one in statuses}


def main(series: int) -> None:
    """Print every cell: `PYTHONPATH=tests python -m nightly.simulation 20000`."""
    for name, process in CELLS.items():
        CONSOLE.print(f"{name}: screened {share_screened(process, series, 1):.3f}")
    for percent in (0, 3, 5, 10):
        shares = shares_confirmed(math.log1p(percent / 100), series // 10, 2)
        told = ", ".join(f"{status} {share:.3f}" for status, share in shares.items())
        CONSOLE.print(f"confirmation of {percent}%: {told}")
    process = Process()
    rng = np.random.default_rng(3)
    found = [status for one in process.draw(series, rng) for _, status in replay(one, process, rng)]
    counts = ", ".join(f"{status} {found.count(status)}" for status in dict.fromkeys(found))
    CONSOLE.print(f"{series} unchanged series of {process.nights} nights: {counts}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
