"""Experiment files for tests, from what a test cares about."""

from pathlib import Path

from benchctl.experiment.file import Changes, Experiment, load_experiment
from benchctl.home import Home

EXPERIMENT = """
title: Fresh against used
forks: 3
docs: 20k
heap: 512m
variants:
  es-noinline: {extends: es, jvm: [-XX:-Inline]}
measurements:
  fresh: {variants: [es, os], challenges: [range-only-short]}
  used: {variants: [es, es-noinline], challenges: [big5rangedebug, range-only-short], restart: never}
tables:
  - title: Range
    metric: throughput
    rows:
      - {name: engines, baseline: fresh/es/range, contender: fresh/os/range, published: [0.65, 0.68]}
      - name: after
        label: after big5rangedebug
        baseline: fresh/es/range
        contender: used/es/range-only-short/range
      - {name: p90, baseline: fresh/es/range, contender: fresh/os/range, metric: service_time_p90}
expectations:
  - {statement: alike when fresh, comparisons: [engines], is: alike, margin: 10%}
  - {statement: slower once used, comparisons: [after], is: slower}
"""


def write(folder: Path, text: str = EXPERIMENT, name: str = "used.yml") -> Path:
    """An experiment file."""
    path = folder / name
    path.write_text(text)
    return path


def load(folder: Path, text: str = EXPERIMENT, changes: Changes | None = None) -> Experiment:
    """The same, planned and checked."""
    return load_experiment(write(folder, text), changes or Changes(), Home(folder))
