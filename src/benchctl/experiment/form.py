"""The form of an experiment file: its keys and the types of their values, before anything is looked up."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from benchctl.engine.variant import VariantEntry
from benchctl.experiment.record import Dispatch, Relation
from benchctl.micro.conduct import MicroEntry
from benchctl.quantities import Percent
from benchctl.spec import DEFAULT_FORKS, ComparedAs, Conditions, Forks, Text, Work

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
        pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})? ?(%|[A-Za-z][A-Za-z/]{0,19})$",
        description="a percentage such as 3%, or an amount such as 2 ms",
    ),
]
Figures = Annotated[
    tuple[float, ...],
    Meta(min_length=2, max_length=3, description="[BASELINE, CONTENDER] or [BASELINE, CONTENDER, PERCENT]"),
]


class RedlineEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A search for the highest load that meets an objective, as `benchctl redline` has it; seconds."""

    operation: Text | None = None
    challenge: Text | None = None
    # Of a challenge, whose latency `slo` is about; all with a target unless they are given.
    tasks: tuple[Text, ...] = ()
    slo: Text
    clients: int | Text = 16  # or a range such as `1..64`
    schedule: Literal["deterministic", "poisson"] | None = None
    warm_up: float = 10.0
    settle: float = 2.0
    step_time: float = 5.0
    tolerance: Percent = "3%"
    max_rate: float | None = None
    max_factor: float | None = None


class MeasurementEntry(Work, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A measurement; see `experiment.record.Measurement`."""

    variants: Texts  # names; of microbenchmarks as `benchctl micro run --variant` takes them
    about: str = ""
    redline: RedlineEntry | None = None
    ingest: bool = False
    micro: MicroEntry | None = None


class RowEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A comparison."""

    name: Name  # by which expectations refer to it
    # `baseline`, `contender`: `MEASUREMENT/VARIANT/[CHALLENGE[#N]/]TASK`; or a list of these, whose values
    # are added up, or subtracted behind a `-`. `MEASUREMENT/VARIANT` in a metric of index builds.
    baseline: Text | Texts
    contender: Text | Texts
    label: str = ""  # of the row; its name unless it is given
    as_: ComparedAs = msgspec.field(name="as", default="ratio")  # `ratio`, `ratio-of-sums`, or `difference`
    metric: Text | None = None  # machine name; the table's unless it is given
    # What the source reported: baseline, contender, and the change as it was printed.
    published: Figures | None = None


class TableEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A table; `metric` is that of its rows where they name none."""

    title: Text
    rows: Annotated[tuple[RowEntry, ...], Meta(min_length=1)]
    source: str = ""
    about: str = ""
    baseline: Text = "baseline"
    contender: Text = "contender"
    metric: Text | None = None


class CallSiteEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A call site; see `experiment.record.CallSite`."""

    name: Name
    measurement: Text
    variants: Texts
    method: Text
    callee: Text
    task: Text  # `TASK`, or `CHALLENGE[#N]/TASK`
    label: str = ""  # its name unless it is given
    about: str = ""


class FateEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The expected fate of a call site in a variant."""

    call_site: Text
    variant: Text
    is_: Dispatch = msgspec.field(name="is")


class ExpectationEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A statement and its evidence: comparisons, see `experiment.record.Expectation`, or a fate."""

    statement: Text
    comparisons: Texts | None = None
    is_: Relation | None = msgspec.field(name="is", default=None)
    margin: Margin | None = None  # 5% unless it is given; of differences in the metric's unit
    than: Text | None = None
    needs: str = ""
    fate: FateEntry | None = None  # of a call site, in place of all but the statement and `needs`


class ExperimentFile(Conditions, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """An experiment file as a whole; see `experiment.record.ExperimentSpec`.

    Its conditions are those of every measurement that has none of its own.
    """

    title: Text
    about: str = ""
    source: str = ""
    forks: Forks = DEFAULT_FORKS
    # Of all challenges; every measurement takes those that its own challenges know.
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    # Beside the built-in `es`, `os` and `es@8.19.0`, as in a file of variants.
    variants: dict[str, VariantEntry] = msgspec.field(default_factory=dict)
    measurements: Annotated[dict[Name, MeasurementEntry], Meta(min_length=1)]
    tables: tuple[TableEntry, ...] = ()
    call_sites: tuple[CallSiteEntry, ...] = ()
    expectations: tuple[ExpectationEntry, ...] = ()
