"""What contestants share: the search they all send, loops that do as little as possible, the job at hand.

A contestant is a module that `jobs.py` runs in a process of its own: python run_pycurl.py JOB, where JOB is
JSON; the result goes to standard output.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import msgspec
from jobs import Done, Job, Work

QUERY: dict[str, Any] = {
    "query": {"range": {"@timestamp": {"gte": "2023-01-01T00:00:00", "lt": "2023-01-03T00:00:00"}}}
}
QUERY_BYTES = msgspec.json.encode(QUERY)
HEADERS = ("Content-Type: application/json", "Accept: application/json")

Send = Callable[[], None]


def do_job(works: Mapping[Work, Callable[[Job], Done]]) -> None:
    """Do the job given on the command line."""
    job = msgspec.json.decode(sys.argv[1], type=Job)
    if job.cpus:
        os.sched_setaffinity(0, job.cpus)
    sys.stdout.buffer.write(msgspec.json.encode(works[job.work](job)))


def peak_bytes() -> int:
    """Highest resident memory of this program; rusage would still count what the parent had."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def closed_loops(job: Job, prepare: Callable[[], Send]) -> Done:
    """Run closed loops, a thread each; all are connected before the clock starts."""
    line = Barrier(job.clients + 1)

    def work() -> None:
        send = prepare()
        for _ in range(max(job.prelude, 1)):
            send()
        line.wait()
        for _ in range(job.requests):
            send()

    threads = [Thread(target=work) for _ in range(job.clients)]
    for thread in threads:
        thread.start()
    line.wait()
    began, cpu_s = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.join()
    return Done(
        units=job.clients * job.requests,
        wall_s=time.perf_counter() - began,
        cpu_s=time.process_time() - cpu_s,
        peak_bytes=peak_bytes(),
    )


def timed_loop(job: Job, send: Callable[[], tuple[int, int]]) -> Done:
    """One client with times; with a rate it sleeps until a request is due, which is as simple as it gets."""
    for _ in range(job.prelude):
        send()
    due_ns, start_ns, end_ns = [], [], []
    began, cpu_s = time.perf_counter(), time.process_time()
    begin_ns = time.monotonic_ns()
    for number in range(job.requests):
        due = begin_ns + round(number * 1e9 / job.rate_per_s) if job.rate_per_s else time.monotonic_ns()
        if (ahead_ns := due - time.monotonic_ns()) > 0:
            time.sleep(ahead_ns / 1e9)
        start, end = send()
        due_ns.append(due if job.rate_per_s else start)
        start_ns.append(start)
        end_ns.append(end)
    return Done(
        units=job.requests,
        wall_s=time.perf_counter() - began,
        cpu_s=time.process_time() - cpu_s,
        due_ns=due_ns,
        start_ns=start_ns,
        end_ns=end_ns,
    )
