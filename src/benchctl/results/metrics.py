"""The metrics, each declared once: what tables, comparisons, gates, SQL and schemas follow from."""

from functools import partial
from typing import Literal

import msgspec

from benchctl.results.figures import OPERATIONS, Quantiles, TaskSummary

Level = Literal["request", "task", "ingest", "index", "build"]
"""Subject of a value: requests, everything that a task did, writing, the index at rest, or the building of a
prepared index."""


class MetricKind(msgspec.Struct, frozen=True):
    """A figure of a task in a fork; whatever compares, shows, gates or stores figures knows it from here."""

    name: str  # machine name; that of quantiles goes on with a percentile, as in `latency_p90`
    title: str  # what tables call it, behind the percentile
    unit: str  # of a fork's value; of quantiles `ms`
    meaning: str  # what it is, for readers
    # Field or property of `TaskSummary`: a number in `unit`, or `Quantiles`; empty for one of its `meters`.
    field: str = ""
    higher_is_better: bool = False  # which way is faster
    margin: float = 0.05  # relative difference that does not matter in practice
    quantiles: bool = False  # whether the field holds `Quantiles`
    # That of the tasks of which it says something: a throttled task's throughput was asked for, and a closed
    # loop has no latency of its own; `micro` is of microbenchmarks only; `cost` is that of an operation, at
    # whatever rate they came, and of 1,000 documents where those are counted: bodies may be of any size;
    # `start` is of a task's first requests, warm-up included, when nothing has settled or queued.
    loop: Literal["any", "open", "closed", "search", "cost", "micro", "start"] = "any"
    usual: bool = False  # whether tasks are compared by it unless something else is asked for
    counts: bool = False  # whether the unit follows what the task counts, such as documents
    resolution: float = 0.0  # step in which it is counted, in `unit`; 0 for none that matters
    per_unit: float = 1.0  # what the field holds for 1 `unit`
    # Whether it may be 0, so that means over forks are arithmetic; all others' are geometric.
    additive: bool = False
    level: Level = "request"
    # What it is read from of a node that benchctl starts; a target does not have that.
    own_nodes: str = ""
    built: str = ""  # where `IndexFacts` of an index build have it; empty for what only tasks have
    parted: bool = False  # whether tasks have it of parts as well, each a figure `NAME.PART`
    # Whether it is of how good results are, which few tasks know: compared by differences, never by ratios.
    quality: bool = False

    @property
    def of_tasks(self) -> bool:
        """Return whether tasks of a challenge may have it, and not only builds of an index."""
        return self.level != "build"

    @property
    def of_start(self) -> bool:
        """Return whether it is of a task's first requests, measured or not."""
        return self.loop == "start"

    @property
    def by_documents(self) -> bool:
        """Return whether tasks that count documents have it for 1,000 of them."""
        return self.loop == "cost"

    @property
    def of_speed(self) -> bool:
        """Return whether it is a rate, or a wait, and not what work takes up."""
        return self.quantiles or self.higher_is_better or self.unit == "s"

    @property
    def told_by_targets(self) -> bool:
        """Return whether a cluster that runs already can tell it."""
        return not self.own_nodes

    @property
    def better(self) -> Literal["higher", "lower"]:
        """Return the better direction in words."""
        return "higher" if self.higher_is_better else "lower"

    def of(self, summary: TaskSummary) -> "float | Quantiles | None":
        """Return the value in a fork, in `unit`; quantiles in nanoseconds."""
        if self.loop == "micro" and summary.unit != OPERATIONS:
            return None
        if not self.field:
            cost = summary.meters.get(self.name)
            each = summary.costed if self.by_documents else 1.0
            return None if cost is None or each is None else cost * each
        found: float | Quantiles | None = getattr(summary, self.field)
        return found / self.per_unit if isinstance(found, int | float) else found


_metered = partial(MetricKind, loop="cost", level="task", own_nodes="the node's process")
_summed = partial(_metered, additive=True)
_writing = partial(_summed, level="ingest", own_nodes="the statistics of a single node without other users")
_answered = partial(MetricKind, loop="cost")
_per_second = partial(MetricKind, higher_is_better=True, margin=0.03, level="task", counts=True)
_built = partial(MetricKind, level="build")
_times = partial(MetricKind, quantiles=True)

