"""Selection of stored results to compare: user input, existing runs, and comparability."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from benchctl.errors import UsageError
from benchctl.results.likeness import Variant, alike_variants, same_tasks, unlike_variants
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import EngineName, Swept, VariantSpec
from benchctl.results.store import LATEST, RunFolder, RunStore, listing


class Archive:
    """Runs to choose from: those of a store, each read once, and only when it is asked for.

    Attributes:
        only: names of the runs that count, as `RunStore.find` takes them; empty for all of the store.
        unreadable: why runs of the store were skipped, as far as it has been read.
        listing: the command that lists the runs of the store.

    Raises:
        BenchctlError: If a run of `only` cannot be found or read.
    """

    def __init__(self, store: RunStore, only: Sequence[str] = ()) -> None:
        self._store = store
        self.listing = listing(store.root)
        self.only = tuple(dict.fromkeys(only))
        self._folders: dict[str, RunFolder] = {}  # by id
        self._named: dict[str, RunRecord] = {}
        self.unreadable: list[str] = []
        named = {record.id: record for record in map(self.find, self.only)}
        self._newest = sorted(named.values(), key=lambda record: record.created, reverse=True)
        self._rest = iter([]) if only else store.runs(self.unreadable.append, newest_first=True)

    def __iter__(self) -> Iterator[RunRecord]:
        """Newest first. Concurrent iterations share what has been read."""
        place = 0
        while True:
            if place == len(self._newest):
                folder, record = next(self._rest, (None, None))
                if folder is None or record is None:
                    return
                self._folders.setdefault(record.id, folder)
                self._newest.append(record)
            yield self._newest[place]
            place += 1

    def find(self, name: str) -> RunRecord:
        """Return the run of that name, whether it is one of those to choose from or not.

        Raises:
            UsageError: If no run matches, or several do.
            BenchctlError: If the record cannot be read.
        """
        if name not in self._named:  # what there is to say of it is said once
            folder = self._store.find(name)
            self._named[name] = folder.load()
            self._folders.setdefault(self._named[name].id, folder)
        return self._named[name]

    def names(self, name: str) -> bool:
        """Return whether a name may mean any run of the store; reads no run."""
        return self._store.names(name)

    def folder_of(self, record: RunRecord) -> RunFolder:
        """Return the folder of a run from here."""
        return self._folders[record.id]


@dataclass(frozen=True)
class Side:
    """A variant's results."""

    label: str  # the column's name; no two sides of a selection have the same
    run: RunRecord
    forks: tuple[ForkRecord, ...]
    variant: str
    further: tuple["Side", ...] = ()  # the same in other runs, each of which is one observation

    @property
    def parts(self) -> tuple["Side", ...]:
        """The side run by run."""
        return (self, *self.further)

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """Runs, in the order of the parts."""
        return tuple(part.run for part in self.parts)


@dataclass(frozen=True)
class Selection:
    """Sides that were chosen for one comparison."""

    sides: tuple[Side, ...]  # in table order; the first is the baseline
    differences: tuple[str, ...]  # why these are unlike; empty unless the user insisted
    remarks: tuple[str, ...] = ()  # what else the user should know about the choice

    @property
    def parts(self) -> tuple[Side, ...]:
        """Sides, run by run."""
        return tuple(part for side in self.sides for part in side.parts)


@dataclass(frozen=True)
class Wanted:
    """A side as it is asked for."""

    text: str
    variant: str = ""  # its name in runs; empty for a version, and for the only variant of a run
    # Engine and version, whatever the variant is called; None for a name.
    version: tuple[EngineName, str] | None = None
    # The only runs that it comes from, all of them if several; empty for the newest one that fits.
    runs: tuple[RunRecord, ...] = ()
    tag: str = ""  # that its runs must have; empty for any

    def variant_in(self, record: RunRecord) -> str | None:
        """Return the variant's name in a run that has results of it; else None.

        Raises:
            UsageError: If several variants of the run fit.
        """
        if self.runs and all(run.id != record.id for run in self.runs):
            return None
        if self.tag and self.tag not in record.tags:
            return None
        names = [spec.name for spec in record.plan.variants if self._fits(spec) and record.has(spec.name)]
        if len(names) > 1 and self.text not in names:
            raise UsageError(
                f"'{self.text}' fits several variants of run {record.id}: {', '.join(names)}",
                hint=f"name one, such as {self.text if self.runs or self.tag else record.id}:{names[0]}",
            )
        return self.text if self.text in names else next(iter(names), None)

    def _fits(self, spec: VariantSpec) -> bool:
        if self.variant:
            return spec.name == self.variant
        # A version as published: flags, settings or another build make it something else.
        changed = spec.jvm_flags or spec.settings or spec.distribution
        plain = not changed and (spec.engine, spec.version) == self.version
        return self.version is None or spec.name == self.text or plain


