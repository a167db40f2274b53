"""An experiment's record: comparisons, expectations, call sites, measurements; and its directory."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from benchctl.errors import UsageError
from benchctl.evidence.call_sites import Found
from benchctl.home import Home
from benchctl.quantities import PERCENT
from benchctl.results.model import RunStatus
from benchctl.results.plan import Place, Plan, task_named
from benchctl.results.store import RecordFolder, Shelf, new_run_id
from benchctl.spec import BusyAction, ComparedAs, Text

EXPERIMENT_VERSION: Final = 6

Relation = Literal["slower", "faster", "alike", "different", "less", "more"]
"""Expected relation of a contender to its baseline: by speed, or by the value itself."""
Dispatch = Literal["inlined", "virtual"]
"""Expected fate of a call site: all calls go to inlined code, or each is dispatched."""

Texts = Annotated[tuple[Text, ...], Meta(min_length=1)]
Name = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9][a-z0-9._-]{0,39}$",
        description="a name of at most 40 lower-case letters, digits and . _ - after a letter or digit",
    ),
]
Margin = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})? ?(%|[A-Za-z][A-Za-z/]{0,19})?$",
        description="a percentage such as 3%, or an amount such as 2 ms",
    ),
]
Published = Annotated[float, Meta(gt=0)]
Method = Annotated[str, Meta(pattern="[^:]::[^:]", description="a method: Class::method")]
Callee = Annotated[str, Meta(pattern="^[^:]+$", description="the name of a method without its class")]

# Sides of comparisons: tasks, or index builds, of one variant in one measurement.

_FORM: Final = "MEASUREMENT/VARIANT/TASK, or MEASUREMENT/VARIANT/CHALLENGE/TASK"
_OF_INDEX, _OF_TASK = 2, 3
_AT_RECALL: Final = re.compile(r"(?P<challenge>[^@]+)@recall=(?P<recall>0?\.[0-9]{1,6})")


class TaskRef(NamedTuple):
    """A task of one variant in one measurement: `MEASUREMENT/VARIANT/TASK`, or `.../CHALLENGE/TASK`.

    Or the builds of its index, `MEASUREMENT/VARIANT`.
    """

    measurement: str
    variant: str
    task: str = ""  # label of the task; empty for the index
    # Of it; of one that runs several times, with a number from 1 behind `#`. Empty where the measurement
    # has one task of that label only.
    challenge: str = ""

    @classmethod
    def parse(cls, text: str) -> "TaskRef":
        """Read a reference; `place_in` checks that its task exists.

        Raises:
            UsageError: If it has too few parts, or an empty one.
        """
        parts = text.split("/")
        if len(parts) < _OF_INDEX or not all(parts):
            raise UsageError(f"'{text}' is not a task", hint=f"write {_FORM}")
        # Only a task's own name may hold a slash.
        measurement, variant, *own = parts
        challenge = own.pop(0) if len(parts) > _OF_TASK else ""
        return cls(measurement, variant, "/".join(own), challenge)

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
        name = f"{self.challenge}/{self.task}" if self.challenge else self.task
        return task_named(plan, name, str(self))


class Term(NamedTuple):
    """A task whose value a side adds or, with `minus`, subtracts."""

    ref: TaskRef
    minus: bool = False


Side = tuple[Term, ...]
"""A side of a comparison: a task, or a value derived from several."""


def parse_side(entry: "str | tuple[str, ...]") -> Side:
    """Read a side: a reference, or several, with a sign before each, `+` unless it is given.

    Raises:
        UsageError: If one is no reference.
    """
    if isinstance(entry, str):
        return (Term(TaskRef.parse(entry)),)
    return tuple(Term(TaskRef.parse(text.lstrip("+- ")), minus=text.startswith("-")) for text in entry)


def is_derived(side: Side) -> bool:
    """Return whether a side is more than the value of one task."""
    return len(side) > 1 or side[0].minus


def side_text(side: Side) -> str:
    """Return a side as text, such as `m/es/with - m/es/without`."""
    text = "".join(f" {'-' if term.minus else '+'} {term.ref}" for term in side)
    return text.removeprefix(" + ").lstrip()


# What is compared, looked at and expected: as files have it, and records with what a file may leave open.


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
    published: tuple[Published, Published] | None = None  # values of the source: baseline, contender
    # How to compare: ratio of geometric means over forks, ratio of arithmetic means (ratio-of-sums, always
    # used for lists), or difference in the metric's unit.
    compared_as: ComparedAs = msgspec.field(name="as", default="ratio")

    @property
    def sides(self) -> tuple[Side, Side]:
        """Baseline and contender."""
        return parse_side(self.baseline), parse_side(self.contender)

    @property
    def refs(self) -> tuple[TaskRef, ...]:
        """The tasks of both sides, in order."""
        return tuple(term.ref for side in self.sides for term in side)

    def over(self, other: "ComparisonSpec") -> "ComparisonSpec":
        """Return the comparison that holds this effect against another one.

        Of ratios, a / b over c / d is a x d over b x c; of differences it is the same with sums. So it is an
        ordinary comparison of derived sides, and what both have in common cancels.
        """
        baseline = Counter((*self.sides[0], *other.sides[1]))
        contender = Counter((*self.sides[1], *other.sides[0]))
        common = baseline & contender
        texts = [
            tuple(f"{'-' if term.minus else '+'}{term.ref}" for term in (side - common).elements())
            for side in (baseline, contender)
        ]
        name = over_name(self.name, other.name)
        return msgspec.structs.replace(self, name=name, baseline=texts[0], contender=texts[1])


def over_name(first: str, other: str) -> str:
    """Return the name of the comparison of one effect with another."""
    return f"{first} over {other}"


class TableSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Comparisons that belong together."""

    title: Text  # title of the table
    rows: Annotated[tuple[ComparisonSpec, ...], Meta(min_length=1)]  # rows of the table
    source: str = ""  # caption of the published table that this one repeats
    about: str = ""  # paragraph below the title
    baseline: Text = "baseline"  # title of the baseline's column
    contender: Text = "contender"  # title of the contender's column
    metric: str = ""  # metric of rows without `metric`


