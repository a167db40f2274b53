"""Which stored results stand side by side: the newest ones that are alike, or those that are named."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from benchctl.errors import UsageError
from benchctl.results.likeness import Variant, alike_variants, unlike_variants
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import EngineName, VariantSpec


@dataclass(frozen=True)
class Side:
    """One variant's results.

    Attributes:
        label: the column's name; no two sides of a selection have the same.
        run: the record they come from.
        forks: the finished forks.
        variant: what the run calls it.
    """

    label: str
    run: RunRecord
    forks: tuple[ForkRecord, ...]
    variant: str


@dataclass(frozen=True)
class Selection:
    """Sides that were chosen for one comparison.

    Attributes:
        sides: in table order; the first is the baseline.
        differences: why these are unlike; empty unless the user insisted.
        remarks: what else the user should know about the choice.
    """

    sides: tuple[Side, ...]
    differences: tuple[str, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """One side as it is asked for.

    Attributes:
        text: in the user's words.
        variant: its name in runs; empty for a version, and for the only variant of a run.
        version: engine and version, whatever the variant is called; None for a name.
        run: the only run that it may come from; None for the newest one that fits.
        tag: the word by which that run was found; empty when by anything else.
    """

    text: str
    variant: str = ""
    version: tuple[EngineName, str] | None = None
    run: RunRecord | None = None
    tag: str = ""

    def variant_in(self, record: RunRecord) -> str | None:
        """What a run calls it, where it has results of it; None where it has none.

        Raises:
            UsageError: several variants of the run fit.
        """
        if self.run is not None and self.run.id != record.id:
            return None
        names = [name for name in self._names(record) if record.compared(name)]
        if len(names) > 1 and self.text not in names:
            raise UsageError(
                f"'{self.text}' fits several variants of run {record.id}: {', '.join(names)}",
                hint=f"name one, such as {self.text if self.run else record.id}:{names[0]}",
            )
        return self.text if self.text in names else next(iter(names), None)

    def _names(self, record: RunRecord) -> list[str]:
        if self.variant:
            return [self.variant]
        specs = record.plan.variants
        if self.version is None:
            return [spec.name for spec in specs]
        return [
            spec.name
            for spec in specs
            if spec.name == self.text or (_is_plain(spec) and (spec.engine, spec.version) == self.version)
        ]


def _is_plain(spec: VariantSpec) -> bool:
    """A version as it was published: flags, settings or another build make it something else."""
    return not (spec.jvm_flags or spec.settings or spec.distribution)


def select_sides(
    records: Iterable[RunRecord],
    wanted: Sequence[Wanted],
    *,
    challenge: str | None = None,
    force: bool = False,
) -> Selection:
    """Choose the newest sound results of each side that may stand side by side; without any, the newest.

    A run that holds all sides comes first, because its forks were interleaved; else, from newest to oldest, a
    run of the first side with the newest comparable run of every other one. `RunRecord.unsound` says what is
    sound; runs that a side names are taken as they are.

    Args:
        records: candidate runs, newest first; iterated several times, and no further than needed.
        wanted: the sides, the baseline first.
        challenge: only runs of this challenge.
        force: take unlike runs when there are no others, and say how they differ.

    Raises:
        UsageError: a side has no results at all, fits several variants, or is the same as another.
        UsageError: there are only unlike results and `force` was not given.
    """
    named = frozenset(side.run.id for side in wanted if side.run is not None)
    newest = _Candidates(records, challenge, named)
    for side in wanted:
        if next(newest.of(side), None) is None:
            raise _missing(side, newest, challenge)
    plain = _comparable(newest, wanted)
    chosen = _comparable(_Candidates(records, challenge, named, sound=True), wanted) or plain
    differences: tuple[str, ...] = ()
    if chosen is None:
        chosen, differences = _unlike(newest, wanted, force=force)
    for place, (one, found) in enumerate(zip(wanted, chosen, strict=True)):
        twins = [
            other.text
            for other, same in zip(wanted[:place], chosen, strict=False)
            if (same[0], same[1].id) == (found[0], found[1].id)
        ]
        if twins:
            raise UsageError(
                f"'{twins[0]}' and '{one.text}' are the same results: variant {found[0]} of run {found[1].id}"
            )
    sides = tuple(
        Side(label, record, record.compared(name), name)
        for label, (name, record) in zip(_labels(wanted, chosen), chosen, strict=True)
    )
    return Selection(sides, differences, tuple(_passed_over(plain or [], chosen)))


def with_baseline(selection: Selection, name: str) -> Selection:
    """The same sides, the one of that label first.

    Raises:
        UsageError: no side is called so.
    """
    ordered = sorted(selection.sides, key=lambda side: side.label != name)
    if ordered[0].label != name:
        labels = ", ".join(side.label for side in selection.sides)
        raise UsageError(f"the baseline '{name}' is not among what is compared", hint=f"one of: {labels}")
    return replace(selection, sides=tuple(ordered))


class _Candidates:
    """The runs that may be chosen, newest first.

    Args:
        records: to choose from, newest first.
        challenge: only runs of this challenge.
        named: ids of runs that are taken as they are.
        sound: only sound results of all others.
    """

    def __init__(
        self,
        records: Iterable[RunRecord],
        challenge: str | None,
        named: Collection[str],
        *,
        sound: bool = False,
    ) -> None:
        self._records = records
        self._challenge = challenge
        self._named = named
        self._sound = sound

    def __iter__(self) -> Iterator[RunRecord]:
        return (record for record in self._records if self._ran(record))

    def of(self, side: Wanted) -> Iterator[Variant]:
        """Results of one side, newest first."""
        records = self if side.run is None else [side.run] if self._ran(side.run) else []
        found = ((self.name_in(record, side), record) for record in records)
        return ((name, record) for name, record in found if name is not None)

    def name_in(self, record: RunRecord, side: Wanted) -> str | None:
        """What a run calls a side, where its results of it may be chosen."""
        name = side.variant_in(record)
        passed = self._sound and name is not None and record.id not in self._named and record.unsound(name)
        return None if passed else name

    def _ran(self, record: RunRecord) -> bool:
        names = [schedule.name for schedule in record.plan.schedules]
        return self._challenge is None or self._challenge in names


def _missing(side: Wanted, newest: _Candidates, challenge: str | None) -> UsageError:
    where = f" for challenge {challenge}" if challenge else ""
    if side.run is not None:
        held = ", ".join(_measured(side.run)) or "no finished fork"
        return UsageError(f"run {side.run.id} has no results of '{side.text}'{where}", hint=f"it has: {held}")
    known = sorted({name for record in newest for name in _measured(record)})
    hint = f"stored variants: {', '.join(known) or 'none'}; see: benchctl list runs"
    if any(side.text in record.tags for record in newest):
        hint = f"it is a tag: write tag:{side.text}"
    return UsageError(f"there are no results of variant '{side.text}'{where}", hint=hint)


def _measured(record: RunRecord) -> list[str]:
    extra = record.plan.is_extra
    finished = (fork for fork in record.forks if fork.status == "done" and not extra(fork.block))
    return list(dict.fromkeys(fork.variant for fork in finished))


def _comparable(newest: _Candidates, wanted: Sequence[Wanted]) -> list[Variant] | None:
    return _within_one_run(newest, wanted) or _across_runs(newest, wanted)


def _passed_over(plain: Sequence[Variant], chosen: Sequence[Variant]) -> Iterator[str]:
    """What would have been compared, were it not for sounder results."""
    used = {record.id for _, record in chosen}
    over = {record.id: (name, record.unsound(name)) for name, record in reversed(plain)}
    for run, (name, reason) in over.items():
        if reason and run not in used:
            yield f"run {run} was passed over: {reason}; to compare it all the same, write {run}:{name}"


def _within_one_run(newest: _Candidates, wanted: Sequence[Wanted]) -> list[Variant] | None:
    """The newest run that holds all sides."""
    pinned = next((side for side in wanted if side.run is not None), None)
    for _, record in newest.of(pinned or wanted[0]):
        names = [newest.name_in(record, side) for side in wanted]
        if all(name is not None for name in names):
            return [(name, record) for name in names if name is not None]
    return None


def _across_runs(newest: _Candidates, wanted: Sequence[Wanted]) -> list[Variant] | None:
    """From newest to oldest, the first side's results with the newest ones that are like them."""
    for first in newest.of(wanted[0]):
        like = _like(newest, first, wanted)
        if all(like):
            return [first, *(found for found in like if found is not None)]
    return None