@dataclass(frozen=True)
class _Candidates:
    """The runs that may be chosen, newest first."""

    records: Iterable[RunRecord]
    challenge: str | None = None  # only those of this one
    named: Collection[str] = ()  # ids of runs that are taken as they are
    sound: bool = False  # whether to exclude unsound results of all others

    def __iter__(self) -> Iterator[RunRecord]:
        return filter(self._ran, self.records)

    def of(self, side: Wanted) -> Iterator[Variant]:
        """Return results of one side, newest first; in the order given if its runs are."""
        records = filter(self._ran, side.runs or self.records)
        named = ((self.name_in(record, side), record) for record in records)
        return ((name, record) for name, record in named if name is not None)

    def name_in(self, record: RunRecord, side: Wanted) -> str | None:
        """Return the name of a side in a run whose results of it may be chosen."""
        name = side.variant_in(record)
        passed = self.sound and name is not None and record.id not in self.named and record.unsound(name)
        return None if passed else name

    def chosen(self, wanted: Sequence[Wanted]) -> list[Variant] | None:
        """Return the results of all sides in the newest run that has them; else in the newest ones alike."""
        for _, record in self.of(next((side for side in wanted if side.runs), wanted[0])):
            names = [self.name_in(record, side) for side in wanted]
            if all(name is not None for name in names):
                return [(name, record) for name in names if name is not None]
        for first in self.of(wanted[0]):
            found = [first, *(self.like(first, side) for side in wanted[1:])]
            if all(found):
                return [variant for variant in found if variant is not None]
        return None

    def like(
        self, first: Variant, side: Wanted, alike: Callable[[Variant, Variant], bool] = alike_variants
    ) -> Variant | None:
        """Return the newest results of a side that are like others."""
        return next((variant for variant in self.of(side) if alike(first, variant)), None)

    def _ran(self, record: RunRecord) -> bool:
        names = {schedule.name for schedule in record.plan.schedules}.union(record.plan.challenges)
        return self.challenge is None or self.challenge in names


def select_sides(
    records: Iterable[RunRecord],
    wanted: Sequence[Wanted],
    *,
    challenge: str | None = None,
    force: bool = False,
) -> Selection:
    """Choose the newest sound results of each side that may stand side by side; without any, the newest.

    A run that holds all sides comes first, because its forks were interleaved; else, from newest to
    oldest, a run of the first side with the newest comparable run of every other one. `RunRecord.unsound`
    says what is sound; runs that a side names are taken as they are. A side that names several runs has them
    all, and so has a tag where no run holds all sides.

    Args:
        records: candidate runs, newest first; iterated several times, and no further than needed.
        wanted: the sides, the baseline first.
        challenge: only runs of this challenge.
        force: take unlike runs when there are no others, and say how they differ.

    Raises:
        UsageError: If a side has no results, fits several variants, or is the same as another; or there
            are only unlike results and `force` was not given.
    """
    named = frozenset(run.id for side in wanted for run in side.runs)
    newest = _Candidates(records, challenge, named)
    for side in wanted:
        if next(newest.of(side), None) is None:
            raise _missing(side, newest, challenge)
    plain = newest.chosen(wanted)
    chosen = replace(newest, sound=True).chosen(wanted) or plain
    differences: tuple[str, ...] = ()
    if chosen is None:
        chosen, differences = _unlike(newest, wanted, force=force)
    apart = len({record.id for _, record in chosen}) > 1
    remarks = list(_passed_over(plain or [], chosen))
    sides: list[Side] = []
    owners: dict[tuple[str, str], Wanted] = {}
    for label, side, variant in zip(_labels(wanted, chosen), wanted, chosen, strict=True):
        pooled = len(side.runs) > 1 or (side.tag and apart)
        results, left_out = _in_runs(newest.of(side) if pooled else (), side, variant)
        remarks += left_out
        for name, record in results:
            twin = owners.setdefault((name, record.id), side)
            if twin is not side:
                raise UsageError(
                    f"'{twin.text}' and '{side.text}' are the same results: variant {name} of run {record.id}"
                )
        parts = [Side(label, record, record.compared(name), name) for name, record in results]
        sides.append(replace(parts[0], further=tuple(parts[1:])))
    return Selection(tuple(sides), differences, tuple(remarks))


