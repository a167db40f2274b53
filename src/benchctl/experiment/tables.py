"""The tables and expectations of an experiment file: what is compared, and what that should show."""

from typing import Final

from benchctl.errors import UsageError
from benchctl.experiment.form import ExpectationEntry, ExperimentFile, RowEntry, TableEntry
from benchctl.experiment.refs import parse_ref
from benchctl.nearest import guess, suggestion
from benchctl.results.experiment import ComparisonSpec, Expectation, Published, TableSpec, TaskRef
from benchctl.stats.metrics import METRICS, metric_of
from benchctl.yaml_file import Document, Step, fraction

_USUAL: Final = ", ".join(one.key for one in METRICS)
_KNOWN: Final = f"known: {_USUAL}, and other percentiles such as service_time_p50"
_MARGIN: Final = "5%"
_LEAST_CHANGE_PERCENT: Final = -100

Comparisons = dict[str, ComparisonSpec]
Steps = tuple[Step, ...]


class TableReader:
    """One file's tables and expectations, as far as they can be checked without its challenges.

    Args:
        file: as written.
        document: of it, for errors that name its lines.
    """

    def __init__(self, file: ExperimentFile, document: Document) -> None:
        self._file = file
        self._document = document

    def tables(self) -> tuple[TableSpec, ...]:
        """The tables, in order.

        Raises:
            UsageError: a metric or measurement is unknown, or a row compares nothing.
        """
        return tuple(self._table(place, entry) for place, entry in enumerate(self._file.tables))

    def expectations(self, tables: tuple[TableSpec, ...]) -> tuple[Expectation, ...]:
        """The expectations that are about comparisons, in order.

        Args:
            tables: that hold the comparisons that they are about.

        Raises:
            UsageError: two comparisons share a name, or an expectation is about none, or cannot be judged.
        """
        known = self._by_name(tables)
        return tuple(
            self._expectation(entry, place, known)
            for place, entry in enumerate(self._file.expectations)
            if entry.fate is None
        )

    def _refuse(self, steps: Steps, message: str, hint: str = "") -> UsageError:
        return self._document.refuse(steps, message, hint=hint)

    def _table(self, place: int, entry: TableEntry) -> TableSpec:
        steps = ("tables", place)
        if entry.metric is not None:
            self._metric(entry.metric, (*steps, "metric"))
        rows = tuple(self._row(row, (*steps, "rows", number), entry) for number, row in enumerate(entry.rows))
        return TableSpec(
            title=entry.title,
            rows=rows,
            source=entry.source.strip(),
            about=entry.about.strip(),
            baseline=entry.baseline,
            contender=entry.contender,
        )

    def _row(self, row: RowEntry, steps: Steps, table: TableEntry) -> ComparisonSpec:
        metric = row.metric or table.metric
        if metric is None:
            raise self._refuse(steps, "neither the row nor its table has a 'metric'", _KNOWN)
        baseline = self._ref(row.baseline, (*steps, "baseline"))
        contender = self._ref(row.contender, (*steps, "contender"))
        if baseline == contender:
            raise self._refuse((*steps, "contender"), f"'{contender}' is compared with itself")
        return ComparisonSpec(
            name=row.name,
            label=row.label or row.name,
            baseline=baseline,
            contender=contender,
            metric=self._metric(metric, (*steps, "metric")),
            published=None
            if row.published is None
            else self._published(row.published, (*steps, "published")),
        )

    def _published(self, figures: tuple[float, ...], steps: Steps) -> Published:
        """Figures of which a ratio can be made."""
        baseline, contender, *change = figures
        for place, figure in enumerate((baseline, contender)):
            if figure <= 0:
                raise self._refuse((*steps, place), f"a published figure is more than 0, not {figure:g}")
        for percent in change:
            if percent <= _LEAST_CHANGE_PERCENT:
                raise self._refuse((*steps, 2), f"figures above 0 never differ by {percent:g} %")
        return Published(baseline, contender, *change)

    def _metric(self, metric: str, steps: Steps) -> str:
        try:
            return metric_of(metric).key
        except ValueError as err:
            raise self._refuse(steps, str(err), _metric_hint(metric)) from err

    def _ref(self, text: str, steps: Steps) -> TaskRef:
        try:
            ref = parse_ref(text)
        except UsageError as err:
            raise self._refuse(steps, err.message, err.hint) from err
        if ref.measurement not in self._file.measurements:
            raise self._refuse(
                steps,
                f"there is no measurement '{ref.measurement}'",
                suggestion(ref.measurement, self._file.measurements),
            )
        return ref

    def _by_name(self, tables: tuple[TableSpec, ...]) -> Comparisons:
        known: Comparisons = {}
        for place, table in enumerate(tables):
            for number, row in enumerate(table.rows):
                if row.name in known:
                    steps = ("tables", place, "rows", number, "name")
                    raise self._refuse(steps, f"there are two comparisons '{row.name}'")
                known[row.name] = row
        return known

    def _expectation(self, entry: ExpectationEntry, order: int, known: Comparisons) -> Expectation:
        steps = ("expectations", order)
        if entry.comparisons is None or entry.is_ is None:
            missing = "comparisons" if entry.comparisons is None else "is"
            raise self._refuse(steps, f"'{missing}' is missing", "or give it the 'fate' of a call site")
        for place, name in enumerate(entry.comparisons):
            self._check_comparison(name, (*steps, "comparisons", place), known)
            if name in entry.comparisons[:place]:
                raise self._refuse((*steps, "comparisons", place), f"'{name}' is there twice")
        if entry.than is not None:
            self._check_than(entry.comparisons, entry.than, (*steps, "than"), known)
        margin = fraction(entry.margin or _MARGIN)
        if not 0 < margin < 1:
            raise self._refuse((*steps, "margin"), "a margin is more than 0 % and less than 100 %")
        return Expectation(
            statement=entry.statement,
            comparisons=entry.comparisons,
            is_=entry.is_,
            margin=margin,
            than=entry.than or "",
            needs=entry.needs.strip(),
            place=order,
        )

    def _check_comparison(self, name: str, steps: Steps, known: Comparisons) -> None:
        if name not in known:
            raise self._refuse(steps, f"there is no comparison '{name}'", suggestion(name, known))

    def _check_than(
        self,
        comparisons: tuple[str, ...],
        than: str,
        steps: Steps,
        known: Comparisons,
    ) -> None:
        """The ratio of one comparison against that of another, which must be of the same kind."""
        self._check_comparison(than, steps, known)
        if len(comparisons) != 1:
            raise self._refuse(
                steps,
                f"'than' takes one comparison, not {len(comparisons)}",
                "write an expectation for each",
            )
        (first,) = comparisons
        if first == than:
            raise self._refuse(steps, f"'{than}' is held against itself")
        if known[first].metric != known[than].metric:
            raise self._refuse(
                steps, f"'{first}' is in {known[first].metric}, '{than}' in {known[than].metric}"
            )


def _metric_hint(metric: str) -> str:
    """What was probably meant: Rally's words come in another order."""
    known = [one.key for one in METRICS]
    first, _, rest = metric.partition("_")
    turned = f"{rest}_{first}"
    try:
        return f"did you mean '{metric_of(turned).key}'?"
    except ValueError:
        return guess(metric, known) or _KNOWN
