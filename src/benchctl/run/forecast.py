"""What a run says before it starts: how it will end, and what earlier runs say that it is going to see."""

import itertools

from benchctl.results.plan import Plan
from benchctl.results.store import RunStore
from benchctl.run.observer import Observer
from benchctl.run.stopping import stop_text
from benchctl.stats.history import History, collect_history

# The first request waits for it: about 2 ms each.
_MOST_RECORDS = 100


def earlier_runs(store: RunStore, plan: Plan, fingerprint: str, *, most: int | None = None) -> History:
    """What a store says about a plan.

    Args:
        store: of the runs.
        plan: that is about to start.
        fingerprint: of this host.
        most: newest runs to look at; None for all.
    """
    return collect_history(itertools.islice(store.newest(), most), plan, fingerprint)


def announce(store: RunStore, plan: Plan, fingerprint: str, observer: Observer) -> None:
    """Say it."""
    # A sixth of a second of scipy, which `benchctl run --help` need not wait for.
    from benchctl.report.forecast import forecast_lines  # noqa: PLC0415 - see above

    rule = stop_text(plan)
    if rule:
        observer.note(rule)
    for line in forecast_lines(earlier_runs(store, plan, fingerprint, most=_MOST_RECORDS), plan):
        observer.note(line)
