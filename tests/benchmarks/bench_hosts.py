"""What many hosts would cost the one that benchctl runs on: measured for a few, extrapolated with its error.

Dask's scheduler and workers run here, over TLS on loopback. Straight lines are fitted to what 1, 2, 4 and 8
hosts take; what they say of a hundred is a forecast, with the half width of its 95% interval.

python tests/benchmarks/bench_hosts.py [--hosts 1 2 4 8] [--rounds 3] [--rows 200000] [--idle 5]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np
import psutil
from scipy import stats

from benchctl.errors import BenchctlError
from benchctl.hosts.file import Hosts, load_hosts
from benchctl.hosts.pool import HostPool, HostSession
from benchctl.results.samples import ROW_DTYPE, RowFile, RowOwner
from namespaces import certify

FORECAST = 100
_DASK = [sys.executable, "-P", "-m", "dask"]
_PORT = 18786
_READY_S = 60.0
_CALLS = 200


@contextmanager
def hosts_here(folder: Path, count: int) -> Iterator[Hosts]:
    """So many hosts, all of them this one; yields the file that names them."""
    certify(folder)
    folder.chmod(0o755)  # homes are where the nodes' user can enter
    tls = [f"--tls-ca-file={folder}/ca.pem", f"--tls-cert={folder}/host.pem", f"--tls-key={folder}/host.key"]
    address = f"tls://127.0.0.1:{_PORT}"
    names = [f"load-{number}" for number in range(count)]
    form = "scheduler: {}\ntls: {{ca: ca.pem, certificate: host.pem, key: host.key}}\nload: [{}]\n"
    (folder / "hosts.yml").write_text(form.format(address, ", ".join(names)))
    hosts = load_hosts(folder / "hosts.yml")
    with ExitStack() as stack:
        for name in ("scheduler", *names):
            command = [*_DASK, "scheduler", "--host", address, "--no-dashboard", *tls]
            if name != "scheduler":
                command = [*_DASK, "worker", address, "--name", name, "--no-nanny", "--nthreads", "1"]
                command += ["--no-dashboard", "--memory-limit", "0", "--local-directory", f"{folder}/{name}"]
                command += tls
            # They share this host, and with homes of their own each of them has a lock of its own.
            environ = {
                **os.environ,
                "BENCHCTL_SHARE_HOST": "1",
                "BENCHCTL_HOME": str(folder / f"home-{name}"),
            }
            process = stack.enter_context(
                subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            stack.callback(process.kill)
        limit_s = time.monotonic() + _READY_S
        while not _ready(hosts):
            if time.monotonic() > limit_s:
                raise TimeoutError("the Dask workers did not come up")
            time.sleep(0.5)
        yield hosts


def _ready(hosts: Hosts) -> bool:
    try:
        with HostSession(hosts) as session:
            return not session.missing
    except BenchctlError:
        return False  # the scheduler is not up yet


def measured(path: Path, rounds: int, rows: int, idle_s: float) -> list[dict[str, float]]:
    """Of several pools, one after the other; memory of the first, in a process that had none before."""
    hosts = load_hosts(path)
    me = psutil.Process()
    with HostSession(hosts):
        # What is imported, and what a first connection takes, is nobody's cost.
        before = me.memory_info().rss
    found = []
    for _ in range(rounds):
        found.append(measure(hosts, rows, idle_s))
        if len(found) == 1:
            memory = (me.memory_info().rss - before) / 2**20
    return [{**one, "memory MiB": memory} for one in found]


def measure(hosts: Hosts, rows: int, idle_s: float) -> dict[str, float]:
    """Of one pool: CPU to begin, while nothing happens, of clocks and messages; and of samples."""
    found: dict[str, float] = {}
    begun_s, cpu_s = time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory() as name, HostPool(hosts, 1) as pool:
        links = pool._links
        found["begin s"] = time.monotonic() - begun_s
        found["begin CPU s"] = time.process_time() - cpu_s
        cpu_s = time.process_time()
        time.sleep(idle_s)
        found["idle CPU %"] = 100 * (time.process_time() - cpu_s) / idle_s
        cpu_s = time.process_time()
        for link in links:
            link.measure_clock()
        found["clocks CPU s"] = time.process_time() - cpu_s
        cpu_s = time.process_time()
        for _ in range(_CALLS):
            links[0].call("facts")
        found["message CPU ms"] = 1e3 * (time.process_time() - cpu_s) / _CALLS
        wall_s, cpu_s = time.monotonic(), time.process_time()
        for number, link in enumerate(links):
            np.zeros(rows, ROW_DTYPE).tofile(link.folder / "rows.rows")
            file = RowFile(link.folder / "rows.rows", RowOwner(0, 0, 0, 0, number), None)
            file.finish(b"")
            target = Path(name) / str(number)
            target.mkdir()
            link.fetch(file, target)
        samples = rows * len(links)
        found["fetch s"] = 1e6 * (time.monotonic() - wall_s) / samples
        found["fetch CPU s"] = 1e6 * (time.process_time() - cpu_s) / samples
    return found


def forecast(counts: Sequence[int], values: Sequence[float], at: int) -> tuple[float, float, float]:
    """Slope of a straight line, what it says of `at`, and the half width of the 95% interval of that."""
    x, y = np.asarray(counts, float), np.asarray(values)
    if len(set(counts)) < 2 or len(values) < 3:
        return float("nan"), float("nan"), float("nan")
    line = stats.linregress(x, y)
    residual = y - line.intercept - line.slope * x
    spread = np.sqrt((residual**2).sum() / (x.size - 2))
    distance = (at - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()
    width = stats.t.ppf(0.975, x.size - 2) * spread * np.sqrt(1 + 1 / x.size + distance)
    return line.slope, line.intercept + line.slope * at, float(width)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--rounds", type=int, default=3, help="of every number of hosts: %(default)s")
    parser.add_argument("--rows", type=int, default=200_000, help="samples of a host: %(default)s")
    parser.add_argument("--idle", type=float, default=5.0, help="seconds of doing nothing: %(default)s")
    options = parser.parse_args()
    counts: list[int] = []
    found: list[dict[str, float]] = []
    for count in options.hosts:
        with (
            tempfile.TemporaryDirectory() as name,
            hosts_here(Path(name), count) as hosts,
            ProcessPoolExecutor(1, get_context("spawn")) as alone,
        ):
            asked = alone.submit(measured, hosts.path, options.rounds, options.rows, options.idle)
            found += asked.result()
        counts += [count] * options.rounds
    write = sys.stdout.write
    columns = " | ".join(f"{count} hosts" for count in options.hosts)
    write(
        f"| figure | {columns} | more a host | {FORECAST} hosts |\n|---|{'---|' * (len(options.hosts) + 2)}\n"
    )
    for key in ("begin s", "begin CPU s", "clocks CPU s", "idle CPU %", "memory MiB"):
        values = [one[key] for one in found]
        by_count = (
            f"{median(value for at, value in zip(counts, values, strict=True) if at == count):.3g}"
            for count in options.hosts
        )
        once = slice(None, None, options.rounds if key == "memory MiB" else 1)
        slope, at, width = forecast(counts[once], values[once], FORECAST)
        write(f"| {key} | {' | '.join(by_count)} | {slope:.3g} | {at:.3g} +/- {width:.2g} |\n")
    fetch, fetch_cpu, message = (
        [one[key] for one in found] for key in ("fetch s", "fetch CPU s", "message CPU ms")
    )
    write(f"\nA million samples take {_spread(fetch)} s to fetch, and {_spread(fetch_cpu)} s of CPU here.\n")
    write(f"A message takes {_spread(message)} ms of CPU here.\n")
    return 0


def _spread(values: Sequence[float]) -> str:
    """The median, and from which to which they were."""
    return f"{median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


if __name__ == "__main__":
    sys.exit(main())
