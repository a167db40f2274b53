"""Forks of a variant grouped by the fate of a call site: whether that is why they differ."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from benchctl.report.numbers import counted, figure, p_value, visible
from benchctl.stats.inference import PermutationResult, permutation_p

_NS_PER_MS = 1e6
_MS_PER_S = 1000
_LEAST_FORKS = 2
CAVEAT = (
    "The groups were formed after the fact, from what the forks did: a difference between them is a lead, "
    "not a test of it. Force the call site either way, and compare that."
)


@dataclass(frozen=True)
class GroupedFork:
    """One fork.

    Attributes:
        block: which.
        fate: of the call site, in words.
        throughput_per_s: of the task; None where it has none.
        p90_ns: of its service time, nanoseconds; None where it has none.
        given_up_ms: when the JVM stopped using the compilation that the fate is of, milliseconds since it
            started; None if never.
    """

    block: int
    fate: str
    throughput_per_s: float | None
    p90_ns: float | None
    given_up_ms: int | None = None


@dataclass(frozen=True)
class _Metric:
    name: str
    key: str
    of: Callable[[GroupedFork], float | None]

    def values(self, forks: Sequence[GroupedFork]) -> list[float]:
        return [value for fork in forks if (value := self.of(fork)) is not None and value > 0]


_METRICS = (
    _Metric("throughput, 1/s", "throughput-per-s", lambda fork: fork.throughput_per_s),
    _Metric(
        "p90 service time, ms",
        "p90-ms",
        lambda fork: None if fork.p90_ns is None else fork.p90_ns / _NS_PER_MS,
    ),
)


def grouped(forks: Sequence[GroupedFork]) -> dict[str, list[GroupedFork]]:
    """Forks by fate, the largest group first."""
    groups: dict[str, list[GroupedFork]] = {}
    for fork in sorted(forks, key=lambda one: one.block):
        groups.setdefault(fork.fate, []).append(fork)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def groups_text(title: str, forks: Sequence[GroupedFork]) -> str:
    """For readers: every group with its forks and values, and how two groups compare.

    Args:
        title: variant, call site and task.
        forks: all that are known.
    """
    groups = grouped(forks)
    lines = [title]
    for fate, members in groups.items():
        blocks = ", ".join(str(fork.block) for fork in members)
        lines += ["", f"{fate}: {counted(len(members), 'fork')} (block {blocks})"]
        for metric in _METRICS:
            values = metric.values(members)
            if values:
                each = ", ".join(map(figure, values))
                lines.append(f"  {metric.name}: {figure(_mean(values))} (geometric mean of {each})")
        lines += [
            f"  block {fork.block}: that compilation was given up at {fork.given_up_ms / _MS_PER_S:.2f} s"
            for fork in members
            if fork.given_up_ms is not None
        ]
    lines.append("")
    if len(forks) < _LEAST_FORKS:
        lines.append(
            f"{counted(len(forks), 'fork')} with a log: nothing to group. `run --evidence inlining "
            "--evidence-forks N` gives more."
        )
    elif len(groups) == 1:
        lines.append("All forks fared alike there: this call site does not tell them apart.")
    for metric in _METRICS:
        if (test := _tested(groups, metric)) is not None:
            ratio, result = test
            lines.append(
                f"{metric.name}: second group over first {ratio:.3f}, permutation p {p_value(result.p)} "
                f"(at least {p_value(result.least)} with so few forks)"
            )
    if len(groups) > 1:
        lines.append(CAVEAT)
    return visible("\n".join(lines) + "\n")


def groups_document(title: str, forks: Sequence[GroupedFork]) -> dict[str, Any]:
    """The same for programs."""
    groups = grouped(forks)
    tests = {}
    for metric in _METRICS:
        if (test := _tested(groups, metric)) is not None:
            tests[metric.key] = {"ratio": test[0], "p": test[1].p, "least-p": test[1].least}
    return {
        "title": title,
        "groups": [
            {
                "fate": fate,
                "blocks": [fork.block for fork in members],
                "given-up-ms": [fork.given_up_ms for fork in members],
                **{metric.key: metric.values(members) for metric in _METRICS},
            }
            for fate, members in groups.items()
        ],
        "second-over-first": tests,
        "caveat": CAVEAT,
    }


def _tested(groups: dict[str, list[GroupedFork]], metric: _Metric) -> tuple[float, PermutationResult] | None:
    """Ratio of the second of two groups to the first, and whether chance does as much; None for too few."""
    sides = [metric.values(members) for members in groups.values()]
    if len(sides) != _LEAST_FORKS or min(map(len, sides)) < _LEAST_FORKS:
        return None
    first, second = (np.log(np.array(side)) for side in sides)
    return _mean(sides[1]) / _mean(sides[0]), permutation_p(first, second, paired=False)


def _mean(values: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, values)))
