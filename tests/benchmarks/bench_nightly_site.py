"""What rebuilding the site of three years of nights takes: time, memory, and the size of what is written.

Run by hand: python tests/benchmarks/bench_nightly_site.py [--nights 1000] [--tasks 40] [--variants 2]
[--forks 5]. The store is made up first, outside the figures. Goal: under 60 s and 1 GB on one core.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchctl.nightly.folder import SuiteFolder
from benchctl.nightly.site.history import SuitePages
from benchctl.nightly.site.publish import write_site
from three_years import make_store


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def step(name: str) -> Iterator[None]:
    """Say how long a step took, and the largest size that the process has had so far."""
    clock, cpu = time.perf_counter(), time.process_time()
    yield
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds, busy = time.perf_counter() - clock, time.process_time() - cpu
    say(f"{name:28} {seconds:7.2f} s, {busy:7.2f} s of CPU, peak so far {peak_mb:6.0f} MB")


def read(folder: Path) -> SuitePages:
    suite = SuiteFolder(folder)
    return SuitePages(
        name="years",
        title="",
        nights=suite.nights(say),
        series=suite.series(None, None),
        events=suite.events(say),
        margins={"throughput": 0.03, "service_time_p90": 0.05},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("nights", 1000), ("tasks", 40), ("variants", 2), ("forks", 5)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--keep", type=Path, help="write the store and the site here, and keep them")
    sizes = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = sizes.keep or Path(temporary)
        store, site = root / "years", root / "site"
        if not store.exists():
            with step("making the store up"):
                make_store(store, sizes.nights, sizes.tasks, sizes.variants, sizes.forks)
        with step("reading"):
            suite = read(store)
        runs = {night.run for night in suite.nights}
        with step("writing the site"):
            write_site(site, suite, pages=runs)
        with step("writing it again, unchanged"):
            write_site(site, read(store), pages=runs)
        written = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
        say(f"{len(written):,} files, {sum(written) / 2**20:,.1f} MB")


if __name__ == "__main__":
    main()
