"""Inlining logs, as text and JSON for readers: trees, groups of forks, and how variants differ."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import geometric_mean
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from benchctl.evidence.call_sites import (
    Compared,
    Difference,
    Found,
    FoundCompilation,
    NotInlined,
    Site,
    found_at,
)
from benchctl.evidence.inlining_log import Account
from benchctl.evidence.inlining_tree import Call, Compilation, CutTree, Fate, Receiver, in_library, simple
from benchctl.report.numbers import counted, figure, p_value, visible
from benchctl.stats.inference import Contrast, difference_of

FOUND_WORDS: Mapping[Found, str] = MappingProxyType(
    {
        "inlined": "inlined",
        "partly": "inlined in part",
        "virtual": "virtual call",
        "refused": "not inlined",
        "absent": "not compiled by C2",
    }
)
PARTLY = "inlined in part: calls of some receivers are inlined, those of others dispatched"
"""Explanation of the outcome that HotSpot has no word for."""


_MS_PER_S = 1000
_BCI = "\0"
_COMPILERS = {0: "a wrapper", 1: "C1", 2: "C1", 3: "C1", 4: "C2"}
_CUT = "what the Java library does within itself, and accessors"


def tree_text(label: str, found: FoundCompilation, cut: CutTree, account: Account) -> str:
    """Return a tree for readers, with what was cut, and what of the log could not be read."""
    lines = [f"{label}: {title(found.compilation)}"]
    if found.given_up_ms is not None:
        lines.append(
            f"(given up {found.given_up_ms / _MS_PER_S:.2f} s after the JVM began, and not compiled again)"
        )
    if not found.as_root and found.compilation.id is not None:
        lines.append("(never compiled by itself there: only its calls, and the way to them)")
    if found.others:
        lines.append(f"(the newest of {found.others + 1} of its compilations at that level)")
    by_parent: dict[int, list[tuple[int, Call]]] = {}
    for at, call in cut.calls:
        by_parent.setdefault(call.parent, []).append((at, call))
    lines += _site_lines(by_parent, -1)
    if cut.cut:
        lines.append(f"{counted(cut.cut, 'call')} not shown: {_CUT}, or too deep; --all shows them")
    lines += [f"not understood: {line.strip()}" for line in found.tree.unread]
    lines.append(account_text(account))
    return visible("\n".join(lines) + "\n")


def tree_document(label: str, found: FoundCompilation, cut: CutTree, account: Account) -> dict[str, Any]:
    """Return the tree for programs."""
    return {
        "log": label,
        "compilation": msgspec.to_builtins(found.compilation),
        "given-up-ms": found.given_up_ms,
        "as-root": found.as_root,
        "older": found.others,
        "calls": [_call_document(at, call) for at, call in cut.calls],
        "cut": cut.cut,
        "unread": list(found.tree.unread),
        "lines": account.lines,
        "foreign-lines": account.foreign,
    }


def title(compilation: Compilation) -> str:
    """Return what was compiled, by what, and when."""
    if compilation.id is None:
        return "a fragment, without what was compiled"
    size = "native" if compilation.size is None else f"{compilation.size} bytes"
    osr = "" if compilation.osr_bci is None else f", entered at bci {compilation.osr_bci}"
    compiler = _COMPILERS.get(compilation.level or 0, "?")
    when = (
        ""
        if compilation.stamp_ms is None
        else f" {compilation.stamp_ms / _MS_PER_S:.2f} s after the JVM began"
    )
    level = "" if compilation.level is None else f", level {compilation.level}"
    return f"{compilation.method} ({size}{osr}), by {compiler}{level}, id {compilation.id},{when}"


def account_text(account: Account) -> str:
    """Return how much the log holds, and how much of it could not be read."""
    parts = [f"{counted(account.lines, 'line')}, {counted(account.compilations, 'compilation')}"]
    if account.foreign:
        parts.append(
            f"{counted(account.foreign, 'line')} not of the JVM's log, such as: {account.samples[0].strip()}"
        )
    if account.heads > 1 and not account.names_threads:
        parts.append(
            "it does not say which thread wrote what: a call may stand in another compilation's tree"
        )
    return "log: " + "; ".join(parts)


def receivers_text(receivers: tuple[Receiver, ...]) -> str:
    """Return `PointRangeQuery$1$1 274,304 of 274,431, ...`, or that the log says none."""
    if not receivers:
        return "no type profile"
    ordered = sorted(receivers, key=lambda receiver: (-receiver.count, receiver.name))
    seen = ", ".join(f"{simple(receiver.name)} {receiver.count:,}" for receiver in ordered)
    return f"{seen} of {ordered[0].total:,}"


def _site_lines(children: dict[int, list[tuple[int, Call]]], parent: int) -> list[str]:
    """The call sites of one caller; neighbours with the same in them stand together: `@ 35, 50, 72`."""
    folded: list[tuple[list[int], list[str]]] = []
    for bci, site in groupby(children.get(parent, ()), key=lambda one: one[1].bci):
        lines = [line for at, call in site for line in (*_call_lines(call), *_site_lines(children, at))]
        if folded and folded[-1][1] == lines:
            folded[-1][0].append(bci)
        else:
            folded.append(([bci], lines))
    return [line.replace(_BCI, ", ".join(map(str, bcis))) for bcis, lines in folded for line in lines]


def _call_lines(call: Call) -> list[str]:
    """Return a call's text, with a mark if its bci is unknown."""
    indent = "  " * (call.depth + 1)
    callee = call.callee if in_library(call.callee) else simple(call.callee)
    size = "not loaded" if call.size is None else f"{call.size} bytes"
    lines = [f"{indent}@ {_BCI}  {callee} ({size})  {call.text}"]
    if call.receivers:
        lines.append(f"{indent}   saw {receivers_text(call.receivers)}")
    return lines


