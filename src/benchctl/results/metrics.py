"""The metrics, each declared once: what tables, comparisons, gates, SQL and schemas follow from."""

from typing import Any, Literal

import msgspec

from benchctl.results.figures import OPERATIONS, Quantiles, TaskSummary, described_fields

Level = Literal["request", "task", "ingest", "index", "build"]
"""Subject of a value: requests, everything that a task did, writing, the index at rest, or the building of a
prepared index."""


class MetricKind(msgspec.Struct, frozen=True):
    """A figure of a task in a fork; whatever compares, shows, gates or stores figures knows it from here."""

    name: str  # machine name; that of quantiles goes on with a percentile, as in `latency_p90`
    title: str  # what tables call it, behind the percentile
    # Field or property of `TaskSummary`: a number in `unit`, or `Quantiles`; empty for one of its `meters`.
    field: str
    unit: str = "ms"  # of a fork's value; of quantiles `ms`
    meaning: str = ""  # what it is, for readers; that of the field unless something else is said
    higher_is_better: bool = False  # which way is faster
    margin: float = 0.05  # relative difference that does not matter in practice
    # Whether the field holds `Quantiles`; never given, but taken from its type.
    quantiles: bool = False
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

    def __post_init__(self) -> None:
        """Take the meaning of a field of `TaskSummary`, and whether it is quantiles, from there."""
        if self.field:
            kind, text = described_fields(TaskSummary).get(self.field, (float, ""))
            msgspec.structs.force_setattr(self, "quantiles", kind == Quantiles | None)
            if not self.meaning:
                msgspec.structs.force_setattr(self, "meaning", text.partition("; None")[0])

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


_PROCESS = "the node's process"
_LOG = "the collector's log"
_ASKED = "the statistics of a single node without other users"


def _metered(
    name: str,
    title: str,
    unit: str,
    meaning: str,
    *,
    level: Level = "task",
    own_nodes: str = _PROCESS,
    **changes: Any,
) -> MetricKind:
    figure = MetricKind(name, title, "", unit, meaning, loop="cost", level=level, own_nodes=own_nodes)
    return msgspec.structs.replace(figure, **changes)


def _summed(name: str, title: str, unit: str, meaning: str, **changes: Any) -> MetricKind:
    return _metered(name, title, unit, f"{meaning}, per operation", additive=True, **changes)


def _writing(name: str, title: str, meaning: str) -> MetricKind:
    return _summed(name, title, "ms", meaning, level="ingest", own_nodes=_ASKED)


def _answered(name: str, title: str, unit: str, meaning: str, **changes: Any) -> MetricKind:
    return _metered(name, title, unit, meaning, level="request", own_nodes="", **changes)


def _per_second(name: str, title: str, field: str, unit: str = "queries/s", **changes: Any) -> MetricKind:
    figure = MetricKind(name, title, field, unit, higher_is_better=True, margin=0.03, level="task")
    return msgspec.structs.replace(figure, **changes)


def _built(name: str, title: str, built: str, unit: str, meaning: str, **changes: Any) -> MetricKind:
    figure = MetricKind(name, title, "", unit, meaning, level="build", built=built)
    return msgspec.structs.replace(figure, **changes)


METRIC_KINDS = (
    _per_second(
        "throughput", "throughput", "served_per_s",
        meaning="units a second in the measured window; of one client, without the time between a response "
        "and the next request",
        loop="closed", usual=True, counts=True,
    ),
    MetricKind("service_time", "service time", "service_time", usual=True),
    MetricKind("latency", "latency", "latency", loop="open", usual=True),
    MetricKind(
        "recall", "recall", "", "share",
        "share of the exact nearest vectors among the hits, mean of the measured searches",
        higher_is_better=True, margin=0.01, usual=True, additive=True, quality=True,
    ),
    MetricKind("took", "engine's own time", "took", resolution=1.0),
    MetricKind("took_sum", "sum of the searches' own times", "took_sum", resolution=1.0),
    MetricKind("first", "first request (cold)", "first_ns", per_unit=1e6, loop="start"),
    MetricKind("second", "second request (lukewarm)", "second_ns", per_unit=1e6, loop="start"),
    MetricKind("mean", "mean service time", "mean_ns", per_unit=1e6),
    MetricKind(
        "op_time", "time per operation", "mean_ns", "ns",
        "mean time of an operation of a microbenchmark, by JMH", loop="micro",
    ),
    _metered(
        "cpu", "CPU of the node", "ms", "CPU time of the node, over all its threads, per operation",
    ),
    _summed("cpu_search", "CPU of search threads", "ms", "CPU time of threads that search"),
    _metered(
        "gc", "collector pauses", "ms",
        "time that all threads of the node stood still, per operation",
        additive=True, own_nodes=_LOG,
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
    _writing("indexing", "indexing", "time indexing, by the engine's clock, over its threads"),
    _writing("refresh", "refresh", "time refreshing, by the engine's clock"),
    _writing("merge", "merging", "time of merges that ended during the task, by the engine's clock"),
    _writing("flush", "flush", "time flushing, by the engine's clock"),
    _per_second("redline", "red-line", "redline_per_s", loop="search", counts=True),
    _built(
        "build_rate", "docs/s", "ingest.docs_per_s", "docs/s",
        "documents indexed a second while an index is built", higher_is_better=True, usual=True,
    ),
    _built(
        "build_took", "sum of took", "ingest.costs.took_s", "s",
        "the engine's own time of all bulk requests of a build",
    ),
    _built(
        "build_rest", "took beyond indexing", "ingest.rest_s", "s",
        "what that has beyond indexing: durability, answers", additive=True, resolution=0.001,
    ),
    _built(
        "build_client", "time beyond took", "ingest.costs.network_s", "s",
        "from sending to the answer beyond it, over all bulk requests of a build", additive=True,
    ),
    _built(
        "build_own", "client's own time", "ingest.costs.client_s", "s",
        "to frame bodies, or to encode documents and decode answers, over all bulk requests of a build",
        additive=True,
    ),
    *(
        _built(
            f"build_{name}", f"engine's {title}", f"ingest.engine_{name}_s", "s",
            f"{title} while an index is built, by the engine's clock",
            additive=name != "indexing", resolution=0.001,
        )
        for name, title in (
            ("indexing", "indexing"), ("refresh", "refreshes"), ("merge", "merges"), ("flush", "flushes"),
        )
    ),
    _built(
        "force_merge", "force-merge", "ingest.force_merge_s", "s",
        "time of the force-merge when an index has been filled", level="ingest", usual=True,
    ),
    _built(
        "index_size", "size", "store_bytes", "MB", "size of all segments",
        level="index", per_unit=1e6, usual=True,
    ),
)  # fmt: skip
"""In the order of tables."""
