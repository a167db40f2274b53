"""Cost of a task on its nodes and the levels after it, from readings at its bounds and the GC log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchctl.engine.readings import ClusterReading
from benchctl.engine.usage import GcPause, Reading, cpu_by_kind
from benchctl.load.task_clients import TaskResult
from benchctl.results.figures import DOCUMENTS, FILES, TaskSummary
from benchctl.results.model import SegmentFacts
from benchctl.results.samples import Outcome

_NS_PER_MS = 1e6
_BYTES_PER_KB = 1e3
_BYTES_PER_MB = 1e6
# Of which half a millisecond, by which took is off, is 5%.
_LEAST_TOOK_NS = 10_000_000
# Between its first and its last collection: outside of these nobody knows what is allocated.
_LEAST_COVERED = 0.5
_MOST_UNCLAIMED = 0.02
_MOST_FOREIGN = 0.05
# A JVM counts its CPU time in ticks of the kernel: of this much, one is 5%.
_LEAST_CPU_MS = 200
_COSTS = (("cpu", "cpu_ms", _LEAST_CPU_MS), ("gc", "gc_ms", 0), ("collections", "collections", 0))


@dataclass(frozen=True)
class Node:
    """Facts about a node that has ended."""

    kinds: Mapping[int, str]  # of threads, by their numbers in the kernel; empty if it was not asked
    # Of the collector, on the clock of the samples; None without a log of them.
    pauses: Sequence[GcPause] | None
    direct_bytes: float | None = None  # of direct buffers, after the task; None if it was not asked
    name: str = ""  # empty for a single node
    pids: tuple[int, ...] = ()  # several if it was started again


Readings = Mapping[int, Reading]
"""Of nodes, by process id; what cannot be read is missing."""


@dataclass(frozen=True)
class Metered:
    """The metered figures of `results.figures.FIGURES`, as far as they are known."""

    figures: dict[str, float]  # sums over all nodes, where each is known
    parts: dict[str, dict[str, float]]  # by node, of several


def meters(
    readings: Sequence[Readings],
    result: TaskResult,
    origin_ns: int,
    nodes: Sequence[Node],
    written: Mapping[str, float],
) -> Metered:
    """Return what a task cost its nodes.

    Args:
        readings: of the nodes, before the first measured request and after the last one; empty for a task
            that ran beside others.
        result: of the task.
        origin_ns: what samples and pauses count from, on the clock of the readings.
        nodes: that were read.
        written: name of a figure -> milliseconds over the whole task.
    """
    first, last = readings if len(readings) == 2 else ({}, {})  # noqa: PLR2004 - the two ends
    since_ns = max((reading.at_ns for reading in first.values()), default=origin_ns) - origin_ns
    sent = measured = answered = answer_bytes = timed = took_ns = service_ns = 0
    for chunk in result.samples:
        whole = chunk["part"] == 0
        done = whole & ~chunk["warmup"] & (chunk["outcome"] == Outcome.OK)
        sent += int(whole.sum())
        measured += int((whole & (chunk["start_ns"] >= since_ns)).sum())
        answered += int(done.sum())
        answer_bytes += int(chunk["response_bytes"][done].sum())
        known = done & (chunk["took_ms"] >= 0)
        timed += int(known.sum())
        took_ns += int(chunk["took_ms"][known].sum()) * round(_NS_PER_MS)
        service_ns += int((chunk["end_ns"] - chunk["start_ns"])[known].sum())
    found = {"answer": answer_bytes / _BYTES_PER_KB / answered} if answered else {}
    if timed:
        found["engine_time"] = took_ns / _NS_PER_MS / timed
    # Whole milliseconds say nothing about what is left of quicker answers.
    if timed and took_ns >= timed * _LEAST_TOOK_NS and service_ns >= took_ns:
        found["client_time"] = (service_ns - took_ns) / _NS_PER_MS / timed
    if result.tooks and service_ns >= timed * _LEAST_TOOK_NS:
        summed_ms = sum(took_ms * times for took_ms, times in result.tooks[0].items())
        found["parallelism"] = summed_ms * _NS_PER_MS / service_ns
    if answered:
        found |= {f"profile_{kind}": ns / _NS_PER_MS / answered for kind, ns in result.profile_ns.items()}
    if readings and sent:
        found["cpu_driver"] = result.driver_cpu_s * 1e3 / sent
        found |= {name: spent / sent for name, spent in written.items()}
    if not measured:
        return Metered(found, {})
    # What several clients sent as a warm-up while another one was measured already cost the node as much.
    parts = {node.name: _part(first, last, origin_ns, node, measured) for node in nodes}
    known = set.intersection(*map(set, parts.values())) if parts else set()
    found |= {name: sum(part[name] for part in parts.values()) for name in known}
    return Metered(found, parts if len(nodes) > 1 else {})


def _part(first: Readings, last: Readings, origin_ns: int, node: Node, measured: int) -> dict[str, float]:
    """Return what a node cost, for one operation of all; nothing of one that was not up all the time."""
    pid = next((pid for pid in node.pids if pid in first and pid in last), None)
    if pid is None:
        return {}
    begin, end = first[pid], last[pid]
    found = {name: total / measured for name, total in _totals(begin, end, origin_ns, node).items()}
    return found | _levels(end, origin_ns, node)


def told(
    readings: Sequence[ClusterReading | None], result: TaskResult, origin_ns: int, gap_s: float
) -> dict[str, float]:
    """Return what a task cost a running cluster, by the clocks of its own nodes, over all of them.

    Its nodes look at their processes once a second. Costs are those between two such looks, for the requests
    that began between them, warm-up included. None where more than a twentieth of that time belongs to the
    task before, whose requests would count, or is not known better.

    Args:
        readings: when the first measured request was sent, and when the last one was answered.
        result: of the task.
        origin_ns: what samples count from, on the clock of the readings.
        gap_s: from the end of the task before to the start of this one, seconds.
    """
    begin, end = readings if len(readings) == 2 else (None, None)  # noqa: PLR2004 - the two ends
    if end is None:
        return {}
    levels = (("heap_used", "heap_used_bytes", 1e6), ("direct_buffers", "direct_bytes", 1e6))
    found = {
        name: end.total(field) for name, field in (("open_files", "open_files"), ("segments", "segments"))
    }
    found |= {name: value / unit for name, field, unit in levels if (value := end.total(field)) is not None}
    if begin is not None and begin.nodes.keys() == end.nodes.keys():
        window_ns = end.at_ns - begin.at_ns
        foreign_ns = max(result.start_ns - gap_s * 1e9 - begin.at_ns, 0) + begin.unsure_ns + end.unsure_ns
        since_ns, until_ns = begin.at_ns - origin_ns, end.at_ns - origin_ns
        sent = 0
        for chunk in result.samples:
            within = (chunk["start_ns"] >= since_ns) & (chunk["start_ns"] < until_ns)
            sent += int((within & (chunk["part"] == 0)).sum())
        if sent and foreign_ns <= _MOST_FOREIGN * window_ns:
            for name, field, least in _COSTS:
                before, after = begin.total(field), end.total(field)
                if before is not None and after is not None and after - before >= least:
                    found[name] = (after - before) / sent
    return {name: value for name, value in found.items() if value is not None}


def _levels(end: Reading, origin_ns: int, node: Node) -> dict[str, float]:
    """Return what a node held when a task was over, however many operations that had."""
    heaps = [
        pause.after_bytes
        for pause in node.pauses or ()
        if pause.after_bytes and pause.start_ns < end.at_ns - origin_ns
    ]
    known = {
        "heap": heaps[-1] / _BYTES_PER_MB if heaps else None,
        "direct_buffers": None if node.direct_bytes is None else node.direct_bytes / _BYTES_PER_MB,
        "open_files": end.open_files,
    }
    return {name: value for name, value in known.items() if value}


def sent_per_s(summary: TaskSummary, sent_bytes: int) -> dict[str, float]:
    """Return how fast documents came in; nothing for tasks that index none."""
    window_s = None if summary.driver is None else summary.driver.window_s
    if summary.unit != DOCUMENTS or not window_s or not sent_bytes:
        return {}
    return {"sent": sent_bytes / _BYTES_PER_MB / window_s}


def index_meters(segments: Sequence[SegmentFacts], files: Mapping[str, int]) -> dict[str, float]:
    """Return the metrics of an index that a challenge has filled.

    Args:
        segments: of all its shards; none where that is not known.
        files: bytes by what they are for, translogs included.
    """
    if not segments:
        return {}
    size = sum(segment.size_bytes for segment in segments)
    found = {"index_size": size / _BYTES_PER_MB, "index_segments": float(len(segments))}
    # Of a merge that was under way, there are files that belong to no segment yet.
    if abs(sum(files.values()) - files.get("translog", 0) - size) > _MOST_UNCLAIMED * size:
        return found
    return found | {f"index_{kind.replace(' ', '_')}": files.get(kind, 0) / _BYTES_PER_MB for kind in FILES}


def _totals(begin: Reading, end: Reading, origin_ns: int, node: Node) -> dict[str, float]:
    window = begin.at_ns - origin_ns, end.at_ns - origin_ns
    found: dict[str, float] = {
        "cpu": (end.cpu_ns - begin.cpu_ns) / _NS_PER_MS,
        "major_faults": end.major_faults - begin.major_faults,
    }
    if node.kinds:
        by_kind = cpu_by_kind(begin, end, node.kinds)
        found |= {f"cpu_{kind}": used / _NS_PER_MS for kind, used in by_kind.items()}
    if begin.read_bytes is not None and end.read_bytes is not None:
        found["storage_read"] = (end.read_bytes - begin.read_bytes) / _BYTES_PER_KB
    if begin.compiled is not None and end.compiled is not None:
        found["compilations"] = end.compiled[0] - begin.compiled[0]
        found["compiling"] = (end.compiled[1] - begin.compiled[1]) / _NS_PER_MS
    if node.pauses is not None:
        found["collections"] = sum(window[0] <= pause.start_ns < window[1] for pause in node.pauses)
        found["gc"] = sum(_within(_span(pause), window) for pause in node.pauses) / _NS_PER_MS
        allocated = allocated_bytes(node.pauses, window)
        if allocated is not None:
            found["allocated"] = allocated / _BYTES_PER_KB
    return found


def allocated_bytes(pauses: Sequence[GcPause], window: tuple[int, int]) -> float | None:
    """Estimate what a JVM allocated in a time, from how full its heap was before and after collections.

    Between two of them allocation counts as even, and before the first and behind the last as between.

    Args:
        pauses: in order.
        window: from and to, on the clock of the pauses.

    Returns:
        None where collections cover less than half of the time.
    """
    found = covered = 0.0
    for first, second in pairwise(pauses):
        between = _span(first)[1], second.start_ns
        if first.after_bytes is None or second.before_bytes is None or between[1] <= between[0]:
            continue
        inside = _within(between, window)
        covered += inside
        # Concurrent collectors free memory between pauses, too: then less is known than was allocated.
        found += max(second.before_bytes - first.after_bytes, 0) * inside / (between[1] - between[0])
    length = window[1] - window[0]
    return found * length / covered if covered > _LEAST_COVERED * length else None


def _span(pause: GcPause) -> tuple[int, int]:
    return pause.start_ns, pause.start_ns + pause.pause_ns


def _within(span: tuple[int, int], window: tuple[int, int]) -> int:
    return max(min(span[1], window[1]) - max(span[0], window[0]), 0)
