"""Experiment files, read and checked as far as that goes without loading their challenges."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from benchctl.disk import read_file
from benchctl.engine.variant import LATEST, base_variant, placed_challenge
from benchctl.engine.variant_file import resolve_variants_mapping
from benchctl.errors import UsageError
from benchctl.experiment.form import (
    CallSiteEntry,
    ExpectationEntry,
    ExperimentFile,
    FateEntry,
    MeasurementEntry,
    RedlineEntry,
    RowEntry,
    TableEntry,
)
from benchctl.experiment.record import (
    CallSite,
    ComparisonSpec,
    Expectation,
    ExperimentSpec,
    FateExpectation,
    Measurement,
    Published,
    SideRef,
    TableSpec,
    TaskRef,
    Term,
    side_text,
    terms_of,
)
from benchctl.micro.conduct import MicroEntry, parse_variant, placed_variant
from benchctl.nearest import guess, suggestion
from benchctl.quantities import DURATION, PERCENT
from benchctl.redline.conduct import parse_clients, parse_objective, search_of, searched_by
from benchctl.report.numbers import counted
from benchctl.results.figures import FIGURES, Figure
from benchctl.results.plan import MicroSpec, RedlineSpec, VariantSpec
from benchctl.run.documents import GENERATED_DOCUMENTS
from benchctl.run.form import documents_of, placed
from benchctl.spec import Conditions, problems
from benchctl.stats.metrics import METRICS, kept_keys, kept_metric_of, metric_of
from benchctl.track.library import shipped, track_names
from benchctl.yaml_file import Document, Step, read_typed

_Comparisons = dict[str, ComparisonSpec]
_Steps = tuple[Step, ...]

_BUILT_IN: Final = ("es", "os")
_FORM: Final = "MEASUREMENT/VARIANT/TASK, or MEASUREMENT/VARIANT/CHALLENGE/TASK"
_SHORT: Final = 3


def parse_side(entry: str | tuple[str, ...], figure: Figure | None = None) -> SideRef:
    """Read a side: a reference, or several, with a sign before each, `+` unless it is given.

    What the figure may be of decides whether a reference is of a task or an index, `MEASUREMENT/VARIANT`.

    Raises:
        UsageError: As `parse_ref` does.
    """

    def read(text: str) -> TaskRef:
        index = figure is not None and figure.built and (not figure.of_tasks or text.count("/") == 1)
        return _index_ref(text) if index else parse_ref(text)

    if isinstance(entry, str):
        return read(entry)
    return tuple(Term(read(text.lstrip("+- ")), minus=text.startswith("-")) for text in entry)


def _index_ref(text: str) -> TaskRef:
    measurement, slash, variant = text.partition("/")
    if not (measurement and slash and variant) or "/" in variant:
        raise UsageError(f"'{text}' is not an index", hint="write MEASUREMENT/VARIANT: all of its builds")
    return TaskRef(measurement, variant, "")


def parse_ref(text: str) -> TaskRef:
    """Read a reference; `TaskRef.place_in` checks that there is such a task.

    Raises:
        UsageError: If it has too few parts, or an empty one.
    """
    parts = text.split("/")
    if len(parts) < _SHORT or not all(parts):
        raise UsageError(f"'{text}' is not a task", hint=f"write {_FORM}")
    measurement, variant, *rest = parts
    if len(parts) == _SHORT:
        return TaskRef(measurement, variant, rest[0])
    # Only a task's own name may hold a slash.
    return TaskRef(measurement, variant, "/".join(rest[1:]), rest[0])


# Tables and expectations: what is compared, and what that should show.

_USUAL: Final = ", ".join(one.key for one in METRICS)
_KNOWN: Final = f"known: {_USUAL}, and other percentiles such as service_time_p50; all: benchctl list metrics"
_MARGIN: Final = "5%"
_SEARCHED: Final = {"rate": "rate", "factor": "factor of a challenge's rates", "clients": "number of clients"}
_OF_TASKS: Final = frozenset({"metrics", "compared_as"})
_LEAST_CHANGE_PERCENT: Final = -100
_MS_PER_S: Final = 1000


class _Part:
    """A part of a file, checked without its challenges; errors name its lines."""

    def __init__(self, file: ExperimentFile, document: Document) -> None:
        self._file = file
        self._document = document

    def _refuse(self, steps: _Steps, message: str, hint: str = "", key: str | None = None) -> UsageError:
        return self._document.refuse(steps, message, hint=hint, key=key)


class _TableReader(_Part):
    def tables(self) -> tuple[TableSpec, ...]:
        """Return the tables, in order.

        Raises:
            UsageError: If a metric or measurement is unknown, or a row compares nothing.
        """
        return tuple(self._table(place, entry) for place, entry in enumerate(self._file.tables))

    def expectations(self, tables: tuple[TableSpec, ...]) -> tuple[Expectation, ...]:
        """Return the expectations that are about comparisons of these tables, in order.

        Raises:
            UsageError: If two comparisons share a name, or an expectation is about none, or cannot be judged.
        """
        known = self._by_name(tables)
        return tuple(
            self._expectation(entry, place, known)
            for place, entry in enumerate(self._file.expectations)
            if entry.fate is None
        )

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

    def _row(self, row: RowEntry, steps: _Steps, table: TableEntry) -> ComparisonSpec:
        metric = row.metric or table.metric
        if metric is None:
            raise self._refuse(steps, "neither the row nor its table has a 'metric'", _KNOWN)
        # What a side may be depends on it.
        metric = self._metric(metric, (*steps, "metric"))
        baseline = self._side(row.baseline, metric, (*steps, "baseline"))
        contender = self._side(row.contender, metric, (*steps, "contender"))
        if len({bool(one.ref.task) for side in (baseline, contender) for one in terms_of(side)}) > 1:
            raise self._refuse((*steps, "contender"), "index builds are compared with a task")
        if baseline == contender:
            raise self._refuse((*steps, "contender"), f"'{side_text(contender)}' is compared with itself")
        if row.published is not None and row.as_ == "difference":
            raise self._refuse((*steps, "published"), "published figures stand beside ratios")
        derived = not (isinstance(baseline, TaskRef) and isinstance(contender, TaskRef))
        compared_as = "ratio-of-sums" if derived and row.as_ == "ratio" else row.as_
        return ComparisonSpec(
            name=row.name,
            label=row.label or row.name,
            baseline=baseline,
            contender=contender,
            metric=metric,
            compared_as=compared_as,
            published=None
            if row.published is None
            else self._published(row.published, (*steps, "published")),
        )

    def _published(self, figures: tuple[float, ...], steps: _Steps) -> Published:
        baseline, contender, *change = figures
        for place, figure in enumerate((baseline, contender)):
            if figure <= 0:
                raise self._refuse((*steps, place), f"a published figure is more than 0, not {figure:g}")
        for percent in change:
            if percent <= _LEAST_CHANGE_PERCENT:
                raise self._refuse((*steps, 2), f"figures above 0 never differ by {percent:g}%")
        return Published(baseline, contender, *change)

    def _metric(self, metric: str, steps: _Steps) -> str:
        try:
            return kept_metric_of(metric).key
        except ValueError as err:
            raise self._refuse(steps, str(err), _metric_hint(metric)) from err

    def _side(self, entry: str | tuple[str, ...], metric: str, steps: _Steps) -> SideRef:
        try:
            side = parse_side(entry, metric_of(metric).figure)
        except UsageError as err:
            raise self._refuse(steps, err.message, err.hint) from err
        refs = [one.ref for one in terms_of(side)]
        for place, ref in enumerate(refs):
            own = (*steps, place) if isinstance(side, tuple) else steps
            if ref.measurement not in self._file.measurements:
                raise self._refuse(
                    own,
                    f"there is no measurement '{ref.measurement}'",
                    suggestion(ref.measurement, self._file.measurements),
                )
            if ref in refs[:place]:
                raise self._refuse(own, f"'{ref}' is there twice")
        return side

    def _by_name(self, tables: tuple[TableSpec, ...]) -> _Comparisons:
        known: _Comparisons = {}
        for place, table in enumerate(tables):
            for number, row in enumerate(table.rows):
                if row.name in known:
                    steps = ("tables", place, "rows", number, "name")
                    raise self._refuse(steps, f"there are two comparisons '{row.name}'")
                known[row.name] = row
        return known

    def _expectation(self, entry: ExpectationEntry, order: int, known: _Comparisons) -> Expectation:
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
        margin, unit = self._margin([known[name] for name in entry.comparisons], entry.margin, steps)
        return Expectation(
            statement=entry.statement,
            comparisons=entry.comparisons,
            is_=entry.is_,
            margin=margin,
            than=entry.than or "",
            needs=entry.needs.strip(),
            place=order,
            unit=unit,
        )

    def _margin(self, rows: Sequence[ComparisonSpec], margin: str | None, steps: _Steps) -> tuple[float, str]:
        """Return a fraction without a unit, or what the differences of the rows are measured in."""
        steps = (*steps, "margin")
        metrics = {row.metric if row.compared_as == "difference" else "" for row in rows}
        if len(metrics) > 1:
            raise self._refuse(
                steps[:-1], "ratios and differences have no margin in common", "write an expectation for each"
            )
        (metric,) = metrics
        in_percent = (margin or _MARGIN).endswith("%")
        if not metric:
            if not in_percent:
                raise self._refuse(
                    steps, "the margin of ratios is in per cent", "or compare `as: difference`"
                )
            found = PERCENT.parse(margin or _MARGIN)
            if not 0 < found < 1:
                raise self._refuse(steps, "a margin is more than 0% and less than 100%")
            return found, ""
        measured = metric_of(metric)
        unit = measured.unit
        if margin is None or in_percent:
            raise self._refuse(steps, f"the margin of a difference is in its unit, such as 2 {unit}")
        number, _, given = re.sub(r"(?<=[0-9]) ?(?=[A-Za-z])", " ", margin).partition(" ")
        time_s = DURATION.amount(number + given) if unit == "ms" else None
        fits = given == unit or measured.figure.counts if unit != "ms" else time_s is not None
        if not fits:
            raise self._refuse(steps, f"'{given}' is not what {metric} is in", f"write it in {unit}")
        amount = float(number) if time_s is None else float(time_s * _MS_PER_S)
        if not amount:
            raise self._refuse(steps, "a margin is more than 0")
        return amount, unit if unit == "ms" else given

    def _check_comparison(self, name: str, steps: _Steps, known: _Comparisons) -> None:
        if name not in known:
            raise self._refuse(steps, f"there is no comparison '{name}'", suggestion(name, known))

    def _check_than(
        self,
        comparisons: tuple[str, ...],
        than: str,
        steps: _Steps,
        known: _Comparisons,
    ) -> None:
        """Both comparisons must be of the same kind."""
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
        kinds = {known[first].compared_as, known[than].compared_as}
        if len(kinds) > 1 or "ratio-of-sums" in kinds:
            raise self._refuse(
                steps,
                "'than' takes two ratios of single tasks, or two differences",
                "compare both `as: difference`",
            )


def _metric_hint(metric: str) -> str:
    """Return what was probably meant: Rally's order of words is different."""
    known = [key for one in FIGURES for key in ([one.name] if one.built else kept_keys(one))]
    if metric in known:
        return f"index_size is that of all of them; benchctl run and compare take {metric}"
    first, _, rest = metric.partition("_")
    turned = f"{rest}_{first}"
    try:
        return f"did you mean '{metric_of(turned).key}'?"
    except ValueError:
        return guess(metric, known) or _KNOWN


