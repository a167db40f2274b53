"""benchctl's own code as a contestant."""

import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from bodies import bodies
from jobs import Done, Job
from loops import QUERY, do_job, peak_bytes

from benchctl.endpoint import Auth, Endpoint
from benchctl.load.executor import Job as Step
from benchctl.load.executor import Stage, TaskResult, WorkerPool, run_step
from benchctl.load.ingest import ingest
from benchctl.load.transport import WireClient, open_client
from benchctl.load.work import WorkContext
from benchctl.results.samples import SampleSpool
from benchctl.stats.summary import summarise
from benchctl.track.model import Task
from benchctl.track.operations.search import Search


def benchctl_search(job: Job) -> Done:
    """One task through benchctl's executor, and its throughput as benchctl's summary states it."""
    if job.prelude:
        _run_task(job, Task(operation="range", clients=job.clients, iterations=job.prelude))
    task = Task(
        operation="range",
        clients=job.clients,
        warmup_iterations=job.warmup,
        iterations=job.requests,
        target_throughput=job.rate_per_s,
    )
    if job.workers > 1:
        return _in_workers(job, task)
    began, cpu_s = time.perf_counter(), time.process_time()
    result = _run_task(job, task)
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - began
    columns = result.columns
    if columns["outcome"].any():
        raise RuntimeError(f"requests failed: {result.failures}")
    kept = ~columns["warmup"]

    def times(name: str) -> list[int]:
        return columns[name][kept].tolist() if job.timed else []

    return Done(
        units=job.clients * (job.requests + job.warmup),
        wall_s=wall_s,
        cpu_s=cpu_s,
        peak_bytes=peak_bytes(),
        reported_per_s=summarise(columns, schedule=0, task_index=0, task=task).throughput_per_s,
        due_ns=times("intended_ns"),
        start_ns=times("start_ns"),
        end_ns=times("end_ns"),
    )


def _in_workers(job: Job, task: Task) -> Done:
    """The same by clients in several processes, which are there before any clock starts."""
    with (
        TemporaryDirectory() as folder,
        SampleSpool(Path(folder) / "samples") as spool,
        WorkerPool(job.workers) as pool,
    ):
        stage = Stage(
            partial(open_client, job.url),
            WorkContext(job.index, seed=1),
            origin_ns=0,
            boot=0,
            spool=spool,
        )
        jobs = [Step(task, Search(name="range", body=QUERY), 0, 0)]
        run_step(jobs, stage, stop=Event(), workers=pool)
        (result,) = run_step(jobs, stage, stop=Event(), workers=pool)
        if result.failures:
            raise RuntimeError(f"requests failed: {result.failures}")
    return Done(
        units=job.clients * (job.requests + job.warmup), wall_s=result.wall_s, cpu_s=result.driver_cpu_s
    )


def benchctl_tasks(job: Job) -> Done:
    """Many tasks of one search a client, one after the other."""
    task = Task(operation="range", clients=job.clients, iterations=1)
    _run_task(job, task)
    seconds = []
    began, cpu_s = time.perf_counter(), time.process_time()
    for _ in range(job.requests):
        task_began = time.perf_counter()
        _run_task(job, task)
        seconds.append(time.perf_counter() - task_began)
    return Done(
        units=job.requests,
        wall_s=time.perf_counter() - began,
        cpu_s=time.process_time() - cpu_s,
        task_s=seconds,
    )


def _endpoint(job: Job) -> Endpoint:
    auth = Auth.aws("AKIDEXAMPLE", "wJalrXUtnFEMI", "eu-central-1") if job.signed else None
    return Endpoint((job.url,), auth)


def _run_task(job: Job, task: Task) -> TaskResult:
    stage = Stage(
        open_wire=lambda _client: WireClient(_endpoint(job)),
        context=WorkContext(job.index, seed=1),
        origin_ns=0,
        boot=0,
    )
    (result,) = run_step([Step(task, Search(name="range", body=QUERY), 0, 0)], stage, stop=Event())
    return result


def benchctl_bulk(job: Job) -> Done:
    """The corpus through benchctl's ingest, framed while it is sent."""
    began, cpu_s = time.perf_counter(), time.process_time()
    done = ingest(
        [(job.index, bodies(job))],
        endpoint=job.url,
        clients=job.clients,
        on_progress=lambda _: None,
    )
    return Done(
        units=done.documents,
        wall_s=time.perf_counter() - began,
        cpu_s=time.process_time() - cpu_s,
        peak_bytes=peak_bytes(),
    )


if __name__ == "__main__":
    do_job({"search": benchctl_search, "tasks": benchctl_tasks, "bulk": benchctl_bulk})
