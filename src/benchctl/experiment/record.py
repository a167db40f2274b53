"""Experiments as files and records have them; observations at their call sites; their directory."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from benchctl.disk import disk_errors
from benchctl.errors import BenchctlError, UsageError
from benchctl.evidence.call_sites import Found
from benchctl.quantities import PERCENT, SIZE
from benchctl.results.folders import Shelf, read_versioned, readable, write_versioned
from benchctl.results.model import RunStatus
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
from benchctl.spec import DEFAULT_FORKS, ComparedAs, Conditions, Forks, OnBusy, Text, Work
from benchctl.stats.metrics import metric_of

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


# Sides of comparisons: tasks, or index builds, of one variant in one measurement.

_FORM: Final = "MEASUREMENT/VARIANT/TASK, or MEASUREMENT/VARIANT/CHALLENGE/TASK"
_SHORT: Final = 3
_AT_RECALL: Final = re.compile(r"(?P<challenge>[^@]+)@recall=(?P<recall>0?\.[0-9]{1,6})")


class TaskRef(NamedTuple):
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

    @property
    def recall(self) -> float | None:
        """Recall at which a swept challenge is compared, `CHALLENGE@recall=0.95`; None for none."""
        match = _AT_RECALL.fullmatch(self.challenge)
        return float(match["recall"]) if match else None

    def points_in(self, plan: Plan) -> tuple["TaskRef", ...]:
        """Return itself, or for a recall, the challenge at all points of the only axis of its sweep."""
        match, swept = _AT_RECALL.fullmatch(self.challenge), plan.swept
        if match is None or swept is None or len(swept.axes) > 1:
            return (self,)
        points = zip(plan.schedules, swept.schedules, strict=True)
        names = [schedule.name for schedule, of in points if of.of == match["challenge"] and of.at]
        return tuple(self._replace(challenge=name) for name in names) or (self,)

    def place_in(self, plan: Plan) -> Place:
        """Return the one task of its measurement's plan that it means.

        Raises:
            UsageError: If there is none, or there are several.
        """
        return task_of_challenge(plan, self.challenge, self.task, str(self))


def parse_ref(text: str) -> TaskRef:
    """Read a reference to a task; `TaskRef.place_in` checks that it exists.

    Raises:
        UsageError: If it has too few parts, or an empty one.
    """
    parts = text.split("/")
    if len(parts) < _SHORT or not all(parts):
        raise UsageError(f"'{text}' is not a task", hint=f"write {_FORM}")
    measurement, variant, *rest = parts
    # Only a task's own name may hold a slash.
    challenge, task = ("", rest[0]) if len(parts) == _SHORT else (rest[0], "/".join(rest[1:]))
    return TaskRef(measurement, variant, task, challenge)


def _index_ref(text: str) -> TaskRef:
    measurement, slash, variant = text.partition("/")
    if not (measurement and slash and variant) or "/" in variant:
        raise UsageError(f"'{text}' is not an index", hint="write MEASUREMENT/VARIANT: all of its builds")
    return TaskRef(measurement, variant, "")


class Term(NamedTuple):
    """A task whose value a side adds or, with `minus`, subtracts."""

    ref: TaskRef
    minus: bool = False

    @property
    def weight(self) -> int:
        """1 or -1."""
        return -1 if self.minus else 1


Side = tuple[Term, ...]
"""A side of a comparison: a task, or a value derived from several."""


def parse_side(entry: "str | tuple[str, ...]", metric: str = "throughput") -> Side:
    """Read a side: a reference, or several, with a sign before each, `+` unless it is given.

    What the metric may be of decides whether a reference is to a task or an index, `MEASUREMENT/VARIANT`.

    Raises:
        UsageError: If a reference is neither.
    """
    figure = metric_of(metric).kind

    def read(text: str) -> TaskRef:
        index = figure.built and (not figure.of_tasks or text.count("/") == 1)
        return _index_ref(text) if index else parse_ref(text)

    if isinstance(entry, str):
        return (Term(read(entry)),)
    return tuple(Term(read(text.lstrip("+- ")), minus=text.startswith("-")) for text in entry)


def is_derived(side: Side) -> bool:
    """Return whether a side is more than the value of one task."""
    return len(side) > 1 or side[0].minus


def side_text(side: Side) -> str:
    """Return a side as text, such as `m/es/with - m/es/without`."""
    text = "".join(f" {'-' if term.minus else '+'} {term.ref}" for term in side)
    return text.removeprefix(" + ").lstrip()


# What an experiment asks: interleaved measurements, comparisons of their tasks, and expectations. Files state
# it in these forms; a record has them checked, with everything filled in that a file may leave open.

EXPERIMENT_VERSION = 5

Toward = Literal["slower", "faster", "alike", "different"]
Relation = Literal["slower", "faster", "alike", "different", "less", "more"]
"""Expected relation of a contender to its baseline: by speed, or by the value itself."""
Dispatch = Literal["inlined", "virtual"]
"""Expected fate of a call site: all calls go to inlined code, or each is dispatched."""

Texts = Annotated[tuple[Text, ...], Meta(min_length=1)]
Name = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9][a-z0-9._-]{0,39}$",
        description="a name of at most 40 lower-case letters, digits and . _ - behind a letter or digit",
    ),
]
Margin = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})? ?(%|[A-Za-z][A-Za-z/]{0,19})?$",
        description="a percentage such as 3%, or an amount such as 2 ms, or 0.01 of what has no unit",
    ),
]
Published = Annotated[
    tuple[float, ...],
    Meta(min_length=2, max_length=3, description="[BASELINE, CONTENDER] or [BASELINE, CONTENDER, PERCENT]"),
]


def toward(relation: Relation, *, higher_is_better: bool) -> Toward:
    """Return the same by speed: more of what takes time, or room, is slower."""
    match relation:
        case "more":
            return "faster" if higher_is_better else "slower"
        case "less":
            return "slower" if higher_is_better else "faster"
        case _:
            return relation


class ComparisonSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A row of a table: a contender against a baseline in one metric."""

    name: Name  # unique name, for expectations
    # `baseline`, `contender`: `MEASUREMENT/VARIANT/[CHALLENGE[#N]/]TASK`, or a list of these, whose values
    # are added, or subtracted after a `-`. `CHALLENGE@recall=0.95` is a sweep where it reaches this recall,
    # `MEASUREMENT/VARIANT` are index builds.
    baseline: Text | Texts
    contender: Text | Texts
    label: str = ""  # title of the row; by default `name`
    # Metric, such as `throughput` or `service_time_p90`; by default the table's.
    metric: str = ""
    # Values of the source: baseline, contender, and change in percent as printed.
    published: Published | None = None
    # How to compare: ratio of geometric means over forks, ratio of arithmetic means (ratio-of-sums, always
    # used for lists), or difference in the metric's unit.
    compared_as: ComparedAs = msgspec.field(name="as", default="ratio")

    @property
    def sides(self) -> tuple[Side, Side]:
        """Baseline and contender."""
        return parse_side(self.baseline, self.metric), parse_side(self.contender, self.metric)

    @property
    def refs(self) -> tuple[TaskRef, ...]:
        """The tasks of both sides, in order."""
        return tuple(term.ref for side in self.sides for term in side)


class TableSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Comparisons that belong together."""

    title: Text  # title of the table
    rows: Annotated[tuple[ComparisonSpec, ...], Meta(min_length=1)]  # rows of the table
    source: str = ""  # caption of the published table that this one repeats
    about: str = ""  # paragraph below the title
    baseline: Text = "baseline"  # title of the baseline's column
    contender: Text = "contender"  # title of the contender's column
    metric: str = ""  # metric of rows without `metric`


def over_name(first: str, other: str) -> str:
    """Return the name of the comparison of one effect with another."""
    return f"{first} over {other}"


def over(first: ComparisonSpec, other: ComparisonSpec) -> ComparisonSpec:
    """Return the comparison that holds the effect of the first one against that of the other.

    Of ratios, a / b over c / d is a x d over b x c; of differences it is the same with sums. So it is an
    ordinary comparison of derived sides, and what both have in common cancels.
    """
    baseline = Counter((*first.sides[0], *other.sides[1]))
    contender = Counter((*first.sides[1], *other.sides[0]))
    common = baseline & contender
    texts = [
        tuple(f"{'-' if term.minus else '+'}{term.ref}" for term in (side - common).elements())
        for side in (baseline, contender)
    ]
    name = over_name(first.name, other.name)
    return msgspec.structs.replace(first, name=name, baseline=texts[0], contender=texts[1])


class FateSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The expected fate of a call site in a variant."""

    call_site: Text  # name of a call site
    variant: Text  # name of a variant
    is_: Dispatch = msgspec.field(name="is")  # expected state of the call


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A statement that the measurement confirms, refutes, or leaves open.

    It is about comparisons, or about the fate of a call site, which is judged by counting forks: there is no
    interval around what a JVM did.
    """

    statement: Text  # sentence that the measurement confirms or refutes
    # Names of the comparisons that all have to show it; exactly one with `than`.
    comparisons: Texts | None = None
    is_: Relation | None = msgspec.field(name="is", default=None)  # expected verdict on each contender
    margin: Margin | None = None  # margin, by default 5%; of differences in the metric's unit
    # Name of another comparison, whose ratio is the baseline for that of the first: their interaction (a
    # difference of differences).
    than: Text | None = None
    needs: str = ""  # precondition, for readers
    fate: FateSpec | None = None  # expected state of a call site, instead of comparisons

    @property
    def judged(self) -> tuple[str, ...]:
        """The names of the comparisons whose verdicts decide it."""
        names = self.comparisons or ()
        return (over_name(names[0], self.than),) if self.than else names

    @property
    def tolerance(self) -> tuple[float, str]:
        """Amount and unit of the difference below which two are alike; of ratios in percent, `%`."""
        text = self.margin or "5%"
        if text.endswith("%"):
            return 100 * PERCENT.parse(text), "%"
        amount, _, unit = text.partition(" ")
        return float(amount), unit


class CallSite(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Calls of a method of some name in another: what the JVM did with them is the suspected cause."""

    name: Name  # unique name, for expectations
    measurement: Text  # measurement that collects inlining evidence
    variants: Texts  # variants to inspect
    method: Text  # calling method: `Class::method`, with the package if ambiguous
    callee: Text  # name of the called method, without its class
    task: Text  # task: `TASK` or `CHALLENGE[#N]/TASK`
    label: str = ""  # title; by default `name`
    about: str = ""  # paragraph on the call site

    def task_of(self, variant: str) -> TaskRef:
        """Return its task in one of its variants.

        Raises:
            UsageError: If the text is not a task.
        """
        return parse_ref(f"{self.measurement}/{variant}/{self.task}")