# Call sites, and what is expected of them.


class _FateReader(_Part):
    def call_sites(self) -> tuple[CallSite, ...]:
        """Return the call sites, in order.

        Raises:
            UsageError: If two share a name, a measurement or variant is unknown, or no log will tell of one.
        """
        found: dict[str, CallSite] = {}
        for place, entry in enumerate(self._file.call_sites):
            steps = ("call-sites", place)
            if entry.name in found:
                raise self._refuse((*steps, "name"), f"there are two call sites '{entry.name}'")
            found[entry.name] = self._call_site(entry, steps)
        return tuple(found.values())

    def fates(self, sites: tuple[CallSite, ...]) -> tuple[FateExpectation, ...]:
        """Return the expectations that are about call sites, in order.

        Raises:
            UsageError: If one is about a call site or variant that there is not, or about comparisons as
                well.
        """
        known = {one.name: one for one in sites}
        return tuple(
            self._fate(entry, entry.fate, place, known)
            for place, entry in enumerate(self._file.expectations)
            if entry.fate is not None
        )

    def _call_site(self, entry: CallSiteEntry, steps: _Steps) -> CallSite:
        self._check_measurement(entry, steps)
        if "::" not in entry.method.strip(":"):
            raise self._refuse(
                (*steps, "method"), f"'{entry.method}' is not a method", "write it as Class::method"
            )
        if "::" in entry.callee:
            raise self._refuse(
                (*steps, "callee"),
                f"'{entry.callee}' has a class, which differs with how the call is made",
                f"write {entry.callee.rpartition('::')[2]}",
            )
        try:
            ref = parse_ref(f"{entry.measurement}/{entry.variants[0]}/{entry.task}")
        except UsageError as err:
            raise self._refuse(
                (*steps, "task"), f"'{entry.task}' is not a task", "write TASK, or CHALLENGE/TASK"
            ) from err
        return CallSite(
            name=entry.name,
            label=entry.label or entry.name,
            measurement=entry.measurement,
            variants=entry.variants,
            method=entry.method,
            callee=entry.callee,
            task=ref.task,
            challenge=ref.challenge,
            about=entry.about.strip(),
        )

    def _check_measurement(self, entry: CallSiteEntry, steps: _Steps) -> None:
        known = self._file.measurements
        measurement = known.get(entry.measurement)
        if measurement is None:
            raise self._refuse(
                (*steps, "measurement"),
                f"there is no measurement '{entry.measurement}'",
                suggestion(entry.measurement, known),
            )
        if measurement.evidence is None or "inlining" not in measurement.evidence.kinds:
            raise self._refuse(
                (*steps, "measurement"),
                f"measurement '{entry.measurement}' keeps no inlining logs",
                "give it `evidence: {kinds: [inlining]}`",
            )
        variants = tuple(map(_variant_name, measurement.variants))
        for place, variant in enumerate(entry.variants):
            where = (*steps, "variants", place)
            if variant not in variants:
                raise self._refuse(
                    where,
                    f"measurement '{entry.measurement}' has no variant '{variant}'",
                    suggestion(variant, variants),
                )
            if variant in entry.variants[:place]:
                raise self._refuse(where, f"variant '{variant}' is there twice")

    def _fate(
        self, entry: ExpectationEntry, fate: FateEntry, place: int, known: dict[str, CallSite]
    ) -> FateExpectation:
        steps = ("expectations", place)
        others = {
            "comparisons": entry.comparisons,
            "is": entry.is_,
            "margin": entry.margin,
            "than": entry.than,
        }
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise self._refuse(
                (*steps, given[0]),
                f"an expectation has a 'fate' or '{given[0]}', not both",
                "write two expectations",
            )
        inside = (*steps, "fate")
        if fate.call_site not in known:
            raise self._refuse(
                (*inside, "call-site"),
                f"there is no call site '{fate.call_site}'",
                suggestion(fate.call_site, known),
            )
        variants = known[fate.call_site].variants
        if fate.variant not in variants:
            raise self._refuse(
                (*inside, "variant"),
                f"call site '{fate.call_site}' has no variant '{fate.variant}'",
                suggestion(fate.variant, variants),
            )
        return FateExpectation(
            statement=entry.statement,
            call_site=fate.call_site,
            variant=fate.variant,
            is_=fate.is_,
            needs=entry.needs.strip(),
            place=place,
        )