def _call_document(at: int, call: Call) -> dict[str, Any]:
    return {
        "position": at,
        "parent": call.parent,
        "depth": call.depth,
        "caller": call.caller,
        "bci": call.bci,
        "callee": call.callee,
        "bytecodes": call.size,
        "fate": call.fate.value,
        "outcome": call.fate.outcome,
        "text": call.text,
        "receivers": msgspec.to_builtins(call.receivers),
    }


_NS_PER_MS = 1e6
_LEAST_FORKS = 2
CAVEAT = (
    "The groups were formed after the fact, from what the forks did: a difference between them is a lead, "
    "not a test of it. Force the call site either way, and compare that."
)


@dataclass(frozen=True)
class GroupedFork:
    """A fork."""

    block: int
    fate: str
    throughput_per_s: float | None  # of the task; None where it has none
    p90_ns: float | None  # of its service time, nanoseconds; None where it has none
    # When the JVM stopped using the compilation that the fate is of, milliseconds since it started; None if
    # never.
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
    """Return forks by fate, the largest group first."""
    groups: dict[str, list[GroupedFork]] = {}
    for fork in sorted(forks, key=lambda one: one.block):
        groups.setdefault(fork.fate, []).append(fork)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def groups_text(title: str, forks: Sequence[GroupedFork]) -> str:
    """Return every group with its forks and values, and how two groups compare."""
    groups = grouped(forks)
    lines = [title]
    for fate, members in groups.items():
        blocks = ", ".join(str(fork.block) for fork in members)
        lines += ["", f"{fate}: {counted(len(members), 'fork')} (block {blocks})"]
        for metric in _METRICS:
            values = metric.values(members)
            if values:
                each = ", ".join(map(figure, values))
                lines.append(f"  {metric.name}: {figure(geometric_mean(values))} (geometric mean of {each})")
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
        lines.append("All forks have the same outcome there: this call site does not tell them apart.")
    for metric in _METRICS:
        if (test := _tested(groups, metric)) is not None:
            low, high = test.interval(0.95)
            lines.append(
                f"{metric.name}: second group over first {math.exp(test.estimate):.3f} "
                f"({math.exp(low):.3f} to {math.exp(high):.3f}), p {p_value(test.p)}"
            )
    if len(groups) > 1:
        lines.append(CAVEAT)
    return visible("\n".join(lines) + "\n")


def groups_document(title: str, forks: Sequence[GroupedFork]) -> dict[str, Any]:
    """Return the groups for programs."""
    groups = grouped(forks)
    tests = {}
    for metric in _METRICS:
        if (test := _tested(groups, metric)) is not None:
            low, high = (math.exp(log) for log in test.interval(0.95))
            tests[metric.key] = {"ratio": math.exp(test.estimate), "low": low, "high": high, "p": test.p}
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


def _tested(groups: dict[str, list[GroupedFork]], metric: _Metric) -> Contrast | None:
    """Compare the logarithms of the second of two groups with the first's; None for too few."""
    sides = [metric.values(members) for members in groups.values()]
    if len(sides) != _LEAST_FORKS or min(map(len, sides)) < _LEAST_FORKS:
        return None
    first, second = (np.log(np.array(side)) for side in sides)
    return difference_of(first, second, paired=False)