METRIC_KINDS = (
    _per_second(
        "throughput", "throughput", "queries/s",
        "units a second in the measured window; of one client, without the time between a response and the "
        "next request", "served_per_s", loop="closed", usual=True,
    ),
    _times(
        "service_time", "service time", "ms", "service time: send to last byte", "service_time", usual=True,
    ),
    _times(
        "latency", "latency", "ms", "latency: intended start to last byte", "latency",
        loop="open", usual=True,
    ),
    MetricKind(
        "recall", "recall", "share",
        "share of the exact nearest vectors among the hits, mean of the measured searches",
        higher_is_better=True, margin=0.01, usual=True, additive=True, quality=True,
    ),
    _times("took", "engine's own time", "ms", "the engine's own time", "took", resolution=1.0),
    _times(
        "took_sum", "sum of the searches' own times", "ms",
        "the sum over the searches of a batch or composite of the engine's own time", "took_sum",
        resolution=1.0,
    ),
    MetricKind(
        "first", "first request (cold)", "ms",
        "service time of the first request of a task, warm-up included", "first_ns",
        per_unit=1e6, loop="start",
    ),
    MetricKind(
        "second", "second request (lukewarm)", "ms",
        "service time of the first request of a task that began after its very first had ended", "second_ns",
        per_unit=1e6, loop="start",
    ),
    MetricKind("mean", "mean service time", "ms", "mean service time", "mean_ns", per_unit=1e6),
    MetricKind(
        "op_time", "time per operation", "ns", "mean time of an operation of a microbenchmark, by JMH",
        "mean_ns", loop="micro",
    ),
    _metered("cpu", "CPU of the node", "ms", "CPU time of the node, over all its threads, per operation"),
    _summed("cpu_search", "CPU of search threads", "ms", "CPU time of threads that search, per operation"),
    _summed(
        "gc", "collector pauses", "ms", "time that all threads of the node were stopped, per operation",
        own_nodes="the collector's log",
    ),
    _answered(
        "engine_time", "engine's own time, mean", "ms", "took, mean of the successful operations",
        additive=True,
    ),
    _answered(
        "client_time", "time outside the engine", "ms",
        "service time beyond took, mean of the successful operations", additive=True,
    ),
    _answered(
        "parallelism", "parallelism", "searches",
        "the sum of the searches' own times over the time of their batch: how many ran at a time",
        higher_is_better=True,
    ),
    _answered(
        "profile_query", "profiled query", "ms", "time of queries, by the profile API, which inflates it",
        additive=True,
    ),
    _answered(
        "profile_aggs", "profiled aggregations", "ms",
        "time of aggregations, by the profile API, which inflates it; of one that is in no other, "
        "profile_aggs.NAME",
        additive=True, parted=True,
    ),
    _writing(
        "indexing", "indexing", "ms",
        "time indexing, by the engine's clock, over its threads, per operation",
    ),
    _writing("refresh", "refresh", "ms", "time refreshing, by the engine's clock, per operation"),
    _writing(
        "merge", "merging", "ms",
        "time of merges that ended during the task, by the engine's clock, per operation",
    ),
    _writing("flush", "flush", "ms", "time flushing, by the engine's clock, per operation"),
    _per_second(
        "redline", "red-line", "queries/s", "highest rate that met the objective, of a red-line search",
        "redline_per_s", loop="search",
    ),
    _built(
        "build_rate", "docs/s", "docs/s", "documents indexed a second while an index is built",
        built="ingest.docs_per_s", higher_is_better=True, usual=True,
    ),
    _built(
        "build_took", "sum of took", "s", "the engine's own time of all bulk requests of a build",
        built="ingest.costs.took_s",
    ),
    _built(
        "build_rest", "took beyond indexing", "s", "what that has beyond indexing: durability, answers",
        built="ingest.rest_s", additive=True, resolution=0.001,
    ),
    _built(
        "build_client", "time beyond took", "s",
        "from sending to the answer beyond it, over all bulk requests of a build",
        built="ingest.costs.network_s", additive=True,
    ),
    _built(
        "build_own", "client's own time", "s",
        "to frame bodies, or to encode documents and decode answers, over all bulk requests of a build",
        built="ingest.costs.client_s", additive=True,
    ),
    *(
        _built(
            f"build_{name}", f"engine's {title}", "s",
            f"{title} while an index is built, by the engine's clock", built=f"ingest.engine_{name}_s",
            additive=name != "indexing", resolution=0.001,
        )
        for name, title in (
            ("indexing", "indexing"), ("refresh", "refreshes"), ("merge", "merges"), ("flush", "flushes"),
        )
    ),
    _built(
        "force_merge", "force-merge", "s", "time of the force-merge when an index has been filled",
        built="ingest.force_merge_s", level="ingest", usual=True,
    ),
    _built(
        "index_size", "size", "MB", "size of all segments",
        built="store_bytes", level="index", per_unit=1e6, usual=True,
    ),
)  # fmt: skip
"""In the order of tables."""
