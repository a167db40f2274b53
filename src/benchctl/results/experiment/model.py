"""What an experiment asks: interleaved measurements, comparisons of their tasks, and expectations."""

from typing import Any, Literal

import msgspec

from benchctl.results.plan import RestartPolicy, VariantSpec

Relation = Literal["slower", "faster", "alike", "different"]
"""What a contender is expected to be, seen from its baseline."""

EXPERIMENT_VERSION = 1


class Measurement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """One run of an experiment: variants that do the same.

    Attributes:
        name: by which comparisons refer to it.
        variants: names of the experiment's variants.
        challenges: names or absolute paths, in the order of a fork.
        warmup_challenges: run unmeasured after every boot.
        restart: when a fresh node comes in between.
        params: of its challenges, over the experiment's.
        include_tasks, exclude_tasks: filters, as on the command line.
        about: what it is for, in a sentence.
    """

    name: str
    variants: tuple[str, ...]
    challenges: tuple[str, ...]
    warmup_challenges: tuple[str, ...] = ()
    restart: RestartPolicy = "challenge"
    params: dict[str, Any] = {}
    include_tasks: str = ""
    exclude_tasks: str = ""
    about: str = ""


class TaskRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One task of one variant in one measurement: `MEASUREMENT/VARIANT/TASK`, or `.../CHALLENGE/TASK`.

    Attributes:
        measurement: its name.
        variant: name of the variant.
        task: label of the task.
        challenge: of it; of one that runs several times, with a number from 1 behind `#`. Empty where the
            measurement has one task of that label only.
    """

    measurement: str
    variant: str
    task: str
    challenge: str = ""

    def __str__(self) -> str:
        parts = (self.measurement, self.variant, self.challenge, self.task)
        return "/".join(part for part in parts if part)


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What somebody else reported for a comparison.

    Attributes:
        baseline, contender: in the metric's unit.
        change_percent: as it was printed; None to work it out.
    """

    baseline: float
    contender: float
    change_percent: float | None = None


class ComparisonSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A row of a table: a contender against a baseline in one metric.

    Attributes:
        name: by which expectations refer to it; unique in the experiment.
        label: of its row.
        baseline, contender: tasks of measurements.
        metric: machine name, such as `throughput` or `service_time_p90`.
        published: what the source reported; None where it reported nothing.
    """

    name: str
    label: str
    baseline: TaskRef
    contender: TaskRef
    metric: str
    published: Published | None = None


class TableSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Comparisons that belong together.

    Attributes:
        title: of it.
        source: the caption of the table that it repeats; empty for one of its own.
        about: what to see in it, in a sentence or two.
        baseline, contender: headings of the two columns of values.
        rows: in order.
    """

    title: str
    rows: tuple[ComparisonSpec, ...]
    source: str = ""
    about: str = ""
    baseline: str = "baseline"
    contender: str = "contender"


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A statement that the measurement confirms, refutes, or leaves open.

    Attributes:
        statement: in words.
        comparisons: names of the comparisons that all have to show it; where `than` is given, exactly one.
        is_: what each contender is against its baseline; `is` in the file.
        margin: relative difference below which two are alike, above 0.
        than: the name of another comparison: then the ratio of the first is held against the ratio of this
            one (a difference of differences).
        needs: what has to hold for it to be answerable, for the reader.
    """

    statement: str
    comparisons: tuple[str, ...]
    is_: Relation = msgspec.field(name="is")
    margin: float
    than: str = ""
    needs: str = ""


class ExperimentSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """An experiment, validated and complete: nothing in it depends on a file any more but challenges by path.

    Attributes:
        version: of this form.
        name: of its file, without the ending.
        title, about: for the report.
        source: where published figures come from.
        forks: of every variant of every measurement: blocks.
        docs: documents of the generated corpus.
        heap_mb: of every node whose variant does not say otherwise.
        seed: of orders and arrivals.
        track: name or absolute path.
        segments: of prepared indices.
        params: of all challenges.
        variants: by the name under which measurements refer to them.
        measurements, tables, expectations: in the order of the file.
        digest: SHA-256 of the file and those that it includes, hexadecimal.
    """

    version: int = EXPERIMENT_VERSION
    name: str
    title: str
    about: str = ""
    source: str = ""
    forks: int
    docs: int
    heap_mb: int
    seed: int
    track: str = "big5"
    segments: int = 1
    params: dict[str, Any] = {}
    variants: tuple[VariantSpec, ...]
    measurements: tuple[Measurement, ...]
    tables: tuple[TableSpec, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    digest: str = ""

    @property
    def comparisons(self) -> tuple[ComparisonSpec, ...]:
        """Those of all tables, in order."""
        return tuple(row for table in self.tables for row in table.rows)


ExperimentStatus = Literal["running", "complete", "interrupted", "failed"]


class ExperimentRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """One execution of an experiment. Written as `experiment.json` in a folder of its own.

    Attributes:
        record_version: of this form.
        id: name of its folder.
        created: wall clock, ISO 8601, a label only.
        status: how it ended.
        spec: what it asks, with what the command line changed.
        runs: measurement -> id of its run in the run store.
        stopped: why it ended before all forks were there; empty for all.
        expected_s: what it was expected to take, forks only; None where nothing was known.
        spent_s: seconds that its forks took, over all goes.
    """

    record_version: int = EXPERIMENT_VERSION
    id: str
    created: str
    status: ExperimentStatus
    spec: ExperimentSpec
    runs: dict[str, str] = {}
    stopped: str = ""
    expected_s: float | None = None
    spent_s: float = 0.0
