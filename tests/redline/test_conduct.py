"""The search on a node, with a simulated queue in the node's place."""

import heapq
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from benchctl.errors import UsageError
from benchctl.load.client import Failure, Waiter, cues, extent
from benchctl.load.executor import Job, TaskResult
from benchctl.redline.commands import plan_redline
from benchctl.redline.search import MOST_STEPS, capacity_per_s, search_redline
from benchctl.results.figures import CurvePoint, TaskSummary
from benchctl.results.model import unanswered
from benchctl.results.plan import Plan, RedlineSpec
from benchctl.results.samples import Columns, Outcome, concatenate, empty_columns
from benchctl.run.plan import RunSpec, plan_ingest, reload_track
from benchctl.track.load import load_track
from builders import CORPUS, ES, OS, make_fork, make_record
from golden import Cases
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
            for due_ns, warmup, _ in cues(
                task, extent(task), client=client, seed=seed, start_ns=0, timer=Instant()
            )
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
    assert summary.redline_text == f"not steady after {MOST_STEPS} steps"
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
    assert summary.redline_text == "no request of the warm-up got a response: too slow"
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


def test_a_sweep_of_what_is_not_swept_is_refused():
    """A measurement of an experiment may be told one; it was passed over."""
    with pytest.raises(UsageError, match=r"--sweep docs=1k,2k: .* is not swept"):
        plan_ingest(options(sweep=("docs=1k,2k",)))


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
