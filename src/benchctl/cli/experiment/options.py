"""Options about how large an experiment is, and the estimate that follows from them."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from benchctl.cli.options import DocumentsType, DurationType, HeapType, ParamOptions, grouped
from benchctl.errors import UsageError
from benchctl.experiment.changes import Changes, left_out
from benchctl.experiment.check import Experiment
from benchctl.experiment.estimate import MOST_RECORDS, Estimate, estimate
from benchctl.results.model import MOST_FORKS
from benchctl.results.store import RunStore
from benchctl.run.host import describe_host
from benchctl.stats.multiplicity import FIRST_LOOK

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class SizeOptions:
    """What replaces what the file says; None or empty for the file's.

    Attributes:
        forks: of every variant; the most of them with `until_decided`.
        docs: documents.
        heap: of every node, MiB.
        seed: of orders and arrivals.
        measurements: names of those that are made.
        budget_s: for the forks.
        until_decided: forks are given to open expectations.
    """

    forks: int | None
    docs: int | None
    heap: int | None
    seed: int | None
    measurements: tuple[str, ...]
    budget_s: float | None
    until_decided: bool

    def changes(self, params: ParamOptions) -> Changes:
        """As the loader of experiments takes them.

        Raises:
            UsageError: a parameter cannot be read, or the budget is no time.
        """
        if self.budget_s is not None and self.budget_s <= 0:
            raise UsageError("--budget must be more than no time")
        return Changes(
            self.forks,
            self.docs,
            self.heap,
            self.seed,
            params.read(),
            tuple(dict.fromkeys(self.measurements)),
            self.until_decided,
        )


size_options = grouped(
    "size_options",
    SizeOptions,
    click.option(
        "--forks",
        type=int,
        default=None,
        help="Forks of every variant, instead of the file's; the most of them with --until-decided.",
    ),
    click.option("--docs", type=DocumentsType(), default=None, help="Documents, instead of the file's."),
    click.option("--heap", type=HeapType(), default=None, help="Heap of every node, instead of the file's."),
    click.option("--seed", type=int, default=None, help="Of order and arrivals, instead of the file's."),
    click.option(
        "--measurement",
        "measurements",
        multiple=True,
        metavar="NAME",
        help="Make only this measurement, and the comparisons that it is enough for; repeatable.",
    ),
    click.option(
        "--budget",
        "budget_s",
        type=DurationType(),
        default=None,
        metavar="TIME",
        help="End in time, such as 2h: no block begins that is not expected to fit. It is the time of the "
        "forks; the preparation is not counted.",
    ),
    click.option(
        "--until-decided",
        is_flag=True,
        help=f"Begin with {FIRST_LOOK} forks of everything, and give all further ones to what open "
        "expectations rest on, the nearest first, until all are confirmed or refuted, time is up, or a side "
        f"has as many as --forks says  [default: {MOST_FORKS}].",
    ),
)
"""The options; the command gets them as one, `size_options`."""


def estimated(experiment: Experiment, store: RunStore, budget_s: float | None) -> Estimate:
    """What an experiment is expected to take and to see on this machine."""
    records = itertools.islice(store.newest(), MOST_RECORDS)
    host = describe_host().fingerprint
    return estimate(experiment.spec, experiment.plans, records, host, budget_s=budget_s)


def left_out_text(experiment: Experiment) -> str:
    """What `--measurement` leaves out, for readers; empty for nothing."""
    what = left_out(experiment.whole, experiment.spec)
    return what and f"left out by --measurement: {what}"