def _in_runs(more: Iterable[Variant], side: Wanted, first: Variant) -> tuple[list[Variant], list[str]]:
    """The results of a side in several runs, the chosen ones first, and which runs do not join them."""
    results = {first[1].id: first}
    left_out = []
    for name, record in more:
        reason = _not_joined(first, (name, record)) or (record.unsound(name) if side.tag else "")
        if reason and side.runs:
            raise UsageError(f"run {record.id} cannot join run {first[1].id}: {reason}")
        if reason:
            left_out.append(f"run {record.id} is not included: {reason}")
        else:
            results.setdefault(record.id, (name, record))
    return list(results.values()), left_out


def _not_joined(first: Variant, other: Variant) -> str:
    """The reason why two runs cannot form one side: it has to be the same build, measured the same way."""
    builds = [
        " ".join(filter(None, (spec.name, spec.version, spec.distribution)))
        for name, run in (other, first)
        for spec in run.plan.variants
        if spec.name == name
    ]
    if builds[0] != builds[1]:
        return f"another build ({', '.join(builds)})"
    return next(iter(unlike_variants(first, other)), "" if same_tasks(first[1], other[1]) else "other tasks")


def _missing(side: Wanted, newest: _Candidates, challenge: str | None) -> UsageError:
    where = f" for challenge {challenge}" if challenge else ""
    if side.runs:
        run = side.runs[0]
        held = ", ".join(_measured(run)) or "no finished fork"
        return UsageError(f"run {run.id} has no results of '{side.text}'{where}", hint=f"it has: {held}")
    names = sorted({name for record in newest for name in _measured(record)})
    stored = f"stored variants: {', '.join(names)}; see: " if names else "list runs with: "
    listed = newest.records.listing if isinstance(newest.records, Archive) else "benchctl runs list"
    hint = f"{stored}{listed}"
    if any(side.text in record.tags for record in newest):
        hint = f"it is a tag: write tag:{side.text}"
    return UsageError(f"no results of variant '{side.text}'{where}", hint=hint)


def _measured(record: RunRecord) -> list[str]:
    return [spec.name for spec in record.plan.variants if record.has(spec.name)]


def _passed_over(plain: Sequence[Variant], chosen: Sequence[Variant]) -> Iterator[str]:
    """Yield what would have been compared without sounder results."""
    used = {record.id for _, record in chosen}
    over = {record.id: (name, record.unsound(name)) for name, record in reversed(plain)}
    for run, (name, reason) in over.items():
        if reason and run not in used:
            yield f"run {run} was skipped: {reason}; to compare it anyway, write {run}:{name}"


def _unlike(
    newest: _Candidates, wanted: Sequence[Wanted], *, force: bool
) -> tuple[list[Variant], tuple[str, ...]]:
    """The newest results of all sides if none are alike, and how they differ but for their tasks."""
    first = next(newest.of(wanted[0]))
    found, reasons = [first], []
    for side in wanted[1:]:
        variant = (
            newest.like(first, side)
            or newest.like(first, side, lambda one, other: not unlike_variants(one, other))
            or next(newest.of(side))
        )
        found.append(variant)
        if unlike := unlike_variants(first, variant):
            reasons.append(f"{side.text}: {'; '.join(unlike)}")
    if reasons and not force:
        raise UsageError(
            f"the newest results of {' and '.join(side.text for side in wanted)} cannot be compared: "
            f"{'; '.join(reasons)}",
            hint="run them in one command (benchctl run --variant ... --variant ...), narrow the choice with "
            "--challenge or --run, or give --force to compare them anyway",
        )
    return found, tuple(reasons)


def _labels(wanted: Sequence[Wanted], chosen: Sequence[Variant]) -> list[str]:
    """Names of columns: the variant's, or a version as asked for; with the run if that is not enough."""
    labels = [side.text if side.version else name for side, (name, _) in zip(wanted, chosen, strict=True)]
    return [
        f"{_run_name(side, record, chosen)}:{name}" if labels.count(label) > 1 else label
        for side, label, (name, record) in zip(wanted, labels, chosen, strict=True)
    ]


