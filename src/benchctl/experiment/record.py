"""The records of experiments: what one asks, what was seen at its call sites, and its folder on disk."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from benchctl.disk import disk_errors
from benchctl.errors import BenchctlError
from benchctl.evidence.call_sites import Found
from benchctl.quantities import SIZE
from benchctl.results.folders import Shelf, read_versioned, readable, write_versioned
from benchctl.results.plan import (
    EvidenceSpec,
    MicroSpec,
    Place,
    Plan,
    RedlineSpec,
    VariantSpec,
    task_of_challenge,
)
from benchctl.results.store import new_run_id
from benchctl.spec import ComparedAs, Conditions, EvidenceEntry

# What the JVM did at a call site of interest, fork by fork, as its inlining logs say it.


class SeenReceiver(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A class that a call site saw: its name with the package, and how many profiled calls went to it."""

    name: str
    calls: int


class SeenCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A call site in one fork, in the newest compilation by C2."""

    site: str
    variant: str
    block: int
    found: Found | None  # what became of it; None where there is no log that can be read
    words: str = ""  # HotSpot's own, by callee; without a log, why there is none
    # Of its type profile, the most frequent first; HotSpot prints none of a virtual call.
    receivers: tuple[SeenReceiver, ...] = ()
    calls: int = 0  # that the profile counts, over all receivers; 0 where none is printed
    given_up: bool = False


# What an experiment asks: interleaved measurements, comparisons of their tasks, and expectations.


Toward = Literal["slower", "faster", "alike", "different"]
Relation = Literal["slower", "faster", "alike", "different", "less", "more"]
"""What a contender is expected to be, seen from its baseline: by speed, or by the value itself."""


def toward(relation: Relation, *, higher_is_better: bool) -> Toward:
    """Return the same by speed: more of what takes time, or room, is slower."""
    match relation:
        case "more":
            return "faster" if higher_is_better else "slower"
        case "less":
            return "slower" if higher_is_better else "faster"
        case _:
            return relation


Dispatch = Literal["inlined", "virtual"]
"""What is expected of a call site: that all of its calls go to inlined code, or that each is dispatched."""

EXPERIMENT_VERSION = 3


class Measurement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A run of an experiment: variants that do the same."""

    name: str  # by which comparisons refer to it
    variants: tuple[str, ...]
    challenges: tuple[str, ...]  # names or absolute paths, in the order of a fork
    warmup_challenges: tuple[str, ...] = ()
    params: dict[str, Any] = {}
    # What of the experiment's conditions it has otherwise, by field.
    own: dict[str, Any] = {}
    redline: RedlineSpec | None = None  # the search that it makes instead of challenges; None for these
    ingest: bool = False
    micro: MicroSpec | None = None  # the microbenchmarks that it makes instead; None for nodes
    about: str = ""
    # Of every variant, where fewer than the experiment's are enough; None for as many.
    forks: int | None = None
    # What is collected beside the figures, and in which forks; None for nothing.
    evidence: EvidenceEntry | None = None
    # SHA-256 of its plan when the experiment began, hexadecimal; empty before it was planned.
    digest: str = ""

    @property
    def extra_forks(self) -> int:
        """Forks of every variant for evidence alone."""
        evidence = EvidenceSpec.of(self.evidence)
        return 0 if evidence is None else evidence.extra_forks


class TaskRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A task of one variant in one measurement: `MEASUREMENT/VARIANT/TASK`, or `.../CHALLENGE/TASK`.

    Or the builds of its index, `MEASUREMENT/VARIANT`.
    """

    measurement: str
    variant: str
    task: str  # label of the task; empty for the index
    # Of it; of one that runs several times, with a number from 1 behind `#`. Empty where the measurement
    # has one task of that label only.
    challenge: str = ""

    def __str__(self) -> str:
        parts = (self.measurement, self.variant, self.challenge, self.task)
        return "/".join(part for part in parts if part)

    def place_in(self, plan: Plan) -> Place:
        """Return the one task of its measurement's plan that it means.

        Raises:
            UsageError: If there is none, or there are several.
        """
        return task_of_challenge(plan, self.challenge, self.task, str(self))


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A task whose value a derived value adds or, with `minus`, subtracts."""

    ref: TaskRef
    minus: bool = False

    @property
    def weight(self) -> int:
        """1 or -1."""
        return -1 if self.minus else 1


