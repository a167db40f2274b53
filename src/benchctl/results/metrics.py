"""The metrics, each declared once: what tables, comparisons, gates, SQL and schemas follow from."""

from typing import Any, Literal

import msgspec

from benchctl.results.figures import OPERATIONS, Quantiles, TaskSummary, described_fields

Level = Literal["request", "task", "ingest", "index", "node", "build"]
"""Subject of a value: requests, everything that a task did, writing, the index at rest, a node after a task,
or the building of a prepared index."""


class MetricKind(msgspec.Struct, frozen=True):
    """A figure of a task in a fork; whatever compares, shows, gates or stores figures knows it from here."""

    name: str  # machine name; that of quantiles goes on with a percentile, as in `latency_p90`
    title: str  # what tables call it, behind the percentile
    # Of `TaskSummary`: a number in `unit`, or `Quantiles`; empty for one of its `meters`.
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
    # What it is read from of a node that benchctl starts, if a target does not have that.
    own_nodes: str = ""
    # Whose clocks in the node statistics of a target tell it, over all its nodes and whoever works on them; a
    # target cannot tell what has `own_nodes` alone.
    target: str = ""
    built: str = ""  # where `IndexFacts` of an index build have it; empty for what only tasks have
    named: bool = False  # whether these have several values of it by name
    parted: bool = False  # whether tasks have it of parts as well, each a figure `NAME.PART`
    # Whether it is of how good results are, which few tasks know: compared by differences, never by ratios.
    quality: bool = False

    def __post_init__(self) -> None:
        """Take the meaning of a field of `TaskSummary`, and whether it is quantiles, from there."""
        if self.field:
            kind, text = described_fields(TaskSummary)[self.field]
            msgspec.structs.force_setattr(self, "quantiles", kind == Quantiles | None)
            if not self.meaning:
                msgspec.structs.force_setattr(self, "meaning", text.partition("; None")[0])

    @property
    def of_tasks(self) -> bool:
        """Return whether tasks of a challenge may have it, and not only builds of an index."""
        return self.level != "build" and not self.named

    @property
    def of_start(self) -> bool:
        """Return whether it is of a task's first requests, measured or not."""
        return self.loop == "start"

    @property
    def by_documents(self) -> bool:
        """Return whether tasks that count documents have it for 1,000 of them, unlike what a node holds."""
        return self.loop == "cost" and self.level != "node"

    @property
    def of_speed(self) -> bool:
        """Return whether it is a rate, or a wait, and not what work takes up."""
        return self.quantiles or self.higher_is_better or self.unit == "s"

    @property
    def told_by_targets(self) -> bool:
        """Return whether a cluster that runs already can tell it."""
        return bool(self.target) or not self.own_nodes

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
_BUILT = "the node that fills the index"
_TICKS = "the JVMs' own clocks"
_COUNTERS = "the engine's own clocks"


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
    return _summed(name, title, "ms", meaning, level="ingest", own_nodes=_ASKED, target=_COUNTERS)


def _answered(name: str, title: str, unit: str, meaning: str, **changes: Any) -> MetricKind:
    return _metered(name, title, unit, meaning, level="request", own_nodes="", **changes)


def _per_second(name: str, title: str, field: str, unit: str = "queries/s", **changes: Any) -> MetricKind:
    figure = MetricKind(name, title, field, unit, higher_is_better=True, margin=0.03, level="task")
    return msgspec.structs.replace(figure, **changes)


def _built(name: str, title: str, built: str, unit: str, meaning: str, **changes: Any) -> MetricKind:
    figure = MetricKind(name, title, "", unit, meaning, level="build", built=built)
    return msgspec.structs.replace(figure, **changes)


def _at_rest(name: str, title: str, built: str, meaning: str, **changes: Any) -> MetricKind:
    figure = _built(name, title, built, "MB", meaning, level="index", per_unit=1e6)
    return msgspec.structs.replace(figure, **changes)


THREADS = ("search", "write", "collector", "compilers", "other")
"""Purpose of a node's threads."""
FILES = (
    "postings", "bloom filters", "points", "doc values", "stored fields", "norms", "vectors", "term vectors",
    "translog", "other",
)  # fmt: skip
"""Purpose of an index's files."""


