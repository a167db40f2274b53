"""What a replay says about the detector: false alarms, delays and costs, in a few figures."""

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from benchctl.results.nightly.model import FindingStatus
from benchctl.stats.nightly.generate import Process
from benchctl.stats.nightly.simulate import Replayed

_OFTEN = 0.9


class Delay(msgspec.Struct, frozen=True, rename="kebab"):
    """Nights from a change until it is seen, over series; 1 is in the first night that shows it.

    Attributes:
        median, p90: None where fewer than half, or nine tenths, of the series saw it at all.
        seen, of: series that saw it, and all.
    """

    median: int | None
    p90: int | None
    seen: int
    of: int


class Outcome(msgspec.Struct, frozen=True, rename="kebab"):
    """The detector's performance on one process.

    Attributes:
        series, nights: watched series, and nights that were there.
        alarms, false_alarms: confirmed findings, and those of which nothing is true.
        screened: findings by what became of them.
        until_screened, until_alarm: delays after the engine's change; None where it does not change.
        recoveries: alarms that ended by themselves.
        confirmations: findings that were put to fresh forks.
        forks: of both sides of all confirmations, each counted by itself, though findings of one night share
            a run.
    """

    series: int
    nights: int
    alarms: int
    false_alarms: int
    screened: dict[FindingStatus, int]
    until_screened: Delay | None
    until_alarm: Delay | None
    recoveries: int
    confirmations: int
    forks: int


def outcome_of(replayed: Replayed, process: Process) -> Outcome:
    """Sum a replay up."""
    changes = process.engine(process.step_night) != 0 and process.step_night <= process.nights
    delays = [
        _delay(replayed.delays(process.step_night, confirmed=confirmed)) if changes else None
        for confirmed in (False, True)
    ]
    counts = Counter(one.status for one in replayed.findings)
    return Outcome(
        series=replayed.series,
        nights=replayed.nights,
        alarms=len(replayed.alarms),
        false_alarms=len(replayed.false_alarms),
        screened=dict(counts),
        until_screened=delays[0],
        until_alarm=delays[1],
        recoveries=replayed.recoveries,
        confirmations=counts["confirmed"] + counts["refuted"],
        forks=replayed.forks,
    )


def _delay(delays: Sequence[int | None]) -> Delay:
    seen = [float(nights) for nights in delays if nights is not None]
    ordered = np.sort(np.array([*seen, *[np.inf] * (len(delays) - len(seen))]))
    median, often = (float(np.quantile(ordered, share, method="inverted_cdf")) for share in (0.5, _OFTEN))
    return Delay(_whole(median), _whole(often), len(seen), len(delays))


def _whole(nights: float) -> int | None:
    return int(nights) if np.isfinite(nights) else None
