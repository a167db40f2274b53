"""What came of an experiment: its tables with figures and verdicts, and its expectations judged."""

import math
from operator import attrgetter
from typing import Final, Literal

import msgspec

from benchctl.results.experiment import Dispatch, Found, Published, Relation, SeenCall, SeenReceiver, TaskRef
from benchctl.stats.analysis import Figures
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import Comparison
from benchctl.stats.metrics import MetricKey
from benchctl.stats.scale import ScaleNote

SCHEMA_VERSION: Final = 1

Outcome = Literal["confirmed", "refuted", "inconclusive"]


class ExperimentRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One comparison.

    Attributes:
        name: by which expectations refer to it.
        label: of its row.
        baseline, contender: what is compared.
        metric: machine name.
        unit: of the values.
        higher_is_better: which way is faster.
        figures: of the baseline and of the contender; called `MEASUREMENT/VARIANT`, as in all notes.
        comparison: the contender against the baseline; p-values adjusted within its table and metric.
        published: what the source reported.
        published_percent: its change, as printed or worked out; None without any.
        missing: why there is nothing to compare; empty when there is.
        scale: distance from the blog of the side that is further from it; None when it has no such task.
        caveats: doubts about this row.
        blocked: its runs were declared to be analysed block by block.
    """

    name: str
    label: str
    baseline: TaskRef
    contender: TaskRef
    metric: MetricKey
    unit: str
    higher_is_better: bool
    figures: tuple[Figures, Figures]
    comparison: Comparison
    published: Published | None = None
    published_percent: float | None = None
    missing: str = ""
    scale: ScaleNote | None = None
    caveats: tuple[Caveat, ...] = ()
    blocked: bool = False

    @property
    def unsteady(self) -> bool:
        """Whether a side had not settled."""
        return any(side.steady.state == "not steady" for side in self.figures)


class ExperimentTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows that belong together, in the order of the file."""

    title: str
    rows: tuple[ExperimentRow, ...]


class Judged(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One comparison as an expectation sees it: in the direction of speed, so that above 0 is faster.

    Attributes:
        comparison: its name.
        outcome: what it says about the expectation.
        speed_percent: how much faster the contender is than its baseline (negative: slower); where `than` is
            given, that over the same of the other comparison. None without figures.
        low_percent, high_percent: its 95 % interval, on which `slower`, `faster` and `different` are
            confirmed.
        low90_percent, high90_percent: its 90 % interval, on which `alike` is confirmed; on which an
            expectation of this one comparison is refuted. Of several comparisons that takes a wider one.
        p: how likely so strong a support would be if the expectation did not hold.
        reason: why it is open; empty when it is not.
    """

    comparison: str
    outcome: Outcome
    speed_percent: float | None = None
    low_percent: float | None = None
    high_percent: float | None = None
    low90_percent: float | None = None
    high90_percent: float | None = None
    p: float | None = None
    reason: str = ""


class Lack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an open expectation takes, if its estimates and their spread stay as they are.

    Attributes:
        sides: `MEASUREMENT/VARIANT` of its open comparisons, and of those that they are held against.
        forks: that each of these lacks; None for more than can be judged.
        block_s: of one fork of each, seconds.
    """

    sides: tuple[str, ...]
    forks: int | None
    block_s: float

    @property
    def seconds(self) -> float:
        """Of all these forks; infinite where their number is not known."""
        return math.inf if self.forks is None else self.forks * self.block_s


class ExpectationResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement and what the measurement makes of it.

    Attributes:
        statement: in words.
        relation: what contenders should be.
        than: the other comparison of a difference of differences; empty for none.
        margin_percent: below which two are alike.
        outcome: confirmed when all comparisons confirm it, refuted when one refutes it; from unadjusted
            intervals, but for the number of its own comparisons.
        p: the greatest of its comparisons, since all have to show it; None when one has none.
        p_adjusted: the same by Holm over all expectations.
        judged: its comparisons, in order.
        needs: what has to hold for it to be answerable, from the file.
        doubts: what weakens the outcome, a sentence each without its full stop.
        place: in the file, as in its specification.
        lacks: what would decide it; None where it is decided, or no forks would.
    """

    statement: str
    relation: Relation
    than: str
    margin_percent: float
    outcome: Outcome
    p: float | None
    p_adjusted: float | None
    judged: tuple[Judged, ...]
    needs: str = ""
    doubts: tuple[str, ...] = ()
    place: int = 0
    lacks: Lack | None = None


class FateGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forks in which a call site fared alike.

    Attributes:
        found: what became of it.
        forks: what was seen in each, in block order.
        receivers: of its type profiles, added up over these forks, the most frequent first.
        calls: that the profiles count, added up.
        throughput_per_s: of the call site's task, geometric mean of these forks; None without a value.
    """

    found: Found
    forks: tuple[SeenCall, ...]
    receivers: tuple[SeenReceiver, ...]
    calls: int
    throughput_per_s: float | None


class SiteVariant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call site in one variant.

    Attributes:
        variant: its name.
        groups: forks by what became of it, the largest group first; none without logs.
        unread: forks whose log is missing or cannot be read.
    """

    variant: str
    groups: tuple[FateGroup, ...]
    unread: tuple[SeenCall, ...] = ()


class SiteResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call site in all of its variants; its name, and the unit of its task's throughput."""

    name: str
    unit: str
    variants: tuple[SiteVariant, ...]


class FateResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement about a call site and what the logs make of it.

    Attributes:
        statement: in words.
        call_site, variant, is_: what should have become of which.
        outcome: confirmed when all forks show it, refuted when all with a log show the opposite.
        showing: forks that show it.
        forks: that have a log.
        needs: what has to hold for it to be answerable, from the file.
        doubts: what weakens the outcome, or why there is none; without full stops.
        at_least, at_most: where all forks with a log show it, or none does, the one-sided 95 % bound of the
            share of nodes that would, 0 to 1; None otherwise.
        place: in the file, as in its specification.
    """

    statement: str
    call_site: str
    variant: str
    is_: Dispatch
    outcome: Outcome
    showing: int
    forks: int
    needs: str = ""
    doubts: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    place: int = 0


class ExperimentAnalysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a report says about an experiment.

    Attributes:
        schema_version: of this structure.
        experiment: id of its record.
        forks: measurement -> variant -> finished forks that count.
        tables: in the order of the file.
        expectations: the same.
        caveats: doubts about all of it.
        call_sites: what the JVM did there, in the order of the file.
        fates: what was expected of that.
    """

    schema_version: int
    experiment: str
    forks: dict[str, dict[str, int]]
    tables: tuple[ExperimentTable, ...]
    expectations: tuple[ExpectationResult, ...]
    caveats: tuple[Caveat, ...] = ()
    call_sites: tuple[SiteResult, ...] = ()
    fates: tuple[FateResult, ...] = ()

    @property
    def rows(self) -> tuple[ExperimentRow, ...]:
        """Those of all tables, in order."""
        return tuple(row for table in self.tables for row in table.rows)

    @property
    def numbered(self) -> tuple[tuple[int, ExpectationResult | FateResult], ...]:
        """What was expected of figures and of call sites in the order of the file, numbered from 1."""
        both: list[ExpectationResult | FateResult] = [*self.expectations, *self.fates]
        return tuple(enumerate(sorted(both, key=attrgetter("place")), 1))