METRIC_KINDS = (
    _per_second("throughput", "throughput", "throughput_per_s", loop="closed", usual=True, counts=True),
    MetricKind("service_time", "service time", "service_time", usual=True),
    MetricKind("latency", "latency", "latency", loop="open", usual=True),
    *(
        MetricKind(
            name, name, "", "share", meaning,
            higher_is_better=True, margin=0.01, usual=True, additive=True, quality=True,
        )
        for name, meaning in (
            ("recall", "share of the exact nearest vectors among the hits, mean of the measured searches"),
            ("ndcg", "the same by discounted gain, with more weight on the first ranks, over the largest"),
        )
    ),
    MetricKind("took", "engine's own time", "took", resolution=1.0),
    MetricKind("took_sum", "sum of the searches' own times", "took_sum", resolution=1.0),
    MetricKind("first_byte", "time to the first byte", "first_byte"),
    MetricKind("first", "first request (cold)", "first_ns", per_unit=1e6, loop="start"),
    MetricKind("second", "second request (lukewarm)", "second_ns", per_unit=1e6, loop="start"),
    MetricKind("mean", "mean service time", "mean_ns", per_unit=1e6),
    MetricKind(
        "op_time", "time per operation", "mean_ns", "ns",
        "mean time of an operation of a microbenchmark, by JMH", loop="micro",
    ),
    _metered(
        "cpu", "CPU of the node", "ms", "CPU time of the node, over all its threads, per operation",
        target=_TICKS,
    ),
    _summed("cpu_search", "CPU of search threads", "ms", "CPU time of threads that search"),
    _summed("cpu_write", "CPU of write threads", "ms", "CPU time of threads that index, refresh and merge"),
    _summed("cpu_collector", "CPU of the collector", "ms", "CPU time of the garbage collector"),
    _summed("cpu_compilers", "CPU of compilers", "ms", "CPU time of the JIT compilers"),
    _summed("cpu_other", "CPU of other threads", "ms", "CPU time of all other threads"),
    _summed("compilations", "compilations", "methods", "methods that the JIT compilers finished"),
    _summed(
        "compiling", "time compiling", "ms", "wall time that the JIT compilers spent on these methods"
    ),
    _metered(
        "cpu_driver", "CPU of benchctl", "ms",
        "CPU time of benchctl itself, warm-up included, per operation", own_nodes="",
    ),
    _metered(
        "gc", "collector pauses", "ms",
        "time that all threads of the node stood still, per operation; of targets in whole "
        "milliseconds, and of some collectors with what they do beside the threads",
        additive=True, own_nodes=_LOG, target=_TICKS,
    ),
    _summed("collections", "collections", "times", "pauses of the collector", own_nodes=_LOG, target=_TICKS),
    _metered("allocated", "allocation", "kB", "allocated on the heap, per operation", own_nodes=_LOG),
    _summed("storage_read", "storage reads", "kB", "read from storage, not from the page cache"),
    _summed("major_faults", "major page faults", "faults", "page faults that read from storage"),
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
    _per_second(
        "sent", "data sent", "", "MB/s", meaning="bulk bodies a second", loop="closed", level="ingest"
    ),
    _metered(
        "heap", "heap after collection", "MB",
        "heap in use after the last collection before the end of a task", level="node", own_nodes=_LOG,
    ),
    _metered(
        "direct_buffers", "direct buffers", "MB",
        "direct buffers of the JVM after the last task on a node, of targets after every task",
        level="node", own_nodes=_ASKED, target=_TICKS,
    ),
    _metered(
        "heap_used", "heap in use", "MB",
        "heap in use at the end of a task, garbage included; of targets only",
        level="node", own_nodes="", target=_TICKS,
    ),
    _metered(
        "segments", "segments", "segments",
        "segments of all shards on a target at the end of a task, whatever index they are of",
        level="node", own_nodes="", target=_COUNTERS,
    ),
    _metered(
        "open_files", "open files", "files",
        "files and sockets that the node has open at the end of a task", level="node", target=_TICKS,
    ),
    _writing("indexing", "indexing", "time indexing, by the engine's clock, over its threads"),
    _writing("refresh", "refresh", "time refreshing, by the engine's clock"),
    _writing("merge", "merging", "time of merges that ended during the task, by the engine's clock"),
    _writing("flush", "flush", "time flushing, by the engine's clock"),
    _writing("throttled", "throttled indexing", "time that indexing was throttled, by the engine's clock"),
    _answered("answer", "answer", "kB", "size of an answer, mean of the successful operations"),
    _per_second("redline", "red-line", "redline_per_s", loop="search", counts=True),
    _built(
        "build_rate", "docs/s", "ingest.docs_per_s", "docs/s",
        "documents indexed a second while an index is built", higher_is_better=True, usual=True,
    ),
    _built(
        "build_sent", "data sent", "ingest.mb_per_s", "MB/s", "bulk bodies a second while an index is built",
        higher_is_better=True,
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
    _built(
        "build_cpu", "CPU", "ingest.cpu_ms", "ms/1k docs",
        "CPU time of the node for 1,000 documents of a build", own_nodes=_BUILT, usual=True,
    ),
    *(
        _built(
            f"build_cpu_{kind}", f"CPU of {kind}", f"ingest.cpu_by_kind_ms.{kind}", "ms/1k docs",
            f"the same, of {kind} threads", own_nodes=_BUILT, additive=True,
        )
        for kind in THREADS
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
    _at_rest("index_size", "size", "store_bytes", "size of all segments", usual=True),
    _at_rest(
        "index_segments", "segments", "segment_count", "segments of all shards", unit="segments", per_unit=1.0
    ),
    *(
        _at_rest(
            f"index_{kind.replace(' ', '_')}", kind, f"files.{kind}", f"size of the files for {kind}",
            additive=True, own_nodes=_BUILT,
        )
        for kind in FILES
    ),
    _at_rest(
        "index_fields", "field", "fields", "size of every field; only Elasticsearch tells it",
        own_nodes=_BUILT, named=True,
    ),
)  # fmt: skip
"""In the order of tables."""