SideRef = TaskRef | tuple[Term, ...]
"""A side of a comparison: a task, or a value derived from several."""


def terms_of(side: SideRef) -> tuple[Term, ...]:
    """Return what a side is made of."""
    return (Term(side),) if isinstance(side, TaskRef) else side


def refs_of(*sides: SideRef) -> tuple[TaskRef, ...]:
    """Return the tasks of sides, in order."""
    return tuple(one.ref for side in sides for one in terms_of(side))


def forks_of(side: SideRef) -> frozenset[tuple[str, str]]:
    """Return (measurement, variant) of every node start that a side depends on."""
    return frozenset((one.ref.measurement, one.ref.variant) for one in terms_of(side))


def side_text(side: SideRef) -> str:
    """Return a side as text, such as `m/es/with - m/es/without`."""
    text = "".join(f" {'-' if one.minus else '+'} {one.ref}" for one in terms_of(side))
    return text.removeprefix(" + ").lstrip()


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What somebody else reported for a comparison."""

    baseline: float
    contender: float
    change_percent: float | None = None  # as it was printed; None to work it out


class ComparisonSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A row of a table: a contender against a baseline in one metric."""

    name: str  # by which expectations refer to it; unique in the experiment
    label: str
    baseline: SideRef
    contender: SideRef
    metric: str  # machine name, such as `throughput` or `service_time_p90`
    published: Published | None = None  # what the source reported; None where it reported nothing
    # The ratio of geometric means over forks, or of arithmetic ones, as always of derived values; or the
    # difference, in the metric's unit.
    compared_as: ComparedAs = "ratio"

    @property
    def refs(self) -> tuple[TaskRef, ...]:
        """The tasks of both sides."""
        return refs_of(self.baseline, self.contender)


class TableSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Comparisons that belong together."""

    title: str
    rows: tuple[ComparisonSpec, ...]
    source: str = ""  # the caption of the table that it repeats; empty for one of its own
    about: str = ""
    baseline: str = "baseline"
    contender: str = "contender"


def over_name(first: str, other: str) -> str:
    """Return the name of the comparison of one effect with another."""
    return f"{first} over {other}"


def over(first: ComparisonSpec, other: ComparisonSpec) -> ComparisonSpec:
    """Return the comparison that holds the effect of the first one against that of the other.

    Of ratios, a / b over c / d is a x d over b x c; of differences it is the same with sums. So it is an
    ordinary comparison of derived sides, and what both have in common cancels.
    """
    baseline = Counter((*terms_of(first.baseline), *terms_of(other.contender)))
    contender = Counter((*terms_of(first.contender), *terms_of(other.baseline)))
    common = baseline & contender
    return msgspec.structs.replace(
        first,
        name=over_name(first.name, other.name),
        baseline=tuple((baseline - common).elements()),
        contender=tuple((contender - common).elements()),
    )


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A statement that the measurement confirms, refutes, or leaves open."""

    statement: str
    # Names of the comparisons that all have to show it; where `than` is given, exactly one.
    comparisons: tuple[str, ...]
    is_: Relation = msgspec.field(name="is")  # what each contender is against its baseline; `is` in the file
    margin: float  # relative difference below which two are alike, above 0; in `unit` where that is given
    # The name of another comparison: then the ratio of the first is held against the ratio of this one (a
    # difference of differences).
    than: str = ""
    needs: str = ""  # what has to hold for it to be answerable, for the reader
    place: int = 0
    unit: str = ""  # of comparisons that are differences; empty for ratios

    @property
    def judged(self) -> tuple[str, ...]:
        """The names of the comparisons whose verdicts decide it."""
        return (over_name(self.comparisons[0], self.than),) if self.than else self.comparisons


