"""What runs in a namespace of its own: a pool on several hosts, against a stub beside it.

Arguments: which scenario, the file of hosts, a folder for samples.
"""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import hosts.impatient  # noqa: F401 - for what it sets
from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError
from benchctl.hosts.file import load_hosts
from benchctl.hosts.pool import HostPool
from benchctl.load.executor import Job, Stage, TaskResult, WorkerPool, run_step
from benchctl.load.transport import open_client
from benchctl.load.work import WorkContext
from benchctl.results.figures import HostFigures
from benchctl.results.samples import Columns, SampleSpool
from benchctl.run.fork import host_figures
from benchctl.track.model import Task
from benchctl.track.operations.catalogue import decode_operation
from load.stub_server import Reply, StubServer

ORIGIN_BACK_NS = 1_000_000_000
SEARCH = decode_operation(
    {
        "name": "range",
        "body": {"query": {"range": {"t": {"gte": "${from}"}}}},
        "values": {"from": {"kind": "integer", "min": 0, "max": 1_000_000_000}},
    }
)
BULK = decode_operation({"name": "index", "operation-type": "bulk", "bulk-size": 10})


def say(**words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


Outcome = tuple[TaskResult, Columns, list[HostFigures]]


class Bench:
    """A stub, and a pool that sends to it."""

    def __init__(self, hosts: Path, folder: Path, default: Reply | None = None) -> None:
        self.hosts = load_hosts(hosts)
        self.folder = folder
        self.server = StubServer(default=default, address=self.hosts.address)
        self.pool = HostPool(self.hosts, 1)

    def run(
        self, *jobs: Job, pool: WorkerPool | None = None, origin_ns: int
    ) -> list[tuple[TaskResult, Columns, list[HostFigures]]]:
        """Results, each with the columns of its samples while they are there."""
        documents = [b'{"n": %d}\n' % number for number in range(40)]
        context = WorkContext("big5", seed=7, documents=partial(iter, documents), document_count=40)
        stop = threading.Event()
        with SampleSpool(self.folder / f"samples-{time.monotonic_ns()}") as spool:
            opening = partial(open_client, Endpoint.of(self.server.url))
            stage = Stage(opening, context, origin_ns, boot=0, spool=spool)
            found = run_step(jobs, stage, stop=stop, workers=pool)
            return [
                (one, one.columns, [host_figures(job, one, part) for part in one.hosts])
                for one, job in zip(found, jobs, strict=True)
            ]


def alike(bench: Bench) -> None:
    """Two hosts, then this one: the same open loop, and a closed one; bodies and arrivals of each."""
    open_loop = Task("range", clients=5, iterations=40, target_throughput=400.0, schedule="poisson")
    closed = Task("range", name="closed", clients=4, iterations=25)
    told = []
    with bench.pool:
        for pool in (bench.pool, None):
            before = len(bench.server.searches)
            origin_ns = time.monotonic_ns() - ORIGIN_BACK_NS
            ((result, columns, hosts),) = bench.run(
                Job(open_loop, SEARCH, 0, 0), pool=pool, origin_ns=origin_ns
            )
            due_ns = columns["intended_ns"] - (result.start_ns - origin_ns)
            arrived_ns = [one.arrived_ns - origin_ns for one in bench.server.searches[before:]]
            told.append(
                {
                    "due": sorted(zip(columns["client"].tolist(), due_ns.tolist(), strict=True)),
                    "bodies": sorted(one.body.decode() for one in bench.server.searches[before:]),
                    "sent": sorted(columns["start_ns"].tolist()),
                    "ended": sorted(columns["end_ns"].tolist()),
                    "arrived": sorted(arrived_ns),
                    "ended_ns": result.ended_ns - origin_ns,
                    "processes": result.processes,
                    "hosts": [
                        [one.name, one.clients, one.start_late_ns, one.clock_offset_ns, one.clock_error_ns]
                        for one in hosts
                    ],
                }
            )
        ((_, columns, hosts),) = bench.run(
            Job(closed, SEARCH, 0, 0), pool=bench.pool, origin_ns=time.monotonic_ns()
        )
        closed_clients = {
            str(client): int(count) for client, count in Counter(columns["client"].tolist()).items()
        }
        late = [one.start_late_ns for one in hosts]
        index = Task("index", clients=2)
        ((indexed, _, _),) = bench.run(Job(index, BULK, 0, 0), pool=bench.pool, origin_ns=time.monotonic_ns())
        bulks = [one for one in bench.server.received if "_bulk" in one.target]
        lines = Counter(line for one in bulks for line in one.body.splitlines() if line.startswith(b'{"n"'))
        say(
            runs=told,
            closed=closed_clients,
            closed_late=late,
            documents=len(lines),
            most=max(lines.values(), default=0),
            indexed_on=[part.host.name for part in indexed.hosts],
            left=[str(path) for path in bench.folder.parent.glob("work-*/**/*.rows")],
        )


def tell(server: StubServer, over: threading.Event) -> None:
    """Say when a request hangs, unless the step is over."""
    while not over.is_set():
        if server.hanging.wait(0.05):
            say(hanging=True)
            return


def hanging(bench: Bench) -> None:
    """Steps that do not end by themselves, a line of input for each: what is said when hosts go."""
    task = Task("range", clients=4, iterations=5)
    with bench.pool:
        for _ in sys.stdin:
            bench.server.hanging.clear()
            over = threading.Event()
            threading.Thread(target=tell, args=(bench.server, over), daemon=True).start()
            clock = time.monotonic()
            try:
                bench.run(Job(task, SEARCH, 0, 0), pool=bench.pool, origin_ns=time.monotonic_ns())
            except BenchctlError as err:
                over.set()
                say(error=err.message, hint=err.hint, after_s=time.monotonic() - clock)


SCENARIOS: dict[str, tuple[Callable[[Bench], None], Reply | None]] = {
    "alike": (alike, None),
    "hanging": (hanging, Reply(fault="hang")),
}

if __name__ == "__main__":
    scenario, default = SCENARIOS[sys.argv[1]]
    bench = Bench(Path(sys.argv[2]), Path(sys.argv[3]), default)
    with bench.server:
        scenario(bench)
