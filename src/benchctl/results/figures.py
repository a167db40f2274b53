"""Values of one fork by task: those that forks are compared by, and the driver's own."""

from typing import Literal

import msgspec

from benchctl.results.answers import AnswerSample

DOCUMENTS = "docs"
"""The unit of what indexes documents."""
OPERATIONS = "ops"
"""The unit of microbenchmarks."""
_COSTED_DOCUMENTS = 1_000

StepVerdict = Literal["pass", "fail", "driver-limited"]
RedlineEnd = Literal["found", "max-rate", "driver-limited", "missed", "unsettled"]


class Quantiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Quantiles of one fork's samples by Harrell and Davis, in nanoseconds.

    Failed requests rank above all others: a quantile that so many failed for that it has no upper bound is
    None.
    """

    p50: float | None
    p90: float | None
    p99: float | None
    # Standard errors of their natural logarithms, from order statistics; None if too few requests lie beyond.
    error_p50: float | None = None
    error_p90: float | None = None
    error_p99: float | None = None

    def at(self, probability: float) -> float | None:
        """Return one of the three, in nanoseconds; None for any other probability."""
        return {0.5: self.p50, 0.9: self.p90, 0.99: self.p99}.get(probability)

    def error_at(self, probability: float) -> float | None:
        """Return the standard error of its natural logarithm."""
        return {0.5: self.error_p50, 0.9: self.error_p90, 0.99: self.error_p99}.get(probability)


class DriverFigures(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The driver's part in one task of one fork, which tells the cluster's figures from its own."""

    requests: int  # measured operations that were sent, the first of turns included
    offered_per_s: float | None = None  # requests a second that the driver sent; None without any
    # The rate of the arrivals themselves, which in a short Poisson schedule is not quite the target; None in
    # a closed loop.
    due_per_s: float | None = None
    # The rate that these and the cluster's answers allowed: what it lacks of due_per_s is the cluster's, and
    # what offered_per_s lacks of it the driver's; None in a closed loop.
    possible_per_s: float | None = None
    # Quantiles are rounded to a microsecond. In a closed loop, where a request is due when the one before has
    # ended, they are of the time between the two.
    # How late it sent requests that were due while their client was free, median, ns.
    lag_p50_ns: int | None = None
    lag_p99_ns: int | None = None  # how late it sent them, p99, ns
    lag_max_ns: int | None = None  # how late it sent them at most, ns
    # Share of its clients' measured time between an answer and the next request, 0 to 1; None in an open
    # loop, or without any.
    think_share: float | None = None
    clients: int = 1  # clients that sent requests, warm-up included
    # CPU time over time, for each of its processes; one of Python threads cannot do more than about 1. In
    # parallel tasks that of all of them. None where no time passed.
    cpu_share: float | None = None
    # End of the task before, or node ready, to the first request, seconds; None where unknown.
    gap_s: float | None = None
    workers: int = 1  # processes that its clients worked in
    # The measured time, from when the first request was sent (or due) to the end of the last, seconds; None
    # without any.
    window_s: float | None = None
    # How much of the measured time one of its processes did not run: stopped, or not scheduled.
    stopped_s: float = 0.0
    # For how long the host was suspended during the task; no other figure has that in it.
    suspended_s: float = 0.0


