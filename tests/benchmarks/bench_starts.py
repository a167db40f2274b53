"""How long a node takes from being started to ready, directly and by the engine's own script, in turn.

    python tests/benchmarks/bench_starts.py [--rounds 5] [--heap-mb 1024] [ENGINE ...]

Nodes begin on empty data. What is learnt once, the command line and the archive of classes, is learnt before.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

from rich.console import Console

from benchctl.engine.cluster import Cluster, archive_classes, boot
from benchctl.engine.distribution import install
from benchctl.engine.jdk import provide_jdk
from benchctl.engine.launch import starts_of
from benchctl.engine.variant import BUILT_IN_VERSIONS
from benchctl.home import open_folder, resolve_home
from benchctl.results.plan import EngineName, VariantSpec

GOAL = 0.6
say = Console(highlight=False, width=120).print


def measure(engine: EngineName, version: str, rounds: int, heap_mb: int) -> float:
    """Print every round, and give the median ratio of both ways to start."""
    home = resolve_home()
    jdk = provide_jdk(home, None)
    installation = install(home, VariantSpec(engine, engine, version), lambda *_: None)
    starts = starts_of(home, installation)
    archive_classes(home, installation, jdk, starts)

    def start(*, directly: bool) -> tuple[float, Cluster]:
        with tempfile.TemporaryDirectory(prefix="starts-", dir=home.scratch) as name:
            folder = open_folder(Path(name))
            with boot(
                installation,
                jdk,
                data=folder / "data",
                folder=folder / "boot",
                owner=home.node_owner,
                heap_mb=heap_mb,
                starts=starts if directly else None,
            ) as node:
                return node.start_s, node

    start(directly=True)  # learns the command line where that was not done before
    ratios = []
    for _ in range(rounds):
        script_s, _node = start(directly=False)
        direct_s, node = start(directly=True)
        ratios.append(direct_s / script_s)
        say(
            f"{engine} {version}: script {script_s:.2f} s, {node.manner} {direct_s:.2f} s, {ratios[-1]:.2f} x"
        )
    return median(ratios)


def main() -> int:
    """Measure both engines; 1 when one misses the goal."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("engines", nargs="*", default=[*BUILT_IN_VERSIONS], help="which: %(default)s")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--heap-mb", type=int, default=1024)
    options = parser.parse_args()
    missed = 0
    for engine in options.engines:
        found = measure(engine, BUILT_IN_VERSIONS[engine], options.rounds, options.heap_mb)
        say(f"{engine}: median {found:.2f} x of the script's, goal at most {GOAL} x")
        missed += found > GOAL
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
