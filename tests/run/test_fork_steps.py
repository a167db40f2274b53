"""What runs on a node before its schedules, and for whom."""

import threading
from collections.abc import Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from benchctl.home import Home
from benchctl.load.executor import Job, Stage, TaskResult
from benchctl.load.transport import open_client
from benchctl.load.work import WorkContext
from benchctl.results.plan import boots
from benchctl.run.bench import Observer, SharedObserver
from benchctl.run.fork import Load, StepRunner, with_kept_logs
from benchctl.run.session import Serving
from benchctl.track.load import load_track
from benchctl.track.model import Challenge, Task
from benchctl.track.operations import Operation
from benchctl.track.operations.admin import ForceMerge
from benchctl.track.operations.search import RawRequest, Search
from builders import ES, make_plan, make_summary
from load.storm import run_step_of
from load.stub_server import Reply, StubServer
from waiting import stopped_when


class Recording(StepRunner):
    """Writes down what would be run."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.ran: list[tuple[str, bool]] = []

    def run_step(
        self, serving: Serving, jobs: Sequence[Job], stage: Stage, load: Load
    ) -> tuple[TaskResult, ...]:
        del serving, stage, load
        self.ran += [(job.task.operation, job.measured) for job in jobs]
        return ()


class Settings:
    """A node that is only told cluster settings."""

    def __init__(self) -> None:
        self.put: list[Any] = []
        self.client = SimpleNamespace(put_cluster_settings=self.put.append)


def test_operations_are_told_the_version_that_the_node_says(tmp_path: Path):
    track, _ = load_track("big5", {})
    runner = StepRunner(make_plan(), track, Home(tmp_path), SharedObserver(Observer()), threading.Event())
    node = SimpleNamespace(version="9.2.0", endpoint=None)
    stage = runner.stage(cast("Serving", node), ES, 0, 0, cast("Any", None))
    assert (stage.context.engine, stage.context.version) == ("elasticsearch", "9.2.0")


@pytest.mark.parametrize(
    ("variant", "ran", "put"),
    [
        ("es", [("default", False), ("range", True)], ["common"]),
        ("es-warm", [("term", False), ("default", False), ("range", True)], ["own", "common"]),
    ],
)
def test_warm_ups_of_a_variant_come_first_and_for_it_alone(
    variant: str, ran: list[tuple[str, bool]], put: list[str], tmp_path: Path
):
    own, common = (
        Challenge(name, (Task(task, iterations=3),), cluster_settings={"for": name})
        for name, task in (("own", "term"), ("common", "default"))
    )
    plan = msgspec.structs.replace(
        make_plan(variants=(ES, msgspec.structs.replace(ES, name="es-warm"))),
        warmup_challenges=(common,),
        variant_warmups={"es-warm": (own,)},
    )
    track, _ = load_track("big5", {})
    runner = Recording(plan, track, Home(tmp_path), SharedObserver(Observer()), threading.Event())
    node, stage = Settings(), SimpleNamespace(context=SimpleNamespace(plugin=None))
    (steps,) = boots(plan)
    runner.run(cast("Serving", node), steps, cast("Stage", stage), Load(), variant=variant)
    assert runner.ran == ran
    assert [one["for"] for one in node.put] == put


def test_a_variant_s_own_body_is_what_it_is_asked_warm_ups_included(tmp_path: Path):
    body = {"query": {"match_all": {}}}
    other = msgspec.structs.replace(ES, name="other", operations={"range": body})
    warmup = Challenge("w", (Task("range", iterations=3),))
    plan = msgspec.structs.replace(make_plan(variants=(ES, other)), warmup_challenges=(warmup,))
    track, _ = load_track("big5", {})
    asked: dict[str, list[Any]] = {"es": [], "other": []}

    class Asking(Recording):
        def run_step(
            self, serving: Serving, jobs: Sequence[Job], stage: Stage, load: Load
        ) -> tuple[TaskResult, ...]:
            asked[variant] += [getattr(job.operation, "body", None) for job in jobs]
            return super().run_step(serving, jobs, stage, load)

    runner = Asking(plan, track, Home(tmp_path), SharedObserver(Observer()), threading.Event())
    stage = SimpleNamespace(context=SimpleNamespace(plugin=None))
    for variant in asked:
        (steps,) = boots(plan)
        runner.run(cast("Serving", Settings()), steps, cast("Stage", stage), Load(), variant=variant)
    assert asked["other"] == [body, body]
    assert body not in asked["es"]
    assert len(asked["es"]) == len(asked["other"])


def test_a_warm_up_does_without_what_a_node_refuses(tmp_path: Path):
    warmup = Challenge("w", (Task("default", iterations=3), Task("term", iterations=3)))
    plan = msgspec.structs.replace(make_plan(), warmup_challenges=(warmup,))
    track, _ = load_track("big5", {})
    left_out = frozenset({"default", "range"})
    runner = Recording(
        plan, track, Home(tmp_path), SharedObserver(Observer()), threading.Event(), left_out=left_out
    )
    stage = SimpleNamespace(context=SimpleNamespace(plugin=None))
    (steps,) = boots(plan)
    runner.run(cast("Serving", Settings()), steps, cast("Stage", stage), Load(), variant="es")
    assert runner.ran == [("term", False), ("range", True)]


@pytest.mark.parametrize("test_mode", [False, True])
def test_a_fork_in_which_benchctl_stood_still_has_no_figures(*, test_mode: bool):
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    with StubServer(default=Reply(delay_s=0.005)) as server:
        child = context.Process(target=run_step_of, args=(theirs, server.url, make_plan(test_mode=test_mode)))
        with stopped_when(lambda: len(server.searches) > 50, lambda: child.pid, 1.0):
            child.start()
            theirs.close()
            said = ours.recv()
        child.join()
    if test_mode:
        # They mean nothing anyway, and are told.
        assert 0.9 < said.stopped_s < said.window_s
    else:
        assert said.startswith("benchctl itself did not run for ")
        assert "% of the measured time of range, so its figures would not be the engine's" in said


@pytest.mark.parametrize(
    ("operation", "untouched"),
    [(Search(name="a"), True), (RawRequest(name="a", path="/_cat"), True), (ForceMerge(name="a"), False)],
)
def test_what_may_change_documents_is_known_for_all_later_tasks(
    operation: Operation, tmp_path: Path, *, untouched: bool
):
    track, _ = load_track("big5", {})
    runner = StepRunner(make_plan(), track, Home(tmp_path), SharedObserver(Observer()), threading.Event())
    load = Load()
    with StubServer() as server:
        node = cast("Serving", SimpleNamespace(glance=lambda: None))
        stage = Stage(partial(open_client, server.url), WorkContext("big5"), origin_ns=0, boot=0)
        for one in (operation, Search(name="b")):
            runner.run_step(node, [Job(Task(one.name, iterations=1), one, 0, 0)], stage, load)
    assert [outcome.untouched for outcome in load.outcomes] == [untouched, untouched]


def test_why_a_node_did_not_come_back_names_where_its_logs_are_kept():
    told = make_summary(
        "roll", 1.0, failure_reasons=("a was not ready (logs in /scratch/fork/boot-0/a)", "b")
    )
    (kept,) = with_kept_logs([told], Path("/scratch/fork/boot-0"), Path("/runs/r/boots/fork/boot-0"))
    assert kept.failure_reasons == ("a was not ready (logs in /runs/r/boots/fork/boot-0/a)", "b")
