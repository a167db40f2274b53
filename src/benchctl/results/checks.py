"""What a record gives away that its figures do not: searches nobody sent, tasks nobody answered."""

from benchctl.results.model import BootRecord, ForkRecord, RunRecord


def stray_boots(fork: ForkRecord) -> tuple[BootRecord, ...]:
    """Node starts whose node counted other searches than it was sent.

    A node does not count what it refuses to run, nor surely what was cut off, so after failed and cancelled
    requests fewer are no surprise; more are, always: a search that nobody sent is one that the JIT learned
    from.
    """
    refused = any(one.failures or one.cancelled or one.unsupported is not None for one in fork.summaries)
    return tuple(
        boot
        for boot in fork.boots
        if boot.searches_counted is not None
        and (
            boot.searches_counted > boot.searches_sent
            or (boot.searches_counted < boot.searches_sent and not refused)
        )
    )


def unanswered(record: RunRecord) -> tuple[str, ...]:
    """Tasks of which every measured request of some fork failed, as `task of variant`.

    Operations that a node cannot do are not among them: those are expected of some distributions.
    """
    found = [
        f"{summary.label} of {fork.variant}"
        for fork in record.forks
        for summary in fork.summaries
        if fork.status == "done" and summary.samples == 0 and summary.failures and summary.unsupported is None
    ]
    return tuple(dict.fromkeys(found))
