"""How long, and with how much memory, three years of nights are read.

    PYTHONPATH=tests:tests/support python tests/benchmarks/bench_nights.py [--nights 1000] [--folder KEPT]

A suite of 40 tasks, 2 variants and 5 forks is made up. Every step is then timed in a process of its own, from
its first import: all records, all figures as series, those of one variant's newest thirty nights, ten
thousand events, and a query of `benchctl sql`. Exits with 1 beyond the goals.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

GOAL_S = 10.0
GOAL_MIB = 500.0
EVENTS = 10_000
NEWEST = 30


def main() -> None:
    """Make a store where there is none, take the steps, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nights", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="where the store is kept for the next time")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        sys.stdout.write(json.dumps(_taken(options.step, options.folder)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary) / "big5"
        if not folder.exists():
            _make(folder, options.nights)
        sys.exit(0 if _all_steps(folder) else 1)


def _make(folder: Path, nights: int) -> None:
    from benchctl.nightly.folder import append_event  # noqa: PLC0415 - likewise
    from benchctl.nightly.model import Acknowledged  # noqa: PLC0415 - not before the steps are timed
    from three_years import make_store  # noqa: PLC0415 - likewise

    start = time.monotonic()
    suite = make_store(folder, nights=nights)
    append_event(suite.events_path, Acknowledged(1, "2026-11-21T03:00:00+00:00", "me", "x" * 200))
    suite.events_path.write_bytes(suite.events_path.read_bytes() * EVENTS)
    Console().print(f"made {nights} nights in {time.monotonic() - start:.1f} s")


def _all_steps(folder: Path) -> bool:
    table = Table("Step", "What came of it", "Seconds", "MiB")
    good = True
    for step in STEPS:
        command = [sys.executable, __file__, "--step", step, "--folder", str(folder)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        count, seconds, mebibytes = json.loads(done.stdout)
        table.add_row(step, f"{count:,}", f"{seconds:.2f}", f"{mebibytes:.0f}")
        good = good and seconds < GOAL_S and mebibytes < GOAL_MIB
    console = Console()
    console.print(table)
    console.print(f"goals: {GOAL_S:g} s and {GOAL_MIB:g} MiB a step: {'met' if good else 'NOT met'}")
    return good


def _taken(step: str, folder: Path) -> tuple[int, float, float]:
    """(rows, seconds, MiB at most) of one step."""
    start = time.monotonic()
    count = STEPS[step](folder)
    seconds = time.monotonic() - start
    # What getrusage says includes the process that started this one.
    peak = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")
    )
    return count, seconds, int(peak.split()[1]) / 1024


def _records(folder: Path) -> int:
    from benchctl.nightly.folder import SuiteFolder  # noqa: PLC0415 - imports are part of a step

    return len(SuiteFolder(folder).nights(print))


def _series(folder: Path) -> int:
    from benchctl.nightly.folder import SuiteFolder  # noqa: PLC0415 - imports are part of a step

    return sum(one.values.size for one in SuiteFolder(folder).series(None, None, print))


def _newest(folder: Path) -> int:
    from benchctl.nightly.folder import SuiteFolder  # noqa: PLC0415 - imports are part of a step

    suite = SuiteFolder(folder)
    last = len(suite.figure_files())
    found = suite.series(["es"], range(last - NEWEST + 1, last + 1), print)
    return sum(one.values.size for one in found)


def _events(folder: Path) -> int:
    from benchctl.nightly.folder import SuiteFolder  # noqa: PLC0415 - imports are part of a step

    return len(SuiteFolder(folder).events(print))


def _query(folder: Path) -> int:
    from benchctl.nightly.folder import SuiteFolder  # noqa: PLC0415 - imports are part of a step
    from benchctl.nightly.hooks import nights_view  # noqa: PLC0415 - likewise
    from benchctl.results.sql import answered  # noqa: PLC0415 - likewise

    query = "SELECT night, task, avg(value) FROM nights WHERE metric = 'throughput' GROUP BY ALL"
    with answered(query, [], [nights_view(lambda: [SuiteFolder(folder)])]) as found:
        return sum(1 for _ in found.rows)


STEPS: Mapping[str, Callable[[Path], int]] = {
    "all records": _records,
    "all figures": _series,
    "newest figures": _newest,
    "all events": _events,
    "benchctl sql": _query,
}


if __name__ == "__main__":
    main()