def _run_name(side: Wanted, record: RunRecord, chosen: Sequence[Variant]) -> str:
    """A tag that no other of the runs has, or as many parts of its id as no other begins with."""
    others = [other for _, other in chosen if other.id != record.id]
    tags = sorted(set(record.tags).difference(*(other.tags for other in others)))
    if tags:
        return side.tag if side.tag in tags else tags[0]
    parts = record.id.split("-")
    beginnings = ("-".join(parts[:count]) for count in range(2, len(parts)))
    own = (text for text in beginnings if not any(other.id.startswith(text) for other in others))
    return next(own, record.id)


_ENGINES: Mapping[str, EngineName] = {
    "es": "elasticsearch",
    "os": "opensearch",
    "elasticsearch": "elasticsearch",
    "opensearch": "opensearch",
}
_VERSION = re.compile(r"(?P<engine>[a-z]+)@(?P<version>[0-9]\S*)")
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-")  # no variant is called so
_LEAST_SIDES = 2
_FORMS = (
    "VARIANT, ENGINE@VERSION, RUN, RUN:VARIANT, several of these with commas, tag:NAME or tag:NAME:VARIANT"
)


def choose_sides(
    archive: Archive,
    texts: Sequence[str],
    *,
    challenge: str | None = None,
    baseline: str | None = None,
    force: bool = False,
) -> Selection:
    """Find the sides of a comparison.

    If the archive is of some runs only, one variant stands for its results in each of these, and no text
    at all for the runs themselves; of several variants, all these runs are compared. A run that is the only
    side stands for its variants.

    Args:
        archive: the runs to choose from.
        texts: the sides, the first one the baseline unless `baseline` says otherwise.
        challenge: only runs of this challenge.
        baseline: which of the sides, by its text or the label of its column.
        force: compare unlike results when there are no others.

    Raises:
        UsageError: If a text fits nothing or several things, or fewer than two sides remain.
        BenchctlError: If only unlike results exist and `force` is false.
    """
    if len(archive.only) > 1 and len(texts) <= 1:
        # One side stands for its results in each of the named runs.
        texts = [f"run:{run}:{texts[0]}" if texts else f"run:{run}" for run in archive.only]
    texts = list(texts)
    if len(texts) == 1:
        texts = _variants_of_run(texts[0], archive) or texts
    if len(texts) < _LEAST_SIDES:
        raise UsageError(
            "a comparison requires at least two sides",
            hint=f"e.g. benchctl compare es os; a side is {_FORMS}; for a whole run: benchctl show RUN",
        )
    wanted = [parse_side(text, archive) for text in texts]
    if len(archive.only) > 1:
        wanted = [replace(side, runs=side.runs or tuple(archive)) for side in wanted]
    selection = select_sides(archive, wanted, challenge=challenge, force=force)
    sides = list(selection.sides)
    if baseline is not None:
        labels = [side.label for side in sides]
        names = texts if baseline in texts else labels
        if baseline not in names:
            raise UsageError(
                f"the baseline '{baseline}' is not among what is compared",
                hint=f"one of: {', '.join(labels)}",
            )
        sides.insert(0, sides.pop(names.index(baseline)))
    remarks = (*selection.remarks, *archive.unreadable)
    return Selection(tuple(sides), selection.differences, remarks)


def _variants_of_run(text: str, archive: Archive) -> list[str]:
    """Name the variants of a run as sides; none if the text is no run, or one variant."""
    side = parse_side(text, archive)
    if side.variant or side.version or len(side.runs) > 1:
        return []
    run = next(iter(side.runs), None) or next(record for record in archive if side.tag in record.tags)
    return [f"{text}:{spec.name}" for spec in run.plan.variants if run.has(spec.name)]


def at_point(selection: Selection, point: Collection[str]) -> Selection:
    """Return the sides with only those challenges that their runs' sweeps have at a point.

    Args:
        selection: sides of sweeps.
        point: `AXIS=VALUE`, of axes that challenges have.

    Raises:
        UsageError: If a run has no challenge there.
    """
    sides = (
        replace(_at(side, point), further=tuple(_at(part, point) for part in side.further))
        for side in selection.sides
    )
    return replace(selection, sides=tuple(sides))


