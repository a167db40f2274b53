"""Which stored results may stand side by side: the newest of each variant, and why others may not."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.model import ForkRecord, RunRecord

# What of a plan decides the figures. Variants are what is compared; seed and forks only decide how well.
_ALIKE = (
    "track", "track_digest", "corpus", "segments", "ingest_clients", "schedules", "warmup_challenges",
    "restart", "heap_mb", "transport", "redline",
)  # fmt: skip


@dataclass(frozen=True)
class Side:
    """One variant's results.

    Attributes:
        label: the column's name.
        run: the record they come from.
        forks: the finished forks.
    """

    label: str
    run: RunRecord
    forks: tuple[ForkRecord, ...]


@dataclass(frozen=True)
class Selection:
    """Sides that were chosen for one comparison.

    Attributes:
        sides: in table order; the first is the baseline.
        differences: why these are unlike; empty unless the user insisted.
    """

    sides: tuple[Side, ...]
    differences: tuple[str, ...]


def unlike(one: RunRecord, other: RunRecord) -> tuple[str, ...]:
    """Why the results of two runs cannot be compared; empty when they can."""
    reasons = []
    if one.environment.fingerprint != other.environment.fingerprint:
        reasons.append(f"the hosts differ ({one.environment.hostname}, {other.environment.hostname})")
    for name in _ALIKE:
        first, second = getattr(one.plan, name), getattr(other.plan, name)
        if first != second:
            reasons.append(f"{name.replace('_', ' ')} differs ({_difference(first, second)})")
    if one.environment.benchctl != other.environment.benchctl:
        reasons.append(
            f"benchctl differs ({one.environment.benchctl}, {other.environment.benchctl})",
        )
    return tuple(reasons)


def _unlike_sides(one: tuple[str, RunRecord], other: tuple[str, RunRecord]) -> tuple[str, ...]:
    """As `unlike`, and the Java runtimes: within a run they were chosen, across runs they happened."""
    reasons = unlike(one[1], other[1])
    runtimes = [
        next((facts.jdk for facts in record.engines if facts.variant == variant), "unknown")
        for variant, record in (one, other)
    ]
    if one[1].id != other[1].id and runtimes[0] != runtimes[1]:
        return (*reasons, f"the Java runtimes differ ({runtimes[0]}, {runtimes[1]})")
    return reasons


def _difference(first: object, second: object) -> str:
    """Both values in brief; of challenges with the same names, the first task that is not the same."""
    brief = (_brief(first), _brief(second))
    if brief[0] == brief[1] and isinstance(first, tuple) and isinstance(second, tuple):
        for one, other in zip(first, second, strict=True):
            pairs = itertools.zip_longest(one.schedule, other.schedule)
            unequal = next((pair for pair in pairs if pair[0] != pair[1]), None)
            if unequal is not None:
                tasks = [
                    "nothing" if task is None else msgspec.json.encode(task).decode() for task in unequal
                ]
                return f"in {one.name}: {tasks[0]}, {tasks[1]}"
    return ", ".join(brief)


def _brief(value: object) -> str:
    """Enough of a value to see the difference."""
    if isinstance(value, tuple):
        return "+".join(str(getattr(item, "name", item)) for item in value) or "none"
    if isinstance(value, msgspec.Struct):
        return " ".join(f"{key}={str(part)[:12]}" for key, part in msgspec.structs.asdict(value).items())
    return str(value)[:16]


def select_sides(
    records: Iterable[RunRecord],
    variants: Sequence[str],
    *,
    challenge: str | None = None,
    force: bool = False,
) -> Selection:
    """Choose the newest results of each variant that may stand side by side.

    A run that holds all variants comes first, because its forks were interleaved; else, from newest to
    oldest, a run of the first variant with the newest comparable run of every other one.

    Args:
        records: candidate runs, oldest first.
        variants: names as in the runs, the baseline first.
        challenge: only runs of this challenge.
        force: take unlike runs when there are no others, and say how they differ.

    Raises:
        UsageError: a variant has no results at all.
        BenchctlError: there are only unlike results and `force` was not given.
    """
    newest = [record for record in records if challenge is None or _ran(record, challenge)][::-1]
    for variant in variants:
        if not any(record.done(variant) for record in newest):
            where = f" for challenge {challenge}" if challenge else ""
            known = sorted({fork.variant for record in newest for fork in record.forks})
            raise UsageError(
                f"there are no results of variant '{variant}'{where}",
                hint=f"stored variants: {', '.join(known) or 'none'}; see: benchctl list runs",
            )
    for record in newest:
        if all(record.done(variant) for variant in variants):
            return Selection(_sides([(variant, record) for variant in variants]), ())
    return _across_runs(newest, variants, force=force)


def _across_runs(newest: Sequence[RunRecord], variants: Sequence[str], *, force: bool) -> Selection:
    reasons: tuple[str, ...] = ()
    fallback: list[tuple[str, RunRecord]] = []
    for first in (record for record in newest if record.done(variants[0])):
        chosen = [(variants[0], first)]
        for variant in variants[1:]:
            candidates = [record for record in newest if record.done(variant)]
            pairs = [(record, _unlike_sides(chosen[0], (variant, record))) for record in candidates]
            alike = next((record for record, unequal in pairs if not unequal), None)
            if alike is None and not fallback:
                reasons = (*reasons, *(f"{variant}: {text}" for text in pairs[0][1]))
            chosen.append((variant, alike or candidates[0]))
        if not any(_unlike_sides(chosen[0], other) for other in chosen[1:]):
            return Selection(_sides(chosen), ())
        fallback = fallback or chosen
    if not force:
        raise BenchctlError(
            f"the newest results of {' and '.join(variants)} cannot be compared: {'; '.join(reasons)}",
            hint="run them in one command (benchctl run --variant ... --variant ...), narrow the choice with "
            "--challenge or --run, or give --force to compare all the same",
        )
    return Selection(_sides(fallback), reasons)


def _ran(record: RunRecord, challenge: str) -> bool:
    return any(schedule.name == challenge for schedule in record.plan.schedules)


def _sides(chosen: Iterable[tuple[str, RunRecord]]) -> tuple[Side, ...]:
    return tuple(Side(variant, record, record.done(variant)) for variant, record in chosen)
