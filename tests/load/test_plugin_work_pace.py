"""Schedulers of plug-ins: when they say, a request is due, and they are told of every one."""

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchctl.errors import BenchctlError
from benchctl.load.client import Extent, Waiter
from benchctl.load.executor import Job, Stage, TaskResult, run_step
from benchctl.load.plugin_work import PluginPace
from benchctl.load.transport import open_client
from benchctl.load.work import WorkContext
from benchctl.plugin.session import PluginError, PluginUse
from benchctl.stats.summary import driver_figures
from benchctl.track.load import load_track
from benchctl.track.model import Task
from benchctl.track.operations import Operation
from benchctl.track.operations.catalogue import PluginOperation
from benchctl.track.operations.search import Search
from load.stub_server import Serve, StubServer
from plugins import code_in

SEARCH = Search(name="x")


def play(
    server: StubServer, folder: Path, plugin: str, *, ask: Operation = SEARCH, **task: Any
) -> TaskResult:
    code = code_in(folder, {"track.py": plugin})
    track, _ = load_track(str(folder), {})
    context = WorkContext("books", plugin=PluginUse(folder, code.digest, track))
    stage = Stage(partial(open_client, server.url), context, origin_ns=0, boot=0)
    job = Job(Task("x", scheduler="s", **task), ask, 0, 0)
    return run_step([job], stage, stop=threading.Event())[0]


def offsets_ms(result: TaskResult) -> list[float]:
    """When requests were due, from the task's start."""
    return [round((due - result.start_ns) / 1e6, 3) for due in result.columns["intended_ns"].tolist()]


FUNCTION = """
    def s(current):
        return current + 0.004

    def register(registry):
        registry.register_scheduler("s", s)
"""


def test_a_function_spaces_the_requests_of_a_client(serve: Serve, tmp_path: Path):
    result = play(serve(), tmp_path / "books", FUNCTION, iterations=3, warmup_iterations=2)
    assert offsets_ms(result) == [4, 8, 12, 16, 20]
    assert result.columns["warmup"].tolist() == [True, True, False, False, False]
    assert (result.columns["start_ns"] >= result.columns["intended_ns"]).all()


def test_what_the_scheduler_waits_for_is_not_the_drivers_lag(serve: Serve, tmp_path: Path):
    task = Task("x", iterations=10, scheduler="s")
    result = play(serve(), tmp_path / "books", FUNCTION, iterations=10)
    figures = driver_figures(result.samples, task, cpu_s=0.0, wall_s=1.0)
    assert figures.think_share is None
    assert figures.lag_p50_ns is not None
    assert figures.lag_p50_ns < 4_000_000
    assert task.throttled


def test_a_period_ends_before_the_first_request_that_is_due_after_it(serve: Serve, tmp_path: Path):
    result = play(serve(), tmp_path / "books", FUNCTION, time_period=0.017, warmup_time_period=0.01)
    assert offsets_ms(result) == [4, 8, 12, 16, 20, 24]
    assert result.columns["warmup"].tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize(
    ("constructor", "step"),
    [
        ("self, params", "params['millis'] * params['clients']"),
        ("self, task", "task.params['millis'] * task.clients"),
        ("self, task, target_throughput", "1000 / target_throughput"),
    ],
)
def test_schedulers_of_all_ages_get_what_they_ask_for(
    serve: Serve, tmp_path: Path, constructor: str, step: str
):
    plugin = f"""
        class Spaced:
            def __init__({constructor}):
                self.step = {step}

            def next(self, current):
                return current + self.step / 1000

        def register(registry):
            registry.register_scheduler("s", Spaced)
    """
    params = {"scheduler_params": {"millis": 3}, "target_throughput": 2000 / 6}
    result = play(serve(), tmp_path / "books", plugin, iterations=2, clients=2, **params)
    assert offsets_ms(result) == [6, 12, 6, 12]


