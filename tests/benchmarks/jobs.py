"""What a contestant is asked to do and what it reports; each does it in a process of its own."""

import subprocess
import sys
from pathlib import Path
from threading import Event, Thread
from typing import Literal

import msgspec
import psutil

from benchctl.errors import BenchctlError

Contestant = Literal["benchctl", "pycurl", "socket", "elasticsearch-py"]
Work = Literal["search", "bulk", "tasks"]

_MEMORY_EVERY_S = 0.02


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One contestant's work.

    Attributes:
        contestant: who does it.
        work: searches; a corpus sent in bulk; or many tasks of one search each.
        url: the stub, or a node.
        clients: concurrent clients.
        requests: per client, or how many tasks.
        warmup: requests before those, per client: slow ones that a report must leave out.
        prelude: requests before any clock starts, so that imports and first allocations are done.
        rate_per_s: of an open loop over all clients; None for a closed loop.
        timed: report every request's times.
        corpus: folder of the corpus, for bulk.
        documents: so many first documents of it.
        per_body: documents a bulk request.
        index: where bulk goes.
        cpus: where it may run; anywhere when empty.
        workers: processes that benchctl's clients work in; the others know only one.
        signed: whether benchctl signs requests as AWS asks for.
    """

    contestant: Contestant
    work: Work
    url: str
    clients: int = 1
    requests: int = 0
    warmup: int = 0
    prelude: int = 0
    rate_per_s: float | None = None
    timed: bool = False
    corpus: str = ""
    documents: int = 0
    per_body: int = 5000
    index: str = "big5"
    cpus: tuple[int, ...] = ()
    workers: int = 1
    signed: bool = False


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a job.

    Attributes:
        units: measured requests, documents or tasks.
        wall_s: how long they took, set-up and connecting included.
        cpu_s: CPU time of the contestant's process, all threads, meanwhile.
        peak_bytes: resident memory of the contestant's process at its highest.
        due_ns: when each was due; equal to `start_ns` in a closed loop; empty unless timed, like the others.
        start_ns: when each was sent, on the monotonic clock.
        end_ns: when its last byte was there.
        reported_per_s: throughput as the contestant reports it, where it has reports.
        task_s: seconds of each task.
    """

    units: int
    wall_s: float
    cpu_s: float
    peak_bytes: int = 0
    due_ns: list[int] = []
    start_ns: list[int] = []
    end_ns: list[int] = []
    reported_per_s: float | None = None
    task_s: list[float] = []

    @property
    def per_s(self) -> float:
        """Units a second."""
        return self.units / self.wall_s

    @property
    def cpu_us(self) -> float:
        """Microseconds of CPU a unit."""
        return self.cpu_s * 1e6 / self.units


def run_job(job: Job) -> Done:
    """Do a job in a process of its own, so that no contestant pays for another's imports or garbage.

    Raises:
        BenchctlError: the process failed; the message is what it said.
    """
    with _started(job) as process:
        out, err = process.communicate()
    return _done(job, process.returncode, out, err)


def run_watched(job: Job) -> tuple[Done, int]:
    """Do a job and look at the memory of its process tree meanwhile.

    Returns:
        The result, and the largest sum of resident memory in bytes; looking costs a little of a CPU.
    """
    finished, peaks = Event(), [0]
    with _started(job) as process:
        watcher = Thread(target=_watch_memory, args=(process.pid, finished, peaks))
        watcher.start()
        try:
            out, err = process.communicate()
        finally:
            finished.set()
            watcher.join()
    done = _done(job, process.returncode, out, err)
    # Between two looks a single process may have been larger; the kernel knows that.
    return done, max(*peaks, done.peak_bytes)


def _started(job: Job) -> "subprocess.Popen[bytes]":
    script = Path(__file__).with_name(f"run_{job.contestant.replace('-', '_')}.py")
    command = [sys.executable, str(script), msgspec.json.encode(job).decode()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _done(job: Job, code: int, out: bytes, err: bytes) -> Done:
    if code:
        said = err.decode(errors="replace").strip()
        raise BenchctlError(f"{job.contestant} failed at {job.work}:\n{said}")
    return msgspec.json.decode(out, type=Done)


def _watch_memory(pid: int, finished: Event, peaks: list[int]) -> None:
    try:
        root = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return
    while not finished.wait(_MEMORY_EVERY_S):
        total = 0
        try:
            tree = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in tree:
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        peaks[0] = max(peaks[0], total)