def differences_text(sides: tuple[str, str], labels: tuple[str, str], compared: Compared, scope: str) -> str:
    """Return what differs, the most called first; sites of one caller that fared alike stand together.

    `sides` are short names, `labels` name the logs, and `scope` says which callers were looked at.
    """
    lines = [f"Calls that are inlined on one side and virtual on the other, {scope}"]
    lines += [f"  {side}: {label}" for side, label in zip(sides, labels, strict=True)]
    for _, group in groupby(compared.differences, key=_alike):
        lines += ["", *_group_lines(sides, list(group))]
    if not compared.differences:
        lines += ["", "none"]
    lines += [
        "",
        f"{counted(compared.matched, 'call site')} in newest compilations by C2 on both sides,",
        f"{compared.baseline_only:,} only in {sides[0]}'s, {compared.contender_only:,} only in {sides[1]}'s.",
        f"Inlined in {sides[0]}, not in {sides[1]}: {_not_inlined(compared.inlined_in_baseline)};",
        f"inlined in {sides[1]}, not in {sides[0]}: {_not_inlined(compared.inlined_in_contender)}.",
        "Counts are those of type profiles when C2 compiled; for a virtual call HotSpot prints none.",
    ]
    return visible("\n".join(lines) + "\n")


def _not_inlined(counts: Mapping[NotInlined, int]) -> str:
    return f"{sum(counts.values()):,}, {counts['virtual']:,} of them virtual"


def differences_document(
    sides: tuple[str, str], labels: tuple[str, str], compared: Compared, scope: str
) -> dict[str, Any]:
    """Return the differences for programs, site by site."""
    return {
        "sides": dict(zip(sides, labels, strict=True)),
        "scope": scope,
        "matched": compared.matched,
        "only": {sides[0]: compared.baseline_only, sides[1]: compared.contender_only},
        "inlined_only": {
            sides[0]: compared.inlined_in_baseline,
            sides[1]: compared.inlined_in_contender,
        },
        "differences": [
            {
                "caller": difference.baseline.key.caller,
                "name": difference.baseline.key.name,
                "calls": difference.calls,
                "moved": difference.moved,
                sides[0]: _site_document(difference.baseline),
                sides[1]: _site_document(difference.contender),
            }
            for difference in compared.differences
        ],
    }


def _alike(one: Difference) -> tuple[object, ...]:
    return (
        one.baseline.key.caller,
        one.baseline.key.name,
        one.calls,
        one.moved,
        one.baseline.words,
        one.contender.words,
        one.baseline.compilation,
        one.contender.compilation,
    )


def _group_lines(sides: tuple[str, str], group: Sequence[Difference]) -> list[str]:
    first = group[0]
    caller, name = simple(first.baseline.key.caller), first.baseline.key.name
    lines = [
        (
            f"{name} in {caller}, bci {_bcis([difference.baseline for difference in group])}: "
            f"{counted(first.calls, 'call')}"
        )
    ]
    if first.moved:
        bcis = _bcis([difference.contender for difference in group])
        lines.append(f"  (bci {bcis} in {sides[1]}: another version of the class, matched by the name)")
    for side, site in zip(sides, (first.baseline, first.contender), strict=True):
        lines += _side_lines(side, site)
    return lines


def _side_lines(side: str, site: Site) -> list[str]:
    lines = [
        f"  {side}: {simple(callee)}  {said if fate is Fate.OTHER else fate.value}"
        for callee, fate, said in site.callees
    ]
    if found_at(site) == "partly":
        lines.append(f"  {' ' * len(side)}  {PARTLY}")
    if site.receivers:
        lines.append(f"  {' ' * len(side)}  saw {receivers_text(site.receivers)}")
    where = site.compilation
    stamp = "" if where.stamp_ms is None else f" at {where.stamp_ms / _MS_PER_S:.2f} s"
    since = "" if site.given_up_ms is None else f", given up at {site.given_up_ms / _MS_PER_S:.2f} s"
    method = simple(where.method) or "a fragment"
    lines.append(f"  {' ' * len(side)}  in the compilation of {method}{stamp}{since}")
    return lines


def _bcis(sites: Sequence[Site]) -> str:
    return ", ".join(str(site.key.bci) for site in sites)


def _site_document(site: Site) -> dict[str, Any]:
    return {
        "bci": site.key.bci,
        "callees": [
            {"callee": callee, "fate": fate.value, "outcome": fate.outcome, "text": said}
            for callee, fate, said in site.callees
        ],
        "found": found_at(site),
        "receivers": msgspec.to_builtins(site.receivers),
        "compilation": msgspec.to_builtins(site.compilation),
        "given-up-ms": site.given_up_ms,
        "copies": site.copies,
    }
