"""What the load generator itself costs, against elasticsearch-py doing the same requests in the same run.

Run by hand: python tests/benchmarks/bench_driver.py. Both ask the same stub in a process of its own, which
writes into every answer how long it really took; what a client measured beyond that is its error.
"""

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from elasticsearch import Elasticsearch
from rich.console import Console
from rich.table import Table

from benchctl.load.executor import run_task
from benchctl.results.samples import Outcome
from benchctl.track.model import Operation, Task

STUB = Path(__file__).parents[1] / "load" / "stub_server.py"
OPERATION = Operation(name="range", body={"query": {"range": {"@timestamp": {"gte": "2023-01-01"}}}})
WARMUP = 200


@dataclass(frozen=True)
class Setting:
    """One row of the table.

    Attributes:
        clients: concurrent clients.
        iterations: measured requests per client.
        service_us: how long the stub takes for a request.
        body_bytes: padding of the answer.
    """

    clients: int
    iterations: int
    service_us: int
    body_bytes: int


@dataclass(frozen=True)
class Cost:
    """What a client's requests cost.

    Attributes:
        cpu_us: CPU time of the driver's process per request.
        per_s: requests a second.
        error_us: service time as measured minus the stub's own, microseconds, shape (requests,).
    """

    cpu_us: float
    per_s: float
    error_us: npt.NDArray[np.float64]


Driver = Callable[[str, Setting], Cost]


@contextmanager
def stub(setting: Setting) -> Iterator[str]:
    """Run a stub server in its own process; yields its URL."""
    command = [sys.executable, str(STUB), "--service-us", str(setting.service_us)]
    command += ["--padding-bytes", str(setting.body_bytes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def ours(url: str, setting: Setting) -> Cost:
    """Measure benchctl's executor."""
    task = Task(
        operation=OPERATION.name,
        clients=setting.clients,
        warmup_iterations=WARMUP,
        iterations=setting.iterations,
    )
    result = run_task(
        task,
        OPERATION,
        base_url=url,
        index_name="big5",
        seed=1,
        origin_ns=0,
        schedule=0,
        task_index=0,
        boot=0,
        stop=threading.Event(),
    )
    columns = result.columns
    if (columns["outcome"] != Outcome.OK).any():
        raise RuntimeError(f"requests failed: {result.failures}")
    measured_ns = columns["end_ns"] - columns["start_ns"]
    kept = ~columns["warmup"]
    return Cost(
        cpu_us=result.driver_cpu_s * 1e6 / kept.size,
        per_s=kept.size / result.wall_s,
        error_us=(measured_ns - columns["hits"])[kept] / 1e3,
    )


def reference(url: str, setting: Setting) -> Cost:
    """Measure elasticsearch-py, with a clock around each call, a thread and a client object per client."""
    errors_us: list[float] = []
    barrier = threading.Barrier(setting.clients + 1)

    def work() -> None:
        with Elasticsearch(url) as client:
            client.cluster.health(local=True)
            barrier.wait()
            mine = []
            for _ in range(WARMUP + setting.iterations):
                start_ns = time.monotonic_ns()
                answer = client.search(index="big5", **OPERATION.body)
                measured_ns = time.monotonic_ns() - start_ns
                mine.append((measured_ns - answer["hits"]["total"]["value"]) / 1e3)
            errors_us.extend(mine[WARMUP:])

    threads = [threading.Thread(target=work) for _ in range(setting.clients)]
    for thread in threads:
        thread.start()
    barrier.wait()
    cpu_s, began_ns = time.process_time(), time.monotonic_ns()
    for thread in threads:
        thread.join()
    requests = setting.clients * (WARMUP + setting.iterations)
    return Cost(
        cpu_us=(time.process_time() - cpu_s) * 1e6 / requests,
        per_s=requests / ((time.monotonic_ns() - began_ns) / 1e9),
        error_us=np.array(errors_us),
    )


def best_of(driver: Driver, setting: Setting, rounds: int) -> Cost:
    """Run several rounds on fresh stubs and keep the one that cost the least: other load only ever adds."""
    costs = []
    for _ in range(rounds):
        with stub(setting) as url:
            costs.append(driver(url, setting))
    return min(costs, key=lambda cost: cost.cpu_us)


def row(setting: Setting, rounds: int) -> tuple[str, ...]:
    """Measure one setting with both and put the figures side by side."""
    mine, theirs = best_of(ours, setting, rounds), best_of(reference, setting, rounds)
    p50, p99 = np.percentile(mine.error_us, [50, 99])
    their_p50, their_p99 = np.percentile(theirs.error_us, [50, 99])
    return (
        f"{setting.clients} x {setting.service_us} us, {setting.body_bytes // 1000} kB",
        f"{mine.cpu_us:.0f} / {theirs.cpu_us:.0f} ({theirs.cpu_us / mine.cpu_us:.1f}x)",
        f"{mine.per_s:.0f} / {theirs.per_s:.0f} ({mine.per_s / theirs.per_s:.1f}x)",
        f"{p50:.0f} / {their_p50:.0f} ({their_p50 / p50:.1f}x)",
        f"{p99:.0f} / {their_p99:.0f} ({their_p99 / p99:.1f}x)",
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=2000, help="measured requests, over all clients")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    table = Table(title="benchctl / elasticsearch-py (ratio in benchctl's favour)")
    for heading in (
        "clients x service, body",
        "CPU us/request",
        "requests/s",
        "error p50 us",
        "error p99 us",
    ):
        table.add_column(heading, no_wrap=True)
    for clients, service_us, body_bytes in ((1, 0, 0), (1, 2000, 0), (1, 0, 20_000), (8, 0, 0)):
        setting = Setting(clients, options.iterations // clients, service_us, body_bytes)
        table.add_row(*row(setting, options.rounds))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