# The file as a whole.


@dataclass(frozen=True)
class Source:
    """An experiment file that was read."""

    spec: ExperimentSpec
    document: Document

    @contextmanager
    def at(self, *steps: Step, key: str | None = None) -> Iterator[None]:
        """A context whose errors are reported at a place of the file; see `Document.refuse`.

        Raises:
            UsageError: If for any other of them.
        """
        try:
            yield
        except UsageError as err:
            raise self.document.refuse(steps, err.message, hint=err.hint, key=key) from err


def read_experiment(path: Path) -> Source:
    """Read and check an experiment file.

    Raises:
        UsageError: If it cannot be read, or something in it is wrong: with file, line and column.
    """
    typed = read_typed(path, ExperimentFile)
    return Source(_Reader(typed.value, typed.document, path).spec(), typed.document)


class _Reader(_Part):
    """The reader of one file; every method checks its part of the spec."""

    def __init__(self, file: ExperimentFile, document: Document, path: Path) -> None:
        super().__init__(file, document)
        self._path = path
        self._folder = path.absolute().parent

    def spec(self) -> ExperimentSpec:
        file = self._file
        variants = self._variants()
        measurements = tuple(
            self._measurement(name, entry, variants) for name, entry in file.measurements.items()
        )
        comparing = _TableReader(file, self._document)
        tables = comparing.tables()
        looking = _FateReader(file, self._document)
        call_sites = looking.call_sites()
        return ExperimentSpec(
            **self._conditions(file, ()),
            name=self._path.stem,
            title=file.title,
            about=file.about.strip(),
            source=file.source.strip(),
            forks=file.forks,
            params=file.params,
            variants=tuple(variants.values()),
            measurements=measurements,
            tables=tables,
            expectations=comparing.expectations(tables),
            call_sites=call_sites,
            fates=looking.fates(call_sites),
            digest=self._digest(measurements, variants.values()),
        )

    def _conditions(self, entry: Conditions, steps: _Steps) -> dict[str, Any]:
        """Return the conditions of an entry, by field: checked, and with absolute paths."""
        for setting, problem in problems(entry):
            key = setting.within or setting.name.replace("_", "-")
            raise self._refuse((*steps, key), problem)
        whole = placed(entry, self._folder)
        found = {one.name: getattr(whole, one.name) for one in msgspec.structs.fields(Conditions)}
        found["docs"] = documents_of(entry)
        if entry.docs is None and not entry.corpus and entry.track in track_names():
            found["docs"] = GENERATED_DOCUMENTS
        return found | {"seed": 1 if entry.seed is None else entry.seed}

    def _own(self, entry: MeasurementEntry, steps: _Steps) -> dict[str, Any]:
        """Return a measurement's own conditions, by field."""
        written = self._document.value["measurements"][steps[-1]]
        names = {one.encode_name: one.name for one in msgspec.structs.fields(Conditions)}
        given = {names[key] for key in written if key in names}
        if given & {"track", "corpus"}:
            # The experiment's number is of other documents.
            given.add("docs")
        conditions = self._conditions(entry, steps)
        return {name: conditions[name] for name in sorted(given)}

    def _variants(self) -> dict[str, VariantSpec]:
        """Return the variants of the file, and the built-in ones that measurements name, in that order."""
        found = resolve_variants_mapping(self._file.variants, self._document, ("variants",), self._folder)
        for name, spec in found.items():
            if spec.version == LATEST:
                raise self._refuse(
                    ("variants", name),
                    "an experiment that can be repeated names versions",
                    f"write one for {LATEST}",
                )
        for name, entry in self._file.measurements.items():
            for place, wanted in enumerate(entry.variants):
                steps = ("measurements", name, "variants", place)
                if entry.micro is not None:
                    self._add_micro(wanted, steps, found)
                elif wanted not in found:
                    found[wanted] = self._built_in(wanted, steps, found)
        return found

    def _add_micro(self, text: str, steps: _Steps, known: dict[str, VariantSpec]) -> None:
        try:
            spec = parse_variant(placed_variant(text, self._folder))
        except UsageError as err:
            raise self._refuse(steps, err.message, err.hint) from err
        if known.setdefault(spec.name, spec) != spec:
            raise self._refuse(steps, f"there is another variant '{spec.name}'", "give it another name")

    def _built_in(self, name: str, steps: _Steps, known: Iterable[str]) -> VariantSpec:
        hint = suggestion(name, [*known, *_BUILT_IN])
        try:
            spec = base_variant(name)
        except UsageError as err:
            # Of what cannot be an engine and its version, the names that there are say more.
            plain = name.partition("@")[0] in _BUILT_IN
            raise self._refuse(
                steps,
                err.message if plain else f"there is no variant '{name}'",
                err.hint if plain else hint,
            ) from err
        if spec.name != name or spec.version == LATEST:
            raise self._refuse(
                steps, f"'{name}' is not a plain version of an engine", "define it below `variants`"
            )
        return spec

    def _measurement(
        self, name: str, entry: MeasurementEntry, variants: dict[str, VariantSpec]
    ) -> Measurement:
        steps = ("measurements", name)
        for place, variant in enumerate(entry.variants):
            if variant in entry.variants[:place]:
                raise self._refuse((*steps, "variants", place), f"variant '{variant}' is there twice")
        if entry.forks is not None and entry.forks > self._file.forks:
            raise self._refuse(
                (*steps, "forks"),
                f"a measurement has at most the experiment's {counted(self._file.forks, 'fork')}",
            )
        kinds = (bool(entry.challenges), entry.redline is not None, entry.ingest, entry.micro is not None)
        if kinds.count(True) != 1:
            raise self._refuse(
                steps,
                "a measurement has challenges, a red-line search or microbenchmarks, or builds indices only",
                "give it one of `challenges`, `redline`, `micro`, and `ingest: true`",
            )
        for key, value in (
            ("warmup-challenges", entry.warmup_challenges),
            ("evidence", entry.evidence),
            ("forks", entry.forks),
        ):
            if entry.ingest and value:
                raise self._refuse((*steps, key), "where indices are built and nothing else, nothing has it")
        if entry.redline is not None and (entry.warmup_challenges or entry.evidence is not None):
            key = "warmup-challenges" if entry.warmup_challenges else "evidence"
            raise self._refuse(
                (*steps, key), "a red-line search warms up by itself, and collects no evidence"
            )
        own = self._own(entry, steps)
        if (entry.ingest or entry.redline is not None) and own.keys() & _OF_TASKS:
            key = min(own.keys() & _OF_TASKS).replace("_", "-")
            what = "index builds" if entry.ingest else "a red-line search"
            raise self._refuse((*steps, key), f"'{key}' is about tasks, and has no effect on {what}")
        return Measurement(
            name=name,
            variants=tuple(variants[_variant_name(variant)].name for variant in entry.variants),
            challenges=self._challenges(entry.challenges, (*steps, "challenges")),
            warmup_challenges=self._challenges(entry.warmup_challenges, (*steps, "warmup-challenges")),
            own=own,
            ingest=entry.ingest,
            redline=None if entry.redline is None else self._redline(entry.redline, (*steps, "redline")),
            micro=None if entry.micro is None else self._micro(entry.micro, (*steps, "micro")),
            params=entry.params,
            about=entry.about.strip(),
            forks=entry.forks,
            evidence=entry.evidence,
        )

    def _micro(self, entry: MicroEntry, steps: _Steps) -> MicroSpec:
        try:
            return entry.spec(self._folder)
        except UsageError as err:
            raise self._refuse(steps, err.message, err.hint) from err

    def _redline(self, entry: RedlineEntry, steps: _Steps) -> RedlineSpec:
        try:
            objective = parse_objective(entry.slo)
        except ValueError as err:
            raise self._refuse((*steps, "slo"), str(err)) from err
        try:
            clients = parse_clients(str(entry.clients))
        except ValueError as err:
            raise self._refuse((*steps, "clients"), str(err)) from err
        by = searched_by(entry.challenge, clients)
        for key, value, meant in (
            ("operation", entry.operation, ("rate", "clients")),
            ("tasks", entry.tasks, ("factor",)),
            ("schedule", entry.schedule, ("rate",)),
            ("max-rate", entry.max_rate, ("rate",)),
            ("max-factor", entry.max_factor, ("factor",)),
        ):
            if value and by not in meant:
                raise self._refuse((*steps, key), f"'{key}' has no effect on a search for a {_SEARCHED[by]}")
        challenge = None
        if entry.challenge is not None:
            (challenge,) = self._challenges((entry.challenge,), (*steps, "challenge"))
        try:
            return search_of(
                entry.tasks or ((entry.operation,) if entry.operation else ()),
                challenge,
                objective,
                clients=clients,
                schedule=entry.schedule or "poisson",
                warm_up_s=entry.warm_up,
                settle_s=entry.settle,
                step_s=entry.step_time,
                tolerance=PERCENT.parse(entry.tolerance),
                max_rate=entry.max_rate,
                max_factor=entry.max_factor,
            )
        except UsageError as err:
            raise self._refuse(steps, err.message, "give it an `operation`, or a `challenge`") from err

    def _challenges(self, texts: tuple[str, ...], steps: _Steps) -> tuple[str, ...]:
        """Return names as they are and paths absolute; a file has to exist."""
        found = []
        for place, text in enumerate(texts):
            name = placed_challenge(text, self._folder)
            if name != text and not Path(name).is_file():
                near = guess(text, self._files())
                raise self._refuse((*steps, place), f"there is no challenge file '{text}'", near)
            found.append(name)
        return tuple(found)

    def _files(self) -> list[str]:
        """Return the JSON files at and below the experiment's folder, as the file would name them."""
        depths = ("*.json", "*/*.json")
        return [str(path.relative_to(self._folder)) for depth in depths for path in self._folder.glob(depth)]

    def _digest(self, measurements: Iterable[Measurement], variants: Iterable[VariantSpec]) -> str:
        """Return a SHA-256 over the file and the challenge files that it names."""
        named = (
            *(one for each in measurements for one in (*each.challenges, *each.warmup_challenges)),
            *(each.redline.operation for each in measurements if each.redline is not None),
            *(warmup for spec in variants for warmup in spec.warmups),
        )
        files = [self._path, *(Path(one) for one in dict.fromkeys(named) if Path(one).is_absolute())]
        digest = hashlib.sha256()
        for path in files:
            # One that is not there is refused where it is loaded.
            if path.is_file():
                digest.update(hashlib.sha256(_bytes(path)).digest())
        for each in measurements:
            digest.update(each.micro.digest.encode() if each.micro is not None else b"")
        return digest.hexdigest()


def _variant_name(text: str) -> str:
    """Return the name of a measurement's variant, or for a microbenchmark the part that follows."""
    return text.partition("=")[0]


def _bytes(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as err:
        raise UsageError(f"cannot read {path}: {err.strerror or err}") from err


# Where files are found: those shipped with benchctl, and the user's own by path.


def experiment_names() -> tuple[str, ...]:
    """Return the names of the shipped experiments, sorted."""
    return tuple(sorted(path.stem for path in shipped("experiments").glob("*.yml")))


def find_experiment(name: str) -> Path:
    """Return the file of an experiment: a shipped name, or a path.

    Raises:
        UsageError: If there is no such experiment.
    """
    known = experiment_names()
    if name in known:
        return shipped("experiments") / f"{name}.yml"
    path = Path(name)
    try:
        if path.is_file():
            return path
    except (OSError, ValueError) as err:
        reason = err.strerror if isinstance(err, OSError) else err
        raise UsageError(f"cannot look for experiment '{name}': {reason}") from err
    near = guess(name, known)
    raise UsageError(
        f"there is no experiment '{name}'",
        hint=f"{near} known: {', '.join(known) or 'none'}; or give the path of a YAML file".lstrip(),
    )
