"""What the load generator costs and how exact it is, beside bare pycurl and a raw socket in the same run.

    python tests/benchmarks/bench_load.py [--quick] [--rows one,bulk] [--format markdown] [--real]

All ask a stub in C that keeps a record of when requests came and answers went; compiling it takes
`pip install -e '.[bench]'`. About five minutes, and less than one with --quick. --real starts an
OpenSearch node as well.
"""

import argparse
import sys
from collections.abc import Callable

import exact
import live
import speed
from lines import HostWatch, Line, sheet, show
from rich.console import Console
from setting import QUICK, SMOKE, Setting, Size

from benchctl.corpus.generated import ensure_corpus
from benchctl.errors import BenchctlError
from benchctl.home import resolve_home

ROWS: dict[str, Callable[[Setting], list[Line]]] = {
    "one": speed.one_client,
    "signed": speed.signed,
    "eight": speed.eight_clients,
    "error": exact.service_time_error,
    "stall": exact.stall,
    "fixed": exact.fixed_time,
    "start": live.without_node,
    "warmup": exact.slow_warmup,
    "bulk": speed.bulk,
    "memory": speed.memory,
}
REAL = "real"


def measure(names: list[str], setting: Setting) -> list[Line]:
    """Measure rows, one after the other; what is being measured goes to standard error."""
    lines = []
    with Console(stderr=True).status("") as status:
        for name in names:
            status.update(f"measuring: {name}")
            found = (ROWS | {REAL: live.real_node})[name](setting)
            if not found:
                raise BenchctlError(f"nothing was measured in {name}")
            lines += found
    return lines


def main() -> int:
    """Measure what is asked for and print it; 1 when it cannot be measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default=",".join(ROWS), help="which: %(default)s")
    parser.add_argument("--real", action="store_true", help="the row on a real OpenSearch node, too")
    parser.add_argument("--quick", action="store_true", help="a short look: fewer rounds and requests")
    parser.add_argument("--smoke", action="store_true", help="no figures: whether every row works")
    parser.add_argument("--format", choices=("text", "markdown", "json"), default="text")
    parser.add_argument("--body-bytes", type=int, default=1500, help="length of an answer  [%(default)s]")
    options = parser.parse_args()
    names = [name for name in options.rows.split(",") if name] + [REAL] * options.real
    unknown = set(names) - set(ROWS) - {REAL}
    if unknown:
        parser.error(f"there is no row {', '.join(sorted(unknown))}; there are {', '.join([*ROWS, REAL])}")
    if REAL in names:
        names = [name for name in names if name != "start"]
    size = SMOKE if options.smoke else QUICK if options.quick else Size()
    setting = Setting(size, lambda: ensure_corpus(resolve_home(), size.documents), options.body_bytes)
    watch = HostWatch()
    try:
        lines = measure(list(dict.fromkeys(names)), setting)
    except BenchctlError as err:
        Console(stderr=True).print(str(err), markup=False)
        return 1
    result = sheet(lines, watch, rounds=size.rounds, body_bytes=options.body_bytes)
    show(result, options.format)
    return 0


if __name__ == "__main__":
    sys.exit(main())