class CallSite(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Calls of a method of some name in another: what the JVM did with them is the suspected cause."""

    name: Name  # unique name, for expectations
    measurement: Text  # measurement that collects inlining evidence
    variants: Texts  # variants to inspect
    method: Method  # calling method: `Class::method`, with the package if ambiguous
    callee: Callee  # name of the called method, without its class
    task: Text  # task: `TASK` or `CHALLENGE[#N]/TASK`
    label: str = ""  # title; by default `name`
    about: str = ""  # paragraph on the call site

    def task_of(self, variant: str) -> TaskRef:
        """Return its task in one of its variants.

        Raises:
            UsageError: If the text is not a task.
        """
        return TaskRef.parse(f"{self.measurement}/{variant}/{self.task}")


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
    comparisons: tuple[Text, ...] = ()  # names of the comparisons that all have to show it; one with `than`
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
        return (over_name(self.comparisons[0], self.than),) if self.than else self.comparisons

    @property
    def tolerance(self) -> tuple[float, str]:
        """Amount and unit of the difference below which two are alike; of ratios in percent, `%`."""
        text = self.margin or "5%"
        if text.endswith("%"):
            return 100 * PERCENT.parse(text), "%"
        amount, _, unit = text.partition(" ")
        return float(amount), unit


class SeenCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A call site in one fork, in the newest compilation by C2."""

    site: str
    variant: str
    block: int
    found: Found | None  # what became of it; None where there is no log that can be read
    words: str = ""  # HotSpot's own, by callee; without a log, why there is none
    # Class, with its package -> profiled calls that went to it, the most frequent first; HotSpot prints none
    # of a virtual call.
    receivers: dict[str, int] = {}
    calls: int = 0  # that the profile counts, over all receivers; 0 where none is printed
    given_up: bool = False


# An execution: what it was asked, how far it got.


class Measurement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A measurement, as far as readers of its run need it."""

    variants: tuple[str, ...]  # names, as its run has them: a sweep makes several of one
    grows: bool = True  # whether it gets the forks that are added to the experiment
    explained: bool = False  # whether it collects evidence


class ExperimentSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Question of an experiment, validated and complete."""

    name: str  # of its file, without the ending
    title: str
    about: str = ""
    source: str = ""
    seed: int = 1  # of the order of variants
    measurements: dict[str, Measurement]  # by name, in the order of the file
    tables: tuple[TableSpec, ...] = ()
    call_sites: tuple[CallSite, ...] = ()
    expectations: tuple[Expectation, ...] = ()

    @property
    def comparisons(self) -> tuple[ComparisonSpec, ...]:
        """Comparisons of all tables, in order."""
        return tuple(row for table in self.tables for row in table.rows)


class ExperimentRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """An execution of an experiment. Written as `experiment.json` in a folder of its own."""

    record_version: int = EXPERIMENT_VERSION
    id: str
    created: str  # wall clock, ISO 8601, a label only
    status: RunStatus
    spec: ExperimentSpec
    on_busy: BusyAction = "warn"
    runs: dict[str, str] = {}  # measurement -> id of its run in the run store
    stopped: str = ""  # why it ended before all forks were there; empty for all
    spent_s: float = 0.0  # seconds that its forks took, over all goes


_EXPERIMENT, _MEASUREMENT = "experiment-", "measurement-"


def tags_of(experiment_id: str, measurement: str) -> tuple[str, ...]:
    """Return the tags by which a measurement's run is found."""
    return (f"{_EXPERIMENT}{experiment_id}", f"{_MEASUREMENT}{measurement}")


def experiment_of(tags: Collection[str]) -> str:
    """Return the id of the experiment that a run is a measurement of, by its tags; empty for none."""
    ids = (tag.removeprefix(_EXPERIMENT) for tag in tags if tag.startswith(_EXPERIMENT))
    return next(ids, "") if any(tag.startswith(_MEASUREMENT) for tag in tags) else ""


# Experiments on disk: a folder each, with its record; the runs that belong to it lie in the run store.


RECORD_NAME: Final = "experiment.json"
_MOST_OF_NAME: Final = 32
"""Of an experiment's name in its id: a tag of its runs holds the id, and tags have 64 characters."""


class ExperimentFolder(RecordFolder[ExperimentRecord]):
    """The folder of one execution of an experiment."""

    record_name = RECORD_NAME
    record_type = ExperimentRecord
    record_version = EXPERIMENT_VERSION


class ExperimentStore(Shelf[ExperimentFolder]):
    """A folder of experiments; it is made with the first of them."""

    def __init__(self, root: Path) -> None:
        hint = "see: benchctl experiment list"
        super().__init__(root, ExperimentFolder, "execution", "executions", hint)

    def new(self, name: str, now_text: str) -> ExperimentFolder:
        """Make the folder of a new execution; its id is made of the experiment's name and the time.

        Raises:
            BenchctlError: If it cannot be made.
        """
        return self.create(new_run_id(name[:_MOST_OF_NAME], now_text))


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yield the runs that experiments refer to."""
    for _, experiment in ExperimentStore(home.root / "experiments").records(unread):
        for run in experiment.runs.values():
            yield run, f"experiment {experiment.id}"
