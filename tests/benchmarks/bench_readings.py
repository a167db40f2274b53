"""What the readings of a node cost the driver, for processes of more and more threads.

python tests/benchmarks/bench_readings.py [--readings 500] [--threads 40 150 600]
"""

import argparse
import sys

from benchctl.report.facts import MOST_READING_SHARE, reading_line
from benchctl.run.calibrate import measure_readings

GOAL_THREADS = 150


def main() -> int:
    """Print a line each; 1 when a node of 150 threads takes more than its share of a CPU."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--readings", type=int, default=500, help="of every kind: %(default)s")
    parser.add_argument("--threads", type=int, nargs="+", default=[40, GOAL_THREADS, 600])
    options = parser.parse_args()
    missed = 0
    for threads in options.threads:
        found = measure_readings(threads, options.readings)
        sys.stdout.write(f"{reading_line(found)}\n")
        missed += threads <= GOAL_THREADS and found.share > MOST_READING_SHARE
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
