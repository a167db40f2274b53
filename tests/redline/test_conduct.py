"""The search on a node, with a simulated queue in the node's place."""

import heapq
import json
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from benchctl.errors import UsageError
from benchctl.load.client import Failure
from benchctl.load.executor import run_step
from benchctl.load.pace import Waiter, cues
from benchctl.load.task_clients import Job, Stage, TaskResult
from benchctl.load.transport import WireClient
from benchctl.load.workload import WorkContext
from benchctl.redline.conduct import capacity_per_s, parse_clients, plan_redline, search_of, search_redline
from benchctl.redline.search import MOST_STEPS
from benchctl.results.figures import CurvePoint, TaskSummary
from benchctl.results.model import unanswered
from benchctl.results.plan import Plan, RedlineSpec, TargetSpec, VariantSpec
from benchctl.results.samples import Columns, Outcome, concatenate, empty_columns
from benchctl.run.plan import RunSpec, plan_ingest, reload_track
from benchctl.track.load import load_track
from benchctl.track.model import Challenge, Task
from benchctl.track.operations.search import Bulk
from builders import CORPUS, ES, OS, make_fork, make_record
from golden import Cases
from load.stub_server import Received, Reply, StubServer
from plugins import write_track
from redlines import SEARCH, redline_plan

MS = 1_000_000
TRACK, _ = load_track("big5", {})
QUICK = msgspec.structs.replace(SEARCH, warm_up_s=1.0, settle_s=0.5, step_s=4.0)