class CallSite(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Calls of a method of some name in another: what the JVM did with them is the suspected cause."""

    name: str  # by which expectations refer to it; unique in the experiment
    label: str
    measurement: str
    variants: tuple[str, ...]
    method: str  # that the calls are in: `Class::method`, with as much of the package as is needed
    callee: str  # the called method's name, without its class
    task: str
    challenge: str = ""  # of the task, as in `TaskRef`
    about: str = ""

    def task_of(self, variant: str) -> TaskRef:
        """Return its task in one of its variants."""
        return TaskRef(self.measurement, variant, self.task, self.challenge)


class FateExpectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A statement about a call site, judged by counting forks: there is no interval around what a JVM did."""

    statement: str
    call_site: str
    variant: str
    is_: Dispatch = msgspec.field(name="is")  # what should become of it; `is` in the file
    needs: str = ""  # what has to hold for it to be answerable, for the reader
    place: int = 0


class ExperimentSpec(Conditions, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """An experiment with its settings, validated and complete.

    Nothing in it depends on a file any more but challenges by path.
    """

    version: int = EXPERIMENT_VERSION
    name: str  # of its file, without the ending
    title: str
    about: str = ""
    source: str = ""  # where published figures come from
    forks: int
    docs: int | None  # documents; None for all of files
    seed: int = 1  # of the order of variants, arrivals and values
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    variants: tuple[VariantSpec, ...]  # by the name under which measurements refer to them
    # `measurements`, `tables`, `expectations`: in the order of the file.
    measurements: tuple[Measurement, ...]
    tables: tuple[TableSpec, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    call_sites: tuple[CallSite, ...] = ()  # in the order of the file
    fates: tuple[FateExpectation, ...] = ()
    digest: str = ""  # SHA-256 of the file and those that it includes, hexadecimal
    test_mode: bool = False  # its tasks are cut to see whether they work; its figures mean nothing
    # Beyond its forks, sides get more as long as expectations that rest on them are open; it is looked at
    # after every block.
    until_decided: bool = False
    most_forks: int | None = None  # of a side, until it is decided; None where its forks are all

    @property
    def heap_mb(self) -> int:
        """The heap of every node, MiB; 0 until plans tell, if the file does not."""
        return 0 if self.heap is None else SIZE.parse(self.heap)

    @property
    def comparisons(self) -> tuple[ComparisonSpec, ...]:
        """Comparisons of all tables, in order."""
        return tuple(row for table in self.tables for row in table.rows)

    @property
    def without_nodes(self) -> bool:
        """Whether all that is measured are microbenchmarks."""
        return all(one.micro is not None for one in self.measurements)

    @property
    def expected_sides(self) -> frozenset[str]:
        """`MEASUREMENT/VARIANT` of all that expectations rest on."""
        names = {name for one in self.expectations for name in (*one.comparisons, one.than)}
        refs = (ref for row in self.comparisons if row.name in names for ref in row.refs)
        return frozenset(f"{ref.measurement}/{ref.variant}" for ref in refs)

    def of(self, measurement: Measurement) -> "ExperimentSpec":
        """Return the experiment as a measurement has it, with what it has otherwise."""
        own = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in measurement.own.items()
        }
        return msgspec.structs.replace(self, **own)

    def forks_of(self, measurement: Measurement) -> int:
        """Return the forks of each of its variants, without those for evidence alone."""
        if measurement.ingest:
            return 0
        return self.forks if measurement.forks is None else min(self.forks, measurement.forks)

    def planned(self, measurement: Measurement) -> int:
        """Return the forks of all of its variants, those for evidence included."""
        return (self.forks_of(measurement) + measurement.extra_forks) * len(measurement.variants)

    @property
    def total_forks(self) -> int:
        """Of all measurements."""
        return sum(self.planned(one) for one in self.measurements)


ExperimentStatus = Literal["running", "complete", "interrupted", "failed"]


class ExperimentRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """An execution of an experiment. Written as `experiment.json` in a folder of its own."""

    record_version: int = EXPERIMENT_VERSION
    id: str
    created: str  # wall clock, ISO 8601, a label only
    status: ExperimentStatus
    spec: ExperimentSpec
    runs: dict[str, str] = {}  # measurement -> id of its run in the run store
    stopped: str = ""  # why it ended before all forks were there; empty for all
    expected_s: float | None = None  # what it was expected to take, forks only; None where nothing was known
    spent_s: float = 0.0  # seconds that its forks took, over all goes


# Experiments on disk: a folder each, with its record; the runs that belong to it lie in the run store.


RECORD_NAME: Final = "experiment.json"
_MOST_OF_NAME: Final = 32
"""Of an experiment's name in its id: a tag of its runs holds the id, and tags have 64 characters."""


@dataclass(frozen=True)
class ExperimentFolder:
    """The folder of one execution of an experiment."""

    path: Path

    @property
    def record_path(self) -> Path:
        """Where the record is."""
        return self.path / RECORD_NAME

    def save(self, record: ExperimentRecord) -> None:
        """Replace the record; see `write_versioned`.

        Raises:
            BenchctlError: If the disk is full or cannot be written.
        """
        write_versioned(self.record_path, record)

    def load(self) -> ExperimentRecord:
        """Read the record.

        Raises:
            BenchctlError: If it is missing, damaged, or of another version.
        """
        record = read_versioned(self.record_path, ExperimentRecord, "record", EXPERIMENT_VERSION)
        if record is None:
            raise BenchctlError(f"{self.record_path} is missing")
        return record


@dataclass(frozen=True)
class ExperimentStore:
    """A folder of experiments; it is made with the first of them."""

    root: Path

    def create(self, name: str, now_text: str) -> ExperimentFolder:
        """Make the folder of a new execution; its name, the id, is made of the experiment's and the time.

        Raises:
            BenchctlError: If it cannot be made.
        """
        path = self.root / new_run_id(name[:_MOST_OF_NAME], now_text)
        with disk_errors(f"create {path}"):
            path.mkdir(parents=True)
        return ExperimentFolder(path)

    def find(self, name: str, unreadable: Callable[[str], None]) -> ExperimentFolder:
        """Return an execution by path, id or a part of it; by an experiment's name its newest; `latest`.

        `unreadable` is called with the reason for each that is skipped.

        Raises:
            UsageError: If none fits, or several do.
            BenchctlError: If they cannot be looked into.
        """
        if len(self._shelf.fitting(name)) != 1:
            named = [folder for folder, record in self.records(unreadable) if record.spec.name == name]
            if named:
                return named[-1]
        return ExperimentFolder(self._shelf.find(name))

    def names(self, name: str) -> bool:
        """Return whether a name may mean any execution by its id; reads none."""
        return bool(self._shelf.fitting(name))

    def records(
        self, unreadable: Callable[[str], None]
    ) -> Iterator[tuple[ExperimentFolder, ExperimentRecord]]:
        """Return readable executions, oldest first; `unreadable` gets why each other is skipped."""
        return readable(self.folders(), ExperimentFolder.load, unreadable)

    def folders(self) -> list[ExperimentFolder]:
        """Return the folders of all executions, oldest first.

        Raises:
            BenchctlError: If they cannot be looked into.
        """
        return [ExperimentFolder(path) for path in self._shelf.folders()]

    @property
    def _shelf(self) -> Shelf:
        return Shelf(self.root, RECORD_NAME, "execution", "executions", "see: benchctl experiment list")