class MeasurementForm(Work, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A run of an experiment: variants that do the same."""

    variants: Texts  # names of variants; for microbenchmarks as `benchctl micro run --variant` takes them
    about: str = ""  # paragraph on the measurement
    ingest: bool = False  # true: only build indices


class Measurement(MeasurementForm, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A measurement with all of its conditions; challenges by path are absolute."""

    name: str  # by which comparisons refer to it
    docs: int | None = None
    seed: int = 1
    redline: RedlineSpec | None = None  # the search that it makes instead of challenges; None for these
    micro: MicroSpec | None = None  # the microbenchmarks that it makes instead; None for nodes
    # SHA-256 of its plan when the experiment began, hexadecimal; empty before it was planned.
    digest: str = ""

    @property
    def extra_forks(self) -> int:
        """Forks of every variant for evidence alone."""
        evidence = EvidenceSpec.of(self.evidence)
        return 0 if evidence is None else evidence.extra_forks


class Asked(Conditions, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Common part of an experiment's file and record.

    Its conditions are those of every measurement that has none of its own.
    """

    title: Text  # title of the report
    about: str = ""  # paragraph below the title
    source: str = ""  # source of published values
    forks: Forks = DEFAULT_FORKS  # forks per variant
    on_busy: OnBusy = "warn"
    # Parameters of all measurements; each takes those that its challenges know.
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    tables: tuple[TableSpec, ...] = ()  # tables of comparisons
    call_sites: tuple[CallSite, ...] = ()  # calls whose inlining is of interest
    expectations: tuple[Expectation, ...] = ()  # statements to judge


class ExperimentSpec(Asked, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """An experiment with its settings, validated and complete.

    Nothing in it depends on a file any more but challenges by path.
    """

    version: int = EXPERIMENT_VERSION
    name: str  # of its file, without the ending
    docs: int | None  # documents; None for all of files
    seed: int = 1  # of the order of variants, arrivals and values
    variants: tuple[VariantSpec, ...]  # by the name under which measurements refer to them
    measurements: tuple[Measurement, ...]  # in the order of the file
    digest: str = ""  # SHA-256 of the file and those that it includes, hexadecimal
    test_mode: bool = False  # its tasks are cut to see whether they work; its figures mean nothing
    # Beyond its forks, sides get more as long as expectations that rest on them are open; it is looked at
    # after every block.
    until_decided: bool = False
    most_forks: int | None = None  # of a side, until it is decided; None where its forks are all

    @property
    def heap_mb(self) -> int:
        """The heap of every node, MiB."""
        return SIZE.parse(self.heap)

    @property
    def comparisons(self) -> tuple[ComparisonSpec, ...]:
        """Comparisons of all tables, in order."""
        return tuple(row for table in self.tables for row in table.rows)

    @property
    def without_nodes(self) -> bool:
        """True if it measures microbenchmarks only."""
        return all(measurement.micro is not None for measurement in self.measurements)

    @property
    def expected_sides(self) -> frozenset[str]:
        """`MEASUREMENT/VARIANT` of all that expectations rest on."""
        names = {
            name
            for expectation in self.expectations
            for name in (*(expectation.comparisons or ()), expectation.than)
        }
        refs = (ref for row in self.comparisons if row.name in names for ref in row.refs)
        return frozenset(f"{ref.measurement}/{ref.variant}" for ref in refs)

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
        return sum(self.planned(measurement) for measurement in self.measurements)


class ExperimentRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """An execution of an experiment. Written as `experiment.json` in a folder of its own."""

    record_version: int = EXPERIMENT_VERSION
    id: str
    created: str  # wall clock, ISO 8601, a label only
    status: RunStatus
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
        """Path of the record."""
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