class HostFigures(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Share of one host, of several, in one task of one fork."""

    name: str
    clients: int
    clock_offset_ns: int
    clock_error_ns: int  # by how much that may be wrong at any time of the step
    # How long after it was due its first request was sent, on its own clock; None where that is not known.
    start_late_ns: int | None
    driver: DriverFigures  # as if it had been the only one, with its share of the rate


class TaskSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A fork's figures for one task. Everything but the counts is about successful measured requests."""

    schedule: int  # position of the challenge in the fork, from 0
    task: int  # position of the task in the challenge, from 0
    label: str  # name of the task
    operation: str  # name of the operation
    samples: int = 0  # successful measured operations
    warmup_samples: int = 0  # unmeasured operations, successful or not
    failures: dict[str, int] = {}  # measured operations that failed, by outcome name
    # The first few distinct reasons, in the words of the engine or the client.
    failure_reasons: tuple[str, ...] = ()
    # Units a second in the measured window, as observed; None without samples.
    throughput_per_s: float | None = None
    units_per_request: float | None = None  # units of a measured request; None without samples
    # Offered requests a second, whose throughput gets no verdict; None in a closed loop.
    target_per_s: float | None = None
    service_time: Quantiles | None = None  # service time: send to last byte; None without samples
    latency: Quantiles | None = None  # latency: intended start to last byte; None in a closed loop
    took: Quantiles | None = None  # the engine's own time; None where it tells none
    # Send until the driver had read the answer; None where that is not known.
    processing_time: Quantiles | None = None
    # Service time of the single requests of operations that have several; None for others.
    pages: Quantiles | None = None
    # Service time of the first request of a task, warm-up included; None where it failed.
    first_ns: float | None = None
    # Service time of the first request of a task that began after its very first had ended; None where either
    # failed.
    second_ns: float | None = None
    mean_ns: float | None = None  # mean service time
    # ln(geometric mean of the last third / of the first) of service time, of the measured requests, or of the
    # last third of all, warm-up included, if these are more; None under 6 samples.
    drift: float | None = None
    hits: int | None = None  # total hits where all answers agree; None when unknown
    hits_exact: bool = False  # the engine counted them all
    # Measured requests that count as successes although their status is an error (ignore).
    ignored_errors: int = 0
    unsupported: str | None = None  # why the node cannot do it; None when it can
    cancelled: int = 0  # operations that the driver itself ended, measured or not; in no other count
    retries: int = 0  # measured requests that were sent again because the node had rejected them
    unit: str = "queries"  # what throughput counts: docs for bulk bodies, queries for searches, and so on
    reported: bool = True  # tables show it; administrative operations only prepare the others
    # Highest rate that met the objective, of a red-line search; None when there was none. The other figures
    # are those of the last step at that rate.
    redline_per_s: float | None = None
    # Why the search ended; `found` is the only end whose rate is more than a lower bound.
    redline_end: RedlineEnd | None = None
    redline_text: str = ""  # how the search ended, in words; empty when found
    driver: DriverFigures | None = None  # the driver's own part; None of microbenchmarks
    # Name of a metered figure -> its value; what is not known of a task is left out. Of several nodes it is
    # the sum.
    meters: dict[str, float] = {}
    # The driver's part by host, where its clients worked on hosts that have names.
    hosts: tuple[HostFigures, ...] = ()
    # The sum over the searches of a batch or composite of the engine's own time; None for others.
    took_sum: Quantiles | None = None
    took_parts: tuple[Quantiles, ...] = ()  # the engine's own time of each search of a batch, in order
    # Requests by which its node had got fewer of this operation, before the first measured one, than the
    # operation is known to need (settles-after).
    lacking_warmup: int = 0
    # Fewest hits of an answer, where all requests are the same and answers differ in hits, or in whether they
    # counted them all; None elsewhere.
    hits_least: int | None = None
    hits_most: int | None = None  # most hits of an answer, where hits_least is known
    # What the same requests returned; None where no answers can be compared.
    answers: AnswerSample | None = None
    # Measured operations, failed ones included, far beyond the typical one and the client's one before: at
    # least ten times the median and six robust SDs of the logarithms.
    stalled: int = 0
    stalled_s: float = 0.0  # what these took together, seconds
    stalled_share: float = 0.0  # what these took of the time of all measured operations, 0 to 1

    @property
    def redline_is_bound(self) -> bool:
        """Return whether its red-line is only known to be at least its rate."""
        return self.redline_per_s is not None and self.redline_end != "found"

    @property
    def served_per_s(self) -> float | None:
        """Return the throughput that variants are compared by, without the pauses of a lone client.

        Those of several overlap with the requests of the others, so that theirs is the one observed.
        """
        driver = self.driver
        if self.throughput_per_s is None or driver is None or driver.clients > 1:
            return self.throughput_per_s
        return self.throughput_per_s / (1 - (driver.think_share or 0.0))

    @property
    def unanswered(self) -> int:
        """Measured operations that failed for good: a rejected one that was sent again is none."""
        return max(0, sum(self.failures.values()) - self.retries)

    @property
    def costed(self) -> float | None:
        """Return the operations that costs are of: 1, or 1,000 documents' worth; None if unknown."""
        if self.unit != DOCUMENTS:
            return 1.0
        window_s = None if self.driver is None else self.driver.window_s
        if not self.throughput_per_s or not window_s:
            return None
        return _COSTED_DOCUMENTS * self.samples / (self.throughput_per_s * window_s)


class CurvePoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A step of a red-line search: what a rate came to."""

    step: int  # its number, from 1; its samples carry it as their task
    rung: int  # which rate of the grid; the same in all forks but for each block's own shift of the grid
    phase: Literal["search", "retry", "confirm"]  # what the step was for
    rate_per_s: float  # offered
    achieved_per_s: float | None  # completed of it; None without samples
    samples: int
    failures: int
    # `p50_ns`, `p90_ns`, `p99_ns`: of latency, from when requests were due; None without samples.
    p50_ns: float | None
    p90_ns: float | None
    p99_ns: float | None
    objective_ns: float | None  # the percentile that the objective bounds
    undelayed_ns: float | None  # the same percentile without the time that the driver itself lost
    # Seconds by which latency grew a second; 0.05 is a rate 5% above what is served.
    growth: float
    # Whether it met the objective; `driver-limited` when only the driver's lateness kept it off.
    verdict: StepVerdict
    reason: str = ""  # why it did not; empty for a pass


_WHOLE = 1000


def rate_text(rate_per_s: float) -> str:
    """Return a rate for readers: `16.87/s`, `20000/s`."""
    return f"{rate_per_s:{'.0f' if rate_per_s >= _WHOLE else '.4g'}}/s"


class PacedLag(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The driver's delays on an idle machine, in an open loop."""

    rate_per_s: float  # requests a second
    # `lag_p50_ns`, `lag_p99_ns`, `lag_max_ns`: see `DriverFigures`.
    lag_p50_ns: int
    lag_p99_ns: int
    lag_max_ns: int


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The driver's costs on this machine, against a server that does nothing: no figure can be better."""

    # `error_p50_ns`, `error_p99_ns`: service time as measured beyond the server's own, by one client
    # without pauses, nanoseconds; the kernel's part of a loopback connection included.
    error_p50_ns: int
    error_p99_ns: int
    cpu_ns_per_request: int  # CPU time of the driver, nanoseconds
    one_client_per_s: float  # the most requests a second by one client
    clients: int
    clients_per_s: float  # the most requests a second by so many; the server shares the machine with them
    paced: tuple[PacedLag, ...]
    seconds: float
    # The same on each host that load comes from, by name; this is then the costliest of them.
    hosts: "dict[str, Calibration]" = {}
