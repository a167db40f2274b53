"""A task of a fork that carried `jit` evidence: its requests over time, and what compilers did meanwhile."""

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.results.evidence import C2_LEVEL
from benchctl.results.samples import Columns
from benchctl.results.windows import TaskWindow
from benchctl.stats.arrays import Floats, Integers
from benchctl.stats.task_shape import successes

_MOST_POINTS = 300
_CELLS = 60
_NS_PER_S = 1e9


class JitCourse(msgspec.Struct, frozen=True):
    """What is drawn of one fork's task; seconds count from the beginning of its measured part.

    Attributes:
        label: what tables call the variant.
        block: which fork.
        seconds: in the middle of each point's requests, shape (n,).
        service_ns: the median of each point's service times, shape (n,).
        requests: of a point, at most.
        edges: of the cells in which events are counted, seconds, shape (m + 1,).
        c1, c2, deoptimised: events of each cell, shape (m,).
    """

    label: str
    block: int
    seconds: Floats
    service_ns: Floats
    requests: int
    edges: Floats
    c1: Integers
    c2: Integers
    deoptimised: Integers


def jit_course(label: str, block: int, requests: Columns, events: Columns, window: TaskWindow) -> JitCourse:
    """Put requests and events on one clock.

    Args:
        label: what tables call the variant.
        block: which fork.
        requests: samples of the task, warm-up included, with `start_ns`, `end_ns` and what tells successes.
        events: columns of `results.evidence.JIT_DTYPES` on the clock of the samples.
        window: of the task.
    """
    ok = successes(requests)
    order = np.argsort(ok["start_ns"], kind="stable")
    starts = (ok["start_ns"][order] - window.measured_ns) / _NS_PER_S
    service_ns = (ok["end_ns"] - ok["start_ns"])[order].astype(np.float64)
    each = max(1, -(-starts.size // _MOST_POINTS))
    firsts = range(0, starts.size, each)
    edges = (
        np.linspace(window.begin_ns, max(window.end_ns, window.begin_ns + 1), _CELLS + 1) - window.measured_ns
    ) / _NS_PER_S
    what, level = events["what"], events["level"]
    at_s = (events["t_ns"] - window.measured_ns) / _NS_PER_S

    def counted(chosen: npt.NDArray[np.bool_]) -> Integers:
        return np.histogram(at_s[chosen], edges)[0].astype(np.int64)

    return JitCourse(
        label=label,
        block=block,
        seconds=np.array([np.median(starts[first : first + each]) for first in firsts]),
        service_ns=np.array([np.median(service_ns[first : first + each]) for first in firsts]),
        requests=each,
        edges=edges,
        c1=counted((what == "compiled") & (level >= 1) & (level < C2_LEVEL)),
        c2=counted((what == "compiled") & (level == C2_LEVEL)),
        deoptimised=counted(what == "deoptimised"),
    )