def _like(newest: _Candidates, first: Variant, wanted: Sequence[Wanted]) -> list[Variant | None]:
    """The newest results of the other sides that are like those of the first."""
    return [
        next((found for found in newest.of(side) if alike_variants(first, found)), None)
        for side in wanted[1:]
    ]


def _unlike(
    newest: _Candidates, wanted: Sequence[Wanted], *, force: bool
) -> tuple[list[Variant], tuple[str, ...]]:
    """The newest results of all sides where none are alike, and how they differ."""
    first = next(newest.of(wanted[0]))
    like = zip(_like(newest, first, wanted), wanted[1:], strict=True)
    fallback = [first, *(found or next(newest.of(side)) for found, side in like)]
    reasons = tuple(
        f"{side.text}: {text}"
        for side, found in zip(wanted[1:], fallback[1:], strict=True)
        for text in unlike_variants(fallback[0], found)
    )
    if not force:
        texts = " and ".join(side.text for side in wanted)
        raise UsageError(
            f"the newest results of {texts} cannot be compared: {'; '.join(reasons)}",
            hint="run them in one command (benchctl run --variant ... --variant ...), narrow the choice with "
            "--challenge or --run, or give --force to compare all the same",
        )
    return fallback, reasons


def _labels(wanted: Sequence[Wanted], chosen: Sequence[Variant]) -> list[str]:
    """Names of columns: the variant's, or a version as asked for; with the run where that is not enough."""
    labels = [
        side.text if side.version is not None else name
        for side, (name, _) in zip(wanted, chosen, strict=True)
    ]
    for name_run in (_by_tag, _by_beginning):
        labels = [
            f"{name_run(side, record, chosen)}:{name}" if labels.count(label) > 1 else label
            for side, label, (name, record) in zip(wanted, labels, chosen, strict=True)
        ]
    return labels


_RunNamer = Callable[[Wanted, RunRecord, Sequence[Variant]], str]


def _by_tag(side: Wanted, record: RunRecord, chosen: Sequence[Variant]) -> str:
    """The tag that it was found by, else one that no other of the runs has, else the beginning of its id."""
    if side.tag:
        return side.tag
    others = {tag for _, other in chosen if other.id != record.id for tag in other.tags}
    own = [tag for tag in record.tags if tag not in others]
    return own[0] if own else _by_beginning(side, record, chosen)


def _by_beginning(_side: Wanted, record: RunRecord, chosen: Sequence[Variant]) -> str:
    """As many parts of its id, between hyphens, as no other run begins with."""
    others = {other.id for _, other in chosen} - {record.id}
    parts = record.id.split("-")
    beginnings = ["-".join(parts[:count]) for count in range(2, len(parts))]
    return next(
        (text for text in beginnings if not any(other.startswith(text) for other in others)), record.id
    )