def test_a_scheduler_is_told_of_every_request_and_looks_at_the_source(serve: Serve, tmp_path: Path):
    told = tmp_path / "told"
    plugin = f"""
        from pathlib import Path

        class Told:
            def __init__(self, task):
                self.parameter_source = None
                self.lines = []

            def before_request(self, now):
                self.lines.append("before")

            def after_request(self, now, weight, unit, request_meta_data):
                self.lines.append(f"after {{weight}} {{unit}} {{request_meta_data}}")

            def next(self, current):
                self.lines.append(f"next {{current}}")
                Path({str(told)!r}).write_text("; ".join(self.lines))
                return 0

        def register(registry):
            registry.register_scheduler("s", Told)
    """
    result = play(serve(), tmp_path / "books", plugin, iterations=2)
    after = "after 1 queries {'success': True}"
    assert (
        told.read_text(encoding="utf-8") == f"next 0.0; before; {after}; next 0.0; before; {after}; next 0.0"
    )
    # What is due at once is due when it is sent, as in a closed loop.
    assert (result.columns["intended_ns"] == result.columns["start_ns"]).all()


def test_a_scheduler_sees_its_source_as_it_is_before_the_request_that_it_spaces(serve: Serve, tmp_path: Path):
    plugin = """
        class Source:
            def __init__(self, track, params, **kwargs):
                self.made = 0

            def partition(self, partition_index, total_partitions):
                return self

            def params(self):
                self.made += 1
                return {"body": {"made": self.made}}

        class Counting:
            def __init__(self, task):
                self.parameter_source = None

            def next(self, current):
                return current + 0.001 * (1 + 4 * self.parameter_source.made)

        def register(registry):
            registry.register_param_source("p", Source)
            registry.register_scheduler("s", Counting)
    """
    ask = PluginOperation(name="x", type="search", param_source="p")
    result = play(serve(), tmp_path / "books", plugin, ask=ask, iterations=3)
    assert offsets_ms(result) == [1, 6, 15]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("None", "scheduler 's' gave None, not a number"),
        ("float('inf')", "scheduler 's' gave inf, not a number of seconds"),
        ("10 ** 400", "not a number of seconds"),
        ("next(iter(()))", "track.py:3: scheduler 's' failed: StopIteration"),
        ("1 / 0", "track.py:3: scheduler 's' failed: Zero"),
    ],
)
def test_a_scheduler_that_fails_is_one_line(serve: Serve, tmp_path: Path, returned: str, said: str):
    plugin = FUNCTION.replace("current + 0.004", returned)
    with pytest.raises(PluginError) as caught:
        play(serve(), tmp_path / "books", plugin, iterations=1)
    assert said in caught.value.message


def test_a_scheduler_that_is_not_registered_is_named(serve: Serve, tmp_path: Path):
    with pytest.raises(PluginError, match="registers no scheduler 's'"):
        play(serve(), tmp_path / "books", FUNCTION.replace('"s"', '"t"'), iterations=1)


def test_without_consent_there_is_no_scheduler(serve: Serve):
    stage = Stage(partial(open_client, serve().url), WorkContext("books"), origin_ns=0, boot=0)
    with pytest.raises(BenchctlError, match="scheduler 's' needs the track's Python plug-in"):
        run_step([Job(Task("x", scheduler="s"), SEARCH, 0, 0)], stage, stop=threading.Event())


class Clockwork:
    """A timer that waits for nothing."""

    def __init__(self) -> None:
        self.time_ns = 0

    def now_ns(self) -> int:
        return self.time_ns

    def wait_until(self, moment_ns: int) -> bool:
        self.time_ns = max(self.time_ns, moment_ns)
        return True

    cue = Waiter.cue

    def halted(self) -> bool:
        return False


def test_requests_that_fell_due_while_the_client_was_busy_follow_without_a_pause(tmp_path: Path):
    class Scheduler:
        def next(self, current: float) -> float:
            return current + 1

    code = code_in(tmp_path / "books")
    timer = Clockwork()
    pace = PluginPace("scheduler 's'", Scheduler(), code, "ops", timer.now_ns)
    program = pace.paced(lambda: None)
    cues = pace.cues(Extent(3, 0, None, 0), 0, timer)
    due = []
    for _ in range(3):
        program()
        due.append(next(cues)[0])
        timer.time_ns += 2_500_000_000
    assert due == [1_000_000_000, 2_000_000_000, 3_000_000_000]
    assert next(cues, None) is None