class Queue:
    """A node of two servers, on a clock of its own: no request waits for a real one."""

    def __init__(
        self,
        service_ms: float = 10.0,
        *,
        fails: Callable[[int], bool] = lambda _number: False,
        pause: float = 0.0,
    ) -> None:
        self.service_ns = round(service_ms * MS)
        self.outcome = Outcome.TIMEOUT
        self._pause = pause
        self.jobs: list[tuple[Job, int]] = []
        self.unsupported: str | None = None
        self._fails = fails

    def measure(self, jobs: Sequence[Job], seed: int) -> list[TaskResult]:
        return [self.measure_one(job, seed) for job in jobs]

    def measure_one(self, job: Job, seed: int) -> TaskResult:
        self.jobs.append((job, seed))
        task = job.task
        if task.rate_per_s is None:
            columns = self._closed_loop(task.clients, task.time_period or 0.0)
        else:
            columns = self._open_loop(job, seed)
        columns["schedule"][:] = job.schedule
        columns["task"][:] = job.position
        columns["weight"][:] = task.per_request
        if not job.measured:
            columns["warmup"][:] = True
        failed = np.asarray([self._fails(number) for number in range(columns["task"].size)], dtype=bool)
        columns["outcome"][failed] = self.outcome
        failures = (Failure(self.outcome, int(failed.sum()), ("too slow",)),) if failed.any() else ()
        return TaskResult(
            samples=[columns],
            unsupported=self.unsupported,
            failures=failures,
            searches_sent=columns["task"].size,
            start_ns=1,
            ended_ns=2,
            driver_cpu_s=0.0,
            wall_s=0.0,
        )

    def _closed_loop(self, clients: int, period_s: float) -> Columns:
        # As many wait as there are beyond the two servers, in turn.
        each_ns = self.service_ns * max(clients, 2) // 2
        ends = np.arange(1, round(period_s * 1e9) // each_ns + 1) * each_ns
        parts = []
        for client in range(clients):
            columns = empty_columns(ends.size)
            columns["client"][:] = client
            columns["end_ns"][:] = ends
            columns["start_ns"][:] = columns["intended_ns"][:] = ends - round((1 - self._pause) * each_ns)
            parts.append(columns)
        return concatenate(parts)

    def _open_loop(self, job: Job, seed: int) -> Columns:
        task = job.task
        arrivals = sorted(
            (due_ns, client, warmup)
            for client in range(task.clients)
            for due_ns, warmup, _ in cues(task, client=client, seed=seed, start_ns=0, timer=Instant())
            if due_ns is not None
        )
        columns = empty_columns(len(arrivals))
        servers = [0, 0]
        for row, (due_ns, client, warmup) in enumerate(arrivals):
            start_ns = max(due_ns, heapq.heappop(servers))
            heapq.heappush(servers, start_ns + self.service_ns)
            columns["client"][row], columns["warmup"][row] = client, warmup
            # What waits, waits in the node: every client sends at once.
            columns["intended_ns"][row] = columns["start_ns"][row] = due_ns
            columns["end_ns"][row] = start_ns + self.service_ns
        return columns


class Instant(Waiter):
    """Waits no time."""

    def __init__(self) -> None:
        super().__init__(threading.Event())

    def wait_until(self, moment_ns: int) -> bool:
        del moment_ns
        return True


class Restless(Queue):
    """Every step finds it faster than the one before: no search comes to its end."""

    def measure_one(self, job: Job, seed: int) -> TaskResult:
        self.service_ns = round(10 * MS * 0.85 ** len(self.jobs))
        return super().measure_one(job, seed)


def search(
    node: Queue, spec: RedlineSpec = QUICK, block: int = 0, **changes: Any
) -> tuple[tuple[CurvePoint, ...], TaskSummary]:
    found = search_redline(redline_plan(spec, **changes), TRACK, block, node.measure)
    (summary,) = found.summaries()
    return found.curve, summary


def test_the_red_line_of_a_queue_lies_where_theory_puts_it():
    # Two servers of 10 ms: 200/s at most. Simulated for long, an M/D/2 queue has a p90 of 50 ms at 174/s.
    rates = []
    for block in range(4):
        _, summary = search(Queue(), block=block)
        assert summary.redline_end == "found"
        rates.append(summary.redline_per_s)
    assert 164 < float(np.exp(np.mean(np.log(rates)))) < 178
    assert max(rates) < 190


def test_a_stricter_objective_has_a_lower_red_line_and_deterministic_arrivals_a_higher_one():
    _, lax = search(Queue())
    _, strict = search(Queue(), msgspec.structs.replace(QUICK, limit_ns=15 * MS))
    _, regular = search(Queue(), msgspec.structs.replace(QUICK, schedule="deterministic"))
    assert strict.redline_per_s < 0.8 * lax.redline_per_s
    assert regular.redline_per_s > lax.redline_per_s
    assert 190 < regular.redline_per_s < 204


def test_every_step_is_a_point_and_its_samples_carry_its_number():
    node = Queue()
    curve, _ = search(node)
    assert [point.step for point in curve] == list(range(1, len(curve) + 1))
    warm_up, *steps = [job for job, _ in node.jobs]
    assert (warm_up.position, warm_up.measured, warm_up.task.rate_per_s) == (0, False, None)
    assert [job.position for job in steps] == [point.step for point in curve]
    assert [job.task.rate_per_s for job in steps] == [point.rate_per_s for point in curve]
    assert all(job.measured and job.schedule == 0 for job in steps)
    assert {(job.task.warmup_time_period, job.task.time_period) for job in steps} == {(0.5, 4.0)}
    assert {point.verdict for point in curve} == {"pass", "fail"}


def test_the_summary_stands_at_the_plans_place_with_the_figures_of_the_last_confirmation():
    curve, summary = search(Queue())
    assert (summary.schedule, summary.task, summary.label, summary.operation) == (0, 0, "range", "range")
    assert summary.redline_per_s == curve[-1].rate_per_s == summary.target_per_s
    assert summary.latency is not None
    assert summary.latency.p90 == curve[-1].p90_ns
    assert summary.samples == curve[-1].samples
    assert summary.redline_text == ""


def test_variants_of_a_block_get_the_same_arrivals_and_forks_get_their_own():
    first, second, other = Queue(), Queue(), Queue()
    search(first)
    search(second)
    search(other, block=1)
    assert [seed for _, seed in first.jobs] == [seed for _, seed in second.jobs]
    assert len({seed for _, seed in first.jobs}) == len(first.jobs)
    assert {seed for _, seed in first.jobs}.isdisjoint(seed for _, seed in other.jobs)


def test_forks_search_on_grids_of_their_own():
    rates = {
        search(Queue(), msgspec.structs.replace(QUICK, schedule="deterministic"), block=block)[
            1
        ].redline_per_s
        for block in range(4)
    }
    assert len(rates) == 4


def test_the_highest_rate_to_be_tried_is_a_lower_bound():
    curve, summary = search(Queue(), msgspec.structs.replace(QUICK, max_per_s=80.0))
    assert summary.redline_end == "max-rate"
    assert summary.redline_per_s == max(point.rate_per_s for point in curve) == 80
    assert summary.redline_text == "the objective is met at 80/s, the highest rate to be tried"


def test_an_objective_below_the_service_time_is_missed_at_any_rate():
    curve, summary = search(Queue(60.0), msgspec.structs.replace(QUICK, step_s=1.0))
    assert (summary.redline_per_s, summary.redline_end) == (None, "missed")
    assert summary.redline_text == f"p90 is 60 ms even at {curve[-1].rate_per_s:.4g}/s"
    assert curve[-1].rate_per_s < 1.03
    assert curve[-1].samples >= 10


def test_a_search_that_does_not_settle_has_the_figures_of_its_last_step():
    quick = msgspec.structs.replace(QUICK, settle_s=0.0, step_s=0.05)
    curve, summary = search(Restless(), quick)
    assert (summary.redline_per_s, summary.redline_end) == (None, "unsettled")
    assert summary.redline_text == f"not settled after {MOST_STEPS} steps"
    assert len(curve) == MOST_STEPS
    assert (summary.samples, summary.target_per_s) == (curve[-1].samples, curve[-1].rate_per_s)


def test_failures_of_all_steps_are_counted_and_fail_theirs():
    # Half a step's requests: a node that rejects what is too much.
    curve, summary = search(Queue(fails=lambda number: number > 700))
    assert any(point.reason.endswith("requests failed") for point in curve)
    assert summary.failures == {"timeout": sum(point.failures for point in curve)}
    assert summary.failure_reasons == ("too slow",)


def test_an_operation_that_the_node_cannot_do_is_not_searched():
    node = Queue()
    node.unsupported = "unknown aggregation"
    curve, summary = search(node)
    assert (curve, summary.unsupported, summary.redline_per_s) == ((), "unknown aggregation", None)
    assert len(node.jobs) == 1


def test_a_node_that_answers_nothing_is_not_searched():
    curve, summary = search(Queue(fails=lambda _number: True))
    assert (curve, summary.redline_per_s) == ((), None)
    assert summary.redline_end == "missed"
    assert summary.redline_text == "no request of the warm-up was answered: too slow"
    assert summary.failures == {"timeout": summary.warmup_samples}
    assert unanswered(make_record(forks=(make_fork("es", 0, summary),))) == ("range of es",)


def test_the_capacity_is_that_of_the_second_half():
    columns = empty_columns(60)
    ends = np.concatenate([np.linspace(0.1, 2.0, 20), np.linspace(2.05, 4.0, 40)]) * 1e9
    columns["end_ns"][:] = ends
    columns["start_ns"][:] = ends - 1e8
    assert capacity_per_s(columns) == pytest.approx(20, rel=0.05)
    columns["outcome"][:] = Outcome.RESET
    assert capacity_per_s(columns) is None


def options(**changes: Any) -> RunSpec:
    base = RunSpec(
        variants=(ES, OS), challenges=(), warmup_challenges=(), restart="challenge", forks=3, seed=1,
        heap_mb=512, track="big5", corpus=CORPUS, segments=1, params={},
    )  # fmt: skip
    return msgspec.structs.replace(base, **changes)


def test_a_plan_of_a_search_names_the_operation_like_a_challenge():
    plan, track = plan_redline(options(), SEARCH)
    (challenge,) = plan.schedules
    assert (challenge.name, challenge.schedule[0].operation) == ("redline-range", "range")
    assert plan.redline == SEARCH
    assert track.digest == plan.track_digest
    assert msgspec.convert(msgspec.to_builtins(plan), Plan) == plan


def test_a_search_that_makes_no_sense_is_refused_before_anything_starts(cases: Cases):
    cases(
        "search",
        lambda changes: plan_redline(options(), msgspec.structs.replace(SEARCH, **json.loads(changes))),
    )


def test_a_misspelt_operation_gets_a_hint():
    with pytest.raises(UsageError, match="did you mean 'range'"):
        plan_redline(options(), msgspec.structs.replace(SEARCH, operation="rnage"))


def test_only_a_search_has_a_red_line(tmp_path: Path):
    bulk = '{"name": "range", "operation-type": "bulk", "bulk-size": 7}'
    text = f'{{"operations": [{bulk}], "indices": [{{"name": "i"}}]}}'
    (tmp_path / "track.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="'range' is a bulk"):
        plan_redline(options(track=str(tmp_path)), SEARCH)


@pytest.mark.parametrize("plan_it", [lambda asked: plan_redline(asked, SEARCH), plan_ingest])
def test_a_sweep_of_what_is_not_swept_is_refused(plan_it: Callable[[RunSpec], object]):
    """A measurement of an experiment may be told one; it was passed over."""
    with pytest.raises(UsageError, match=r"--sweep docs=1k,2k: .* is not swept"):
        plan_it(options(sweep=("docs=1k,2k",)))


def test_a_range_of_clients_does_not_begin_at_0():
    search = search_of(
        ["range"], None, (90.0, 10**7), clients=parse_clients("0..8"), schedule="poisson", warm_up_s=1.0,
        settle_s=1.0, step_s=1.0, tolerance=0.1, max_rate=None, max_factor=None,
    )  # fmt: skip
    with pytest.raises(UsageError, match="a range begins with at least 1"):
        plan_redline(options(), search)


def test_parameters_reach_the_track_of_a_search_and_unused_ones_are_refused(tmp_path: Path):
    operation = '{"name": "range", "body": {"size": {{ hits | default(1) }}}}'
    text = f'{{"operations": [{operation}], "indices": [{{"name": "i"}}]}}'
    (tmp_path / "track.json").write_text(text, encoding="utf-8")
    plan, track = plan_redline(options(track=str(tmp_path), params={"hits": 7}), SEARCH)
    assert track.operations["range"].body == {"size": 7}  # type: ignore[union-attr]
    assert reload_track(plan).digest == track.digest
    with pytest.raises(UsageError, match="--param hist"):
        plan_redline(options(track=str(tmp_path), params={"hist": 7}), SEARCH)


def test_an_operation_of_a_plug_in_has_no_red_line(tmp_path: Path):
    folder = write_track(tmp_path / "books")
    search = msgspec.structs.replace(SEARCH, operation="authors")
    with pytest.raises(UsageError, match="needs param source 'author-source' of the track's Python plug-in"):
        plan_redline(options(track=str(folder)), search)


# A factor of all rates of a challenge.


def mixed(*tasks: Task, **changes: Any) -> Challenge:
    return Challenge(name="mixed", schedule=tasks, **changes)


SEARCHING = Task("range", clients=4, target_throughput=50.0, schedule="deterministic", iterations=7, group=0)
SENDING = Task(
    "bulk", name="send", clients=2, target_throughput=20_000.0, per_request=1000.0, group=0, completes=True
)
FACTOR = msgspec.structs.replace(QUICK, operation="mixed", by="factor")


def search_factor(
    node: Queue, *tasks: Task, spec: RedlineSpec = FACTOR, block: int = 0
) -> tuple[tuple[CurvePoint, ...], tuple[TaskSummary, ...]]:
    plan = redline_plan(
        spec, schedules=(mixed(*tasks, operations={"bulk": Bulk(name="bulk", bulk_size=1000)}),)
    )
    found = search_redline(plan, TRACK, block, node.measure)
    return found.curve, found.summaries()


def test_a_factor_is_what_the_busiest_task_bears():
    # Each task has a queue of its own here, of two servers of 10 ms: 200 requests a second, and 50 and 20
    # are asked for.
    factors = []
    for block in range(3):
        curve, (searching, sending) = search_factor(Queue(), SEARCHING, SENDING, block=block)
        assert (searching.redline_end, searching.redline_unit) == ("found", "x")
        factors.append(searching.redline_per_s)
        assert searching.target_per_s == pytest.approx(50 * searching.redline_per_s)
        assert sending.target_per_s == pytest.approx(20 * searching.redline_per_s)
        assert (sending.redline_end, sending.reported, searching.reported) == (None, False, True)
        assert (searching.task, sending.task, sending.label, sending.unit) == (0, 1, "send", "docs")
        assert curve[-1].rate_per_s == searching.redline_per_s
        assert curve[-1].task == "range"
    assert 3.8 < float(np.exp(np.mean(np.log(factors)))) < 4.1
    assert len(set(factors)) == 3


def test_every_step_is_a_pass_of_its_own_length_at_one_factor():
    node = Queue()
    late = Task("asc_sort_timestamp", target_interval=0.5)
    curve, _ = search_factor(node, SEARCHING, SENDING, late)
    for point in curve:
        jobs = {job.schedule: job for job, _ in node.jobs if job.measured and job.position == point.step}
        rates = [jobs[place].task.rate_per_s for place in range(3)]
        assert rates == pytest.approx([factor * point.rate_per_s for factor in (50, 20, 2)])
        # As long as it takes to send twenty of the slowest task of an element.
        assert {jobs[0].task.time_period, jobs[1].task.time_period} == {4.0}
        assert jobs[2].task.time_period == pytest.approx(max(4.0, 20 / rates[2]))
        assert all(
            (job.task.iterations, job.task.completes, job.task.warmup_time_period) == (None, False, 0.5)
            for job in jobs.values()
        )
        assert isinstance(jobs[1].operation, Bulk)
        assert jobs[1].operation.looped


def test_tasks_without_a_target_run_once_before_or_beside():
    node = Queue()
    before = Task("range", name="before", iterations=30)
    beside = Task("asc_sort_timestamp", name="beside", clients=2, iterations=5, group=0)
    curve, summaries = search_factor(node, before, SEARCHING, beside)
    first, *others = node.jobs
    assert (first[0].task, first[0].schedule, first[0].measured) == (before, -1, False)
    assert [job.task.label for job, _ in others].count("before") == 0
    closed = [job.task for job, _ in others if job.task.label == "beside" and job.measured]
    assert len(closed) == len(curve)
    assert {(task.clients, task.time_period, task.rate_per_s) for task in closed} == {(2, 4.0, None)}
    assert [summary.label for summary in summaries] == ["range"]


def test_the_objective_is_for_the_tasks_that_are_named_and_the_others_keep_their_rate():
    # Of 60 ms each, no search meets 50 ms, and the bulk requests are beyond it as well.
    spec = msgspec.structs.replace(FACTOR, tasks=("range",), step_s=1.0)
    _, (missed, _) = search_factor(Queue(60.0), SEARCHING, SENDING, spec=spec)
    assert missed.redline_end == "missed"
    assert missed.redline_text.startswith("range: p90 is 60 ms even at 0.0")
    named = msgspec.structs.replace(FACTOR, tasks=("send",), limit_ns=80 * MS)
    curve, (searching, sending) = search_factor(Queue(60.0), SEARCHING, SENDING, spec=named)
    # 33 a second: two thirds of the searches, which only have to keep up.
    assert sending.redline_end == "found"
    assert 0.6 < sending.redline_per_s < 0.72
    assert searching.redline_end is None
    assert any(point.reason.startswith("range: the backlog grew by") for point in curve)


def test_a_rejected_request_of_any_task_fails_the_step():
    def rejected(node: Queue) -> Queue:
        node.outcome = Outcome.REJECTED
        return node

    curve, (searching, _) = search_factor(
        rejected(Queue(fails=lambda number: number > 400)), SEARCHING, SENDING
    )
    assert {point.reason.split(" requests ")[-1] for point in curve if point.failures} == {
        f"failed, {point.failures} of them rejected" for point in curve if point.failures
    }
    assert searching.redline_per_s * 50 * 4.5 <= 401


def test_a_task_that_is_due_too_seldom_for_a_step_fails_none():
    rare = msgspec.structs.replace(SENDING, target_throughput=20.0)
    named = msgspec.structs.replace(FACTOR, tasks=("range",), max_per_s=1.2)
    curve, (searching, sending) = search_factor(Queue(), SEARCHING, rare, spec=named)
    assert (searching.redline_end, sending.samples) == ("max-rate", 0)
    assert {point.task for point in curve} == {"range"}


def test_a_challenge_that_cannot_be_started_says_which_task():
    node = Queue()
    node.unsupported = "no bulk here"
    curve, (summary,) = search_factor(node, SEARCHING, SENDING)
    assert (curve, summary.task, summary.unsupported) == ((), 0, "no bulk here")


def test_a_task_that_the_node_cannot_do_is_no_part_of_a_mix_even_where_its_latency_does_not_count():
    class NoBulk(Queue):
        def measure_one(self, job: Job, seed: int) -> TaskResult:
            found = super().measure_one(job, seed)
            return replace(found, unsupported="no bulk here") if isinstance(job.operation, Bulk) else found

    named = msgspec.structs.replace(FACTOR, tasks=("range",))
    curve, (summary,) = search_factor(NoBulk(), SEARCHING, SENDING, spec=named)
    assert (curve, summary.label, summary.unsupported) == ((), "range", "send: no bulk here")


def challenge_file(folder: Path, *tasks: str) -> str:
    path = folder / "mixed.json"
    path.write_text(f'{{"name": "mixed", "schedule": [{", ".join(tasks)}]}}', encoding="utf-8")
    return str(path)


THROTTLED = '{"operation": "range", "target-throughput": 20}'


def test_a_plan_of_a_factor_has_the_challenge_as_it_is_written(tmp_path: Path):
    path = challenge_file(tmp_path, '{"operation": "range", "name": "first"}', THROTTLED)
    plan, track = plan_redline(options(), msgspec.structs.replace(FACTOR, operation=path))
    (challenge,) = plan.schedules
    assert challenge.name == "redline-mixed"
    assert [task.rate_per_s for task in challenge.schedule] == [None, 20.0]
    assert plan.redline == FACTOR
    assert plan.sources == {"mixed": path}
    assert track.digest == plan.track_digest
    assert msgspec.convert(msgspec.to_builtins(plan), Plan) == plan


@pytest.mark.parametrize(
    ("tasks", "changes", "message"),
    [
        (['{"operation": "range"}'], {}, "no task of challenge 'mixed' has a target-throughput"),
        ([THROTTLED], {"tasks": ("rnage",)}, "--task rnage: challenge 'mixed' has no task of that name"),
        ([THROTTLED], {"max_per_s": 0.09}, "--max-factor must be from 0.1 to"),
        (
            [THROTTLED, '{"operation": "asc_sort_timestamp"}'],
            {},
            "task 'asc_sort_timestamp' of challenge 'mixed' has no target, and comes after tasks that do",
        ),
    ],
)
def test_a_challenge_without_a_red_line_is_refused(
    tmp_path: Path, tasks: list[str], changes: dict[str, Any], message: str
):
    path = challenge_file(tmp_path, *tasks)
    with pytest.raises(UsageError, match=message):
        plan_redline(options(), msgspec.structs.replace(FACTOR, operation=path, **changes))


# Numbers of clients.


def test_nothing_is_written_to_a_cluster_that_runs_already(tmp_path: Path):
    prod = VariantSpec("prod", "opensearch", "2.11.0", target=TargetSpec(("http://a:1",), fill=True))
    there = options(variants=(ES, prod))
    sending = (
        '{"operation": {"operation-type": "bulk", "name": "send", "bulk-size": 5}, "target-throughput": 9}'
    )
    path = challenge_file(tmp_path, THROTTLED, sending)
    with pytest.raises(UsageError, match="would change the cluster prod: operation 'send'"):
        plan_redline(there, msgspec.structs.replace(FACTOR, operation=path))
    plan, _ = plan_redline(there, SEARCH)
    assert plan.variants == (ES, prod)


CLIENTS = msgspec.structs.replace(QUICK, by="clients", clients=64, least_clients=1)


def test_the_most_clients_of_a_closed_loop_and_what_they_get_done():
    # Two servers of 10 ms: n clients wait 5n ms each, so ten of them meet 50 ms.
    curve, summary = search(Queue(), CLIENTS)
    assert (summary.redline_per_s, summary.redline_end, summary.redline_unit) == (10.0, "found", "clients")
    assert summary.throughput_per_s == pytest.approx(200.0, rel=0.02)
    assert curve[-1].achieved_per_s == pytest.approx(200.0, rel=0.02)
    assert {point.growth for point in curve} == {0.0}
    assert {point.rate_per_s for point in curve} <= set(range(1, 65))
    again = [search(Queue(), CLIENTS, block=block)[1].redline_per_s for block in range(3)]
    assert again == [10.0, 10.0, 10.0]


def test_the_most_clients_to_be_tried_are_a_lower_bound_and_the_fewest_can_be_too_many():
    _, bound = search(Queue(), msgspec.structs.replace(CLIENTS, clients=7))
    assert (bound.redline_per_s, bound.redline_end) == (7.0, "max-rate")
    assert bound.redline_text == "the objective is met at 7 clients, the most clients to be tried"
    _, missed = search(Queue(), msgspec.structs.replace(CLIENTS, least_clients=12))
    assert (missed.redline_per_s, missed.redline_text) == (None, "p90 is 60 ms even at 12 clients")


def test_clients_that_do_not_send_at_once_make_no_red_line():
    # The driver lets a tenth of its clients' time pass: fewer are at work than there are.
    _, summary = search(Queue(pause=0.1), CLIENTS)
    assert (summary.redline_per_s, summary.redline_end) == (None, "driver-limited")


@pytest.mark.parametrize("least", [0, 64, 65])
def test_a_range_of_clients_goes_up(least: int):
    with pytest.raises(UsageError, match="--clients: a range"):
        plan_redline(options(), msgspec.structs.replace(CLIENTS, least_clients=least))


# With the load generator itself, against a server that rejects what is too much at once.


class Bounded(StubServer):
    """Answers after a while, and rejects a request while so many others are under way."""

    def __init__(self, most: int, delay_s: float) -> None:
        super().__init__(default=Reply(delay_s=delay_s))
        self._most = most
        self._delay_s = delay_s
        self._under_way = 0

    def _reply(self, request: Received) -> Reply:
        if request.is_search:
            answer = super()._reply(request)
        elif request.target.endswith("/_bulk"):
            answer = Reply(
                body=b'{"took":1,"errors":false,"items":[{"index":{"status":201}}]}', delay_s=self._delay_s
            )
        else:
            return super()._reply(request)
        # Called with the lock held.
        self._under_way += 1
        return answer if self._under_way <= self._most else Reply(status=429, body=b'{"error":"full"}')

    def _send(self, connection: socket.socket, reply: Reply) -> None:
        if reply.status == HTTPStatus.TOO_MANY_REQUESTS or reply.delay_s:
            with self._lock:
                self._under_way -= 1
        super()._send(connection, reply)


def measured_on(server: StubServer) -> Callable[[Sequence[Job], int], Sequence[TaskResult]]:
    context = WorkContext("i", documents=lambda: iter([b'{"a":1}\n' * 25]), document_count=25)

    def measure(jobs: Sequence[Job], seed: int) -> Sequence[TaskResult]:
        stage = Stage(lambda _client: WireClient(server.url), replace(context, seed=seed), 0, 0)
        return run_step(jobs, stage, stop=threading.Event())

    return measure


SHORT = msgspec.structs.replace(CLIENTS, warm_up_s=0.15, settle_s=0.0, step_s=0.3, limit_ns=10_000 * MS)


def test_the_most_clients_are_those_of_which_none_is_rejected():
    with Bounded(3, 0.1) as server:
        found = search_redline(
            redline_plan(msgspec.structs.replace(SHORT, clients=9)), TRACK, 0, measured_on(server)
        )
    (summary,) = found.summaries()
    assert (summary.redline_per_s, summary.redline_end) == (3.0, "found")
    assert {point.verdict for point in found.curve if point.rate_per_s <= 3} == {"pass"}
    assert all(" of them rejected" in point.reason for point in found.curve if point.rate_per_s > 3)
    assert summary.failures["rejected"] == sum(point.failures for point in found.curve)


def test_documents_of_a_challenge_begin_again_at_the_end_of_the_corpus():
    send = Task("bulk", name="send", target_throughput=200.0, per_request=10.0, clients=6)
    challenge = Challenge("mixed", (send,), operations={"bulk": Bulk(name="bulk", bulk_size=10)})
    spec = msgspec.structs.replace(SHORT, by="factor", tolerance=0.3, max_per_s=10.0)
    with Bounded(2, 0.02) as server:
        found = search_redline(redline_plan(spec, schedules=(challenge,)), TRACK, 0, measured_on(server))
        sent = [request.body.count(b'{"a":1}') for request in server.received if request.body]
    assert any(" of them rejected" in point.reason for point in found.curve)
    assert set(sent) == {10, 5}
    assert sum(sent) > 25 * 10