def _at(side: Side, point: Collection[str]) -> Side:
    run, swept = side.run, side.run.plan.swept
    points = [] if swept is None else [_point_texts(schedule) for schedule in swept.schedules]
    here = {number for number, texts in enumerate(points) if texts.issuperset(point)}
    if swept is None or not here:
        existing = ", ".join(sorted(frozenset[str]().union(*points)))
        raise UsageError(
            f"--at: run {run.id} has no challenge at {', '.join(point)}",
            hint=f"it has: {existing or 'no points'}; choose runs with --run",
        )
    # Challenges keep their positions, by which forks and samples are known.
    schedules = tuple(
        challenge if number in here else msgspec.structs.replace(challenge, schedule=())
        for number, challenge in enumerate(run.plan.schedules)
    )
    axes = tuple(axis for axis in swept.axes if not any(text.startswith(f"{axis.name}=") for text in point))
    plan = msgspec.structs.replace(
        run.plan, schedules=schedules, swept=msgspec.structs.replace(swept, axes=axes)
    )
    forks = tuple(
        msgspec.structs.replace(
            fork, summaries=tuple(summary for summary in fork.summaries if summary.schedule in here)
        )
        for fork in run.forks
    )
    run = msgspec.structs.replace(run, plan=plan, forks=forks)
    return replace(side, run=run, forks=run.compared(side.variant))


def _point_texts(schedule: Swept) -> frozenset[str]:
    return frozenset(f"{name}={value}" for name, value in schedule.at.items())


def parse_side(text: str, archive: Archive) -> Wanted:
    """Read one side; `variant:NAME` and `run:NAME` are always unambiguous.

    Raises:
        UsageError: If the text fits nothing, or several things.
    """
    if "," in text:
        parts = [parse_side(part, archive) for part in text.split(",")]
        if not all(part.runs for part in parts) or len({part.variant for part in parts}) > 1:
            raise UsageError(f"'{text}': only runs can be joined by commas", hint="RUN:es,RUN:es,RUN:es")
        runs = {run.id: run for part in parts for run in part.runs}
        return replace(parts[0], runs=tuple(runs.values()))
    kind, colon, rest = text.partition(":")
    if colon and kind == "tag":
        return _tagged(text, rest, archive)
    if colon and kind == "variant":
        return Wanted(rest, variant=rest)
    if colon and kind == "run":
        return _of_run(text, rest, archive)
    version = _VERSION.fullmatch(text)
    if version is not None and version["engine"] in _ENGINES:
        return Wanted(text, version=(_ENGINES[version["engine"]], version["version"]))
    return _of_run(text, text, archive) if colon or "/" in text else _bare(text, archive)


def _bare(text: str, archive: Archive) -> Wanted:
    """A word that may be a variant's name, or a part of a run's id."""
    is_run = archive.names(text)
    if _ID.match(text) or text == LATEST:
        return Wanted(text, runs=(archive.find(text),))
    if not any(spec.name == text for record in archive for spec in record.plan.variants):
        return Wanted(text, runs=(archive.find(text),)) if is_run else Wanted(text, variant=text)
    if is_run:
        raise UsageError(
            f"'{text}' names both a variant and a run", hint=f"write variant:{text} or run:{text}"
        )
    return Wanted(text, variant=text)


def _of_run(text: str, name: str, archive: Archive) -> Wanted:
    """`RUN` or `RUN:VARIANT`; a path may have a colon of its own."""
    run, colon, variant = name.rpartition(":")
    if colon and not archive.names(name):
        return Wanted(text, variant=variant, runs=(archive.find(run),))
    return Wanted(text, runs=(archive.find(name),))


def _tagged(text: str, rest: str, archive: Archive) -> Wanted:
    """`tag:NAME` or `tag:NAME:VARIANT`: the newest run with that tag; a tag may have a colon of its own."""
    name, colon, variant = rest.rpartition(":")
    for record in archive:
        if rest in record.tags:
            return Wanted(text, tag=rest)
        if colon and name in record.tags and record.compared(variant):
            return Wanted(text, variant=variant, tag=name)
    tags = sorted({tag for record in archive for tag in record.tags})
    criterion = f"'{name}' and results of variant '{variant}'" if colon else f"'{rest}'"
    raise UsageError(
        f"no run has the tag {criterion}", hint=f"tags of stored runs: {', '.join(tags) or 'none'}"
    )
