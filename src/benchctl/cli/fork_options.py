"""Options of `run` about how many forks there are, and when fewer are enough; as one value."""

from dataclasses import dataclass

import click
import msgspec

from benchctl.cli.options import DurationType, PercentType, grouped
from benchctl.results.model import DEFAULT_FORKS, MOST_FORKS
from benchctl.results.plan import StopSpec
from benchctl.stats.multiplicity import FIRST_LOOK


@dataclass(frozen=True)
class ForkOptions:
    """How many forks.

    Attributes:
        forks: as given; None when not.
        precision: half width of intervals that is enough, as a ratio - 1; None not to end early.
        budget_s: seconds for the forks; None for as long as they take.
        decided: end when everything has a verdict.
        margin: for these verdicts, as a ratio - 1; None for each metric's own.
    """

    forks: int | None
    precision: float | None
    budget_s: float | None
    decided: bool
    margin: float | None

    @property
    def stop(self) -> StopSpec | None:
        """The rule; None when all forks are run."""
        if (self.precision, self.budget_s, self.margin, self.decided) == (None, None, None, False):
            return None
        found = StopSpec(self.precision, self.budget_s, decided=self.decided, margin=self.margin)
        return msgspec.structs.replace(found, least_forks=FIRST_LOOK) if self.decided else found

    @property
    def count(self) -> int:
        """Forks of every variant; with a rule, the most of them."""
        if self.forks is not None:
            return self.forks
        return DEFAULT_FORKS if self.stop is None else MOST_FORKS


fork_options = grouped(
    "fork_options",
    ForkOptions,
    "How much",
    click.option(
        "--forks",
        type=int,
        default=None,
        help="Passes of every variant on fresh nodes  "
        f"[default: {DEFAULT_FORKS}; at most {MOST_FORKS} with --until-decided, --precision or --budget]",
    ),
    click.option(
        "--until-decided",
        "decided",
        is_flag=True,
        help="End when every difference is faster, slower or equivalent; looked at after every "
        f"block from the {FIRST_LOOK}th on, by levels that hold in spite of it.",
    ),
    click.option(
        "--margin",
        type=PercentType(),
        default=None,
        metavar="PERCENT",
        help="Difference that does not matter to --until-decided  [default: 3% of throughput, 5% of times].",
    ),
    click.option(
        "--precision",
        type=PercentType(),
        default=None,
        metavar="PERCENT",
        help="End when the 95 % interval of every difference reaches no further than this either side, such "
        "as 5%; looked at after every block from the 8th on, whatever p is.",
    ),
    click.option(
        "--budget",
        "budget_s",
        type=DurationType(),
        default=None,
        metavar="TIME",
        help="End in time, such as 30m: no block begins that is not expected to fit. It is the time of the "
        "forks; the preparation is not counted.",
    ),
)
"""The options; the command gets them as one, `fork_options`."""
