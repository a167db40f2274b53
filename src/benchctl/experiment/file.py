"""Experiment files: their form, read and checked as far as that goes without loading their challenges."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from benchctl.disk import read_file
from benchctl.engine.variant import LATEST, VariantEntry, base_variant, placed_challenge
from benchctl.engine.variant_file import resolve_variants_mapping
from benchctl.errors import UsageError, guess, suggestion
from benchctl.experiment.record import (
    Asked,
    CallSite,
    ComparisonSpec,
    Expectation,
    ExperimentSpec,
    Measurement,
    MeasurementForm,
    Name,
    Side,
    TableSpec,
    is_derived,
    parse_side,
    side_text,
)
from benchctl.micro.conduct import MicroEntry, parse_variant, placed_variant
from benchctl.quantities import DURATION, PERCENT, Percent
from benchctl.redline.conduct import parse_clients, parse_objective, search_of, searched_by
from benchctl.report.numbers import counted
from benchctl.results.metrics import METRIC_KINDS
from benchctl.results.plan import MicroSpec, RedlineSpec, VariantSpec
from benchctl.run.documents import GENERATED_DOCUMENTS
from benchctl.run.form import documents_of, placed
from benchctl.spec import Conditions, Text, problems
from benchctl.stats.metrics import DEFAULT_METRICS, kept_keys, kept_metric_of, metric_of
from benchctl.track.library import shipped, track_names
from benchctl.yaml_file import Document, Step, read_typed

_Comparisons = dict[str, ComparisonSpec]
_Steps = tuple[Step, ...]
_T = TypeVar("_T")

_BUILT_IN: Final = ("es", "os")
_USUAL: Final = ", ".join(metric.key for metric in DEFAULT_METRICS)
_KNOWN: Final = f"known: {_USUAL}, and other percentiles such as service_time_p50; all: benchctl list metrics"
_SEARCHED: Final = {"rate": "rate", "factor": "factor of a challenge's rates", "clients": "number of clients"}
_OF_TASKS: Final = frozenset({"metrics", "diff"})
_CONDITIONS: Final = {field.name: field.encode_name for field in msgspec.structs.fields(Conditions)}
_LEAST_CHANGE_PERCENT: Final = -100
_MS_PER_S: Final = 1000


class RedlineEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A search for the highest load that meets an objective, as `benchctl redline` has it; seconds."""

    operation: Text | None = None  # operation to load; or `challenge`
    challenge: Text | None = None  # challenge whose rates are multiplied
    # Tasks of the challenge that have to meet `slo`; by default all with a rate.
    tasks: tuple[Text, ...] = ()
    slo: Text  # objective, such as `p90=50ms`
    clients: int | Text = 16  # clients, or a range such as `1..64`
    schedule: Literal["deterministic", "poisson"] | None = None  # distribution of arrivals
    warm_up: float = 10.0  # seconds of warm-up before the search
    settle: float = 2.0  # unmeasured seconds of every step
    step_time: float = 5.0  # measured seconds of every step
    tolerance: Percent = "3%"  # distance of the last two loads
    max_rate: float | None = None  # highest rate to try
    max_factor: float | None = None  # highest factor of a challenge's rates to try


class MeasurementEntry(
    MeasurementForm, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True
):
    """A measurement as a file has it."""

    redline: RedlineEntry | None = None  # search for the maximum load, instead of challenges
    micro: MicroEntry | None = None  # microbenchmarks, instead of challenges


class ExperimentFile(Asked, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """An experiment file as a whole."""

    # Variants by name, besides built-in ones such as `es`, `os` and `es@8.19.0`.
    variants: dict[str, VariantEntry] = msgspec.field(default_factory=dict)
    measurements: Annotated[dict[Name, MeasurementEntry], Meta(min_length=1)]  # measurements by name


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


class _Reader:
    """The reader of one file; every method checks and completes its part of it."""

    def __init__(self, file: ExperimentFile, document: Document, path: Path) -> None:
        self._file = file
        self._document = document
        self._path = path
        self._folder = path.absolute().parent

    def spec(self) -> ExperimentSpec:
        file = self._file
        variants = self._variants()
        conditions = self._conditions(file, ())
        measurements = tuple(
            self._measurement(name, entry, variants, conditions) for name, entry in file.measurements.items()
        )
        tables = tuple(self._table(place, table) for place, table in enumerate(file.tables))
        rows = [
            (row.name, ("tables", place, "rows", number, "name"), row)
            for place, table in enumerate(tables)
            for number, row in enumerate(table.rows)
        ]
        sites = [
            (site.name, ("call-sites", place, "name"), self._call_site(site, ("call-sites", place)))
            for place, site in enumerate(file.call_sites)
        ]
        comparisons, call_sites = self._by_name("comparisons", rows), self._by_name("call sites", sites)
        return ExperimentSpec(
            **conditions,
            name=self._path.stem,
            title=file.title,
            about=file.about.strip(),
            source=file.source.strip(),
            forks=file.forks,
            on_busy=file.on_busy,
            params=file.params,
            variants=tuple(variants.values()),
            measurements=measurements,
            tables=tables,
            call_sites=tuple(call_sites.values()),
            expectations=tuple(
                self._expectation(entry, ("expectations", place), comparisons)
                if entry.fate is None
                else self._fate(entry, ("expectations", place), call_sites)
                for place, entry in enumerate(file.expectations)
            ),
            digest=self._digest(measurements, variants.values()),
        )

    def _refuse(self, steps: _Steps, message: str, hint: str = "", key: str | None = None) -> UsageError:
        return self._document.refuse(steps, message, hint=hint, key=key)

    @contextmanager
    def _at(self, steps: _Steps) -> Iterator[None]:
        """A context whose errors are reported at a place of the file."""
        try:
            yield
        except (UsageError, ValueError) as err:
            hint = err.hint if isinstance(err, UsageError) else ""
            raise self._refuse(steps, err.message if isinstance(err, UsageError) else str(err), hint) from err

    def _check_known(self, name: str, known: Collection[str], steps: _Steps, what: str) -> None:
        if name not in known:
            raise self._refuse(steps, f"{what} '{name}'", suggestion(name, known))

    def _check_once(self, names: Sequence[str], steps: _Steps, what: str = "") -> None:
        for place, name in enumerate(names):
            if name in names[:place]:
                raise self._refuse((*steps, place), f"{what}'{name}' is a duplicate")

    def _by_name(self, what: str, named: Iterable[tuple[str, _Steps, _T]]) -> dict[str, _T]:
        by_name: dict[str, _T] = {}
        for name, steps, value in named:
            if name in by_name:
                raise self._refuse(steps, f"there are two {what} '{name}'")
            by_name[name] = value
        return by_name

    # Tables and expectations: what is compared, and what that should show.

    def _table(self, place: int, table: TableSpec) -> TableSpec:
        steps = ("tables", place)
        metric = table.metric and self._metric(table.metric, (*steps, "metric"))
        return msgspec.structs.replace(
            table,
            rows=tuple(
                self._row(row, (*steps, "rows", number), metric) for number, row in enumerate(table.rows)
            ),
            source=table.source.strip(),
            about=table.about.strip(),
            metric=metric,
        )

    def _row(self, row: ComparisonSpec, steps: _Steps, usual: str) -> ComparisonSpec:
        # What a side may be depends on the metric.
        metric = self._metric(row.metric, (*steps, "metric")) if row.metric else usual
        if not metric:
            raise self._refuse(steps, "neither the row nor its table has a 'metric'", _KNOWN)
        baseline = self._side(row.baseline, metric, (*steps, "baseline"))
        contender = self._side(row.contender, metric, (*steps, "contender"))
        if len({bool(term.ref.task) for term in (*baseline, *contender)}) > 1:
            raise self._refuse((*steps, "contender"), "index builds are compared with a task")
        if baseline == contender:
            raise self._refuse((*steps, "contender"), f"'{side_text(contender)}' is compared with itself")
        if row.published is not None:
            if row.compared_as == "difference":
                raise self._refuse((*steps, "published"), "published figures stand beside ratios")
            self._check_published(row.published, (*steps, "published"))
        derived = row.compared_as == "ratio" and (is_derived(baseline) or is_derived(contender))
        return msgspec.structs.replace(
            row,
            label=row.label or row.name,
            metric=metric,
            compared_as="ratio-of-sums" if derived else row.compared_as,
        )

    def _check_published(self, figures: tuple[float, ...], steps: _Steps) -> None:
        for place, figure in enumerate(figures[:2]):
            if figure <= 0:
                raise self._refuse((*steps, place), f"a published figure is more than 0, not {figure:g}")
        for percent in figures[2:]:
            if percent <= _LEAST_CHANGE_PERCENT:
                raise self._refuse((*steps, 2), f"figures above 0 never differ by {percent:g}%")

    def _metric(self, metric: str, steps: _Steps) -> str:
        try:
            return kept_metric_of(metric).key
        except ValueError as err:
            raise self._refuse(steps, str(err), _metric_hint(metric)) from err

    def _side(self, entry: str | tuple[str, ...], metric: str, steps: _Steps) -> Side:
        with self._at(steps):
            side = parse_side(entry, metric)
        for place, (ref, _) in enumerate(side):
            own = steps if isinstance(entry, str) else (*steps, place)
            self._check_known(ref.measurement, self._file.measurements, own, "unknown measurement")
            if ref in [term.ref for term in side[:place]]:
                raise self._refuse(own, f"'{ref}' is a duplicate")
        return side

    def _expectation(self, entry: Expectation, steps: _Steps, known: _Comparisons) -> Expectation:
        if entry.comparisons is None or entry.is_ is None:
            missing = "comparisons" if entry.comparisons is None else "is"
            raise self._refuse(steps, f"'{missing}' is missing", "or give it the 'fate' of a call site")
        for place, name in enumerate(entry.comparisons):
            self._check_known(name, known, (*steps, "comparisons", place), "unknown comparison")
        self._check_once(entry.comparisons, (*steps, "comparisons"))
        if entry.than is not None:
            self._check_than(entry.comparisons, entry.than, (*steps, "than"), known)
        margin = self._margin([known[name] for name in entry.comparisons], entry.margin, steps)
        return msgspec.structs.replace(entry, margin=margin, needs=entry.needs.strip())

    def _margin(self, rows: Sequence[ComparisonSpec], margin: str | None, steps: _Steps) -> str:
        """Return a percentage, or an amount in what the differences of the rows are measured in."""
        steps = (*steps, "margin")
        metrics = {row.metric if row.compared_as == "difference" else "" for row in rows}
        if len(metrics) > 1:
            raise self._refuse(
                steps[:-1], "ratios and differences have no margin in common", "write an expectation for each"
            )
        (metric,) = metrics
        in_percent = margin is None or margin.endswith("%")
        if not metric:
            if not in_percent:
                raise self._refuse(
                    steps, "the margin of ratios is a percentage", "or compare `as: difference`"
                )
            if margin is not None and not 0 < PERCENT.parse(margin) < 1:
                raise self._refuse(steps, "a margin is more than 0% and less than 100%")
            return margin or "5%"
        measured = metric_of(metric)
        unit = measured.unit
        if margin is None or in_percent:
            raise self._refuse(steps, f"the margin of a difference is in its unit, such as 2 {unit}")
        number, _, given = re.sub(r"(?<=[0-9]) ?(?=[A-Za-z])", " ", margin).partition(" ")
        time_s = DURATION.amount(number + given) if unit == "ms" else None
        fits = given == unit or measured.kind.counts if unit != "ms" else time_s is not None
        if not fits:
            raise self._refuse(steps, f"'{given}' is not what {metric} is in", f"write it in {unit}")
        amount = float(number) if time_s is None else float(time_s * _MS_PER_S)
        if not amount:
            raise self._refuse(steps, "a margin is more than 0")
        return f"{amount} {unit if unit == 'ms' else given}"

    def _check_than(
        self, comparisons: tuple[str, ...], than: str, steps: _Steps, known: _Comparisons
    ) -> None:
        """Refuse comparisons of different kinds."""
        self._check_known(than, known, steps, "unknown comparison")
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

    # Call sites, and what is expected of them.

    def _call_site(self, site: CallSite, steps: _Steps) -> CallSite:
        self._check_known(
            site.measurement, self._file.measurements, (*steps, "measurement"), "unknown measurement"
        )
        measurement = self._file.measurements[site.measurement]
        if measurement.evidence is None or "inlining" not in measurement.evidence.kinds:
            raise self._refuse(
                (*steps, "measurement"),
                f"measurement '{site.measurement}' keeps no inlining logs",
                "give it `evidence: {kinds: [inlining]}`",
            )
        variants = tuple(map(_variant_name, measurement.variants))
        for place, variant in enumerate(site.variants):
            lacks = f"measurement '{site.measurement}' has no variant"
            self._check_known(variant, variants, (*steps, "variants", place), lacks)
        self._check_once(site.variants, (*steps, "variants"), "variant ")
        if "::" not in site.method.strip(":"):
            raise self._refuse(
                (*steps, "method"), f"'{site.method}' is not a method", "write it as Class::method"
            )
        if "::" in site.callee:
            raise self._refuse(
                (*steps, "callee"),
                f"'{site.callee}' has a class, which differs with how the call is made",
                f"write {site.callee.rpartition('::')[2]}",
            )
        try:
            site.task_of(site.variants[0])
        except UsageError as err:
            raise self._refuse(
                (*steps, "task"), f"'{site.task}' is not a task", "write TASK, or CHALLENGE/TASK"
            ) from err
        return msgspec.structs.replace(site, label=site.label or site.name, about=site.about.strip())

    def _fate(self, entry: Expectation, steps: _Steps, known: dict[str, CallSite]) -> Expectation:
        for key, value in (
            ("comparisons", entry.comparisons),
            ("is", entry.is_),
            ("margin", entry.margin),
            ("than", entry.than),
        ):
            if value is not None:
                raise self._refuse(
                    (*steps, key),
                    f"an expectation has a 'fate' or '{key}', not both",
                    "write two expectations",
                )
        fate = entry.fate
        if fate is not None:
            self._check_known(fate.call_site, known, (*steps, "fate", "call-site"), "unknown call site")
            lacks = f"call site '{fate.call_site}' has no variant"
            variants = known[fate.call_site].variants
            self._check_known(fate.variant, variants, (*steps, "fate", "variant"), lacks)
        return msgspec.structs.replace(entry, needs=entry.needs.strip())

    # Measurements, their conditions and variants.

    def _conditions(self, entry: Conditions, steps: _Steps) -> dict[str, Any]:
        """Return the conditions of an entry, by field: checked, and with absolute paths."""
        for setting, problem in problems(entry):
            key = setting.within or setting.name.replace("_", "-")
            raise self._refuse((*steps, key), problem)
        whole = placed(entry, self._folder)
        conditions = {name: getattr(whole, name) for name in _CONDITIONS}
        conditions["docs"] = documents_of(entry)
        is_shipped = not entry.track_repository and entry.track in track_names()
        if entry.docs is None and not entry.corpus and is_shipped:
            conditions["docs"] = GENERATED_DOCUMENTS
        return conditions | {"seed": 1 if entry.seed is None else entry.seed}

    def _own(self, entry: MeasurementEntry, steps: _Steps) -> dict[str, Any]:
        """Return a measurement's own conditions, by field."""
        written = self._document.value["measurements"][steps[-1]]
        given = {name for name, key in _CONDITIONS.items() if key in written}
        if given & {"track", "corpus"}:
            # The experiment's number is of other documents.
            given.add("docs")
        if "track_repository" not in given:
            entry = msgspec.structs.replace(entry, track_repository=self._file.track_repository)
        conditions = self._conditions(entry, steps)
        return {name: conditions[name] for name in given}

    def _variants(self) -> dict[str, VariantSpec]:
        """Return the variants of the file, and the built-in ones that measurements name, in that order."""
        variants = resolve_variants_mapping(self._file.variants, self._document, ("variants",), self._folder)
        for name, spec in variants.items():
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
                    self._add_micro(wanted, steps, variants)
                elif wanted not in variants:
                    variants[wanted] = self._built_in(wanted, steps, variants)
        return variants

    def _add_micro(self, text: str, steps: _Steps, known: dict[str, VariantSpec]) -> None:
        with self._at(steps):
            spec = parse_variant(placed_variant(text, self._folder))
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
                err.message if plain else f"unknown variant '{name}'",
                err.hint if plain else hint,
            ) from err
        if spec.name != name or spec.version == LATEST:
            raise self._refuse(
                steps, f"'{name}' is not a plain version of an engine", "define it below `variants`"
            )
        return spec

    def _measurement(
        self,
        name: str,
        entry: MeasurementEntry,
        variants: dict[str, VariantSpec],
        conditions: dict[str, Any],
    ) -> Measurement:
        steps = ("measurements", name)
        self._check_once(entry.variants, (*steps, "variants"), "variant ")
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
            **conditions | own,
            name=name,
            variants=tuple(variants[_variant_name(variant)].name for variant in entry.variants),
            challenges=self._challenges(entry.challenges, (*steps, "challenges")),
            warmup_challenges=self._challenges(entry.warmup_challenges, (*steps, "warmup-challenges")),
            ingest=entry.ingest,
            redline=None if entry.redline is None else self._redline(entry.redline, (*steps, "redline")),
            micro=None if entry.micro is None else self._micro(entry.micro, (*steps, "micro")),
            params=entry.params,
            about=entry.about.strip(),
            forks=entry.forks,
            evidence=entry.evidence,
        )

    def _micro(self, entry: MicroEntry, steps: _Steps) -> MicroSpec:
        with self._at(steps):
            return entry.spec(self._folder)

    def _redline(self, entry: RedlineEntry, steps: _Steps) -> RedlineSpec:
        with self._at((*steps, "slo")):
            objective = parse_objective(entry.slo)
        with self._at((*steps, "clients")):
            clients = parse_clients(str(entry.clients))
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
        names = []
        for place, text in enumerate(texts):
            name = placed_challenge(text, self._folder)
            if name != text and not Path(name).is_file():
                near = guess(text, self._files())
                raise self._refuse((*steps, place), f"no such challenge file '{text}'", near)
            names.append(name)
        return tuple(names)

    def _files(self) -> list[str]:
        """Return the JSON files at and below the experiment's folder, as the file would name them."""
        depths = ("*.json", "*/*.json")
        return [str(path.relative_to(self._folder)) for depth in depths for path in self._folder.glob(depth)]

    def _digest(self, measurements: Iterable[Measurement], variants: Iterable[VariantSpec]) -> str:
        """Return a SHA-256 over the file and the challenge files that it names."""
        named = (
            *(
                challenge
                for each in measurements
                for challenge in (*each.challenges, *each.warmup_challenges)
            ),
            *(each.redline.operation for each in measurements if each.redline is not None),
            *(warmup for spec in variants for warmup in spec.warmups),
        )
        files = [
            self._path,
            *(Path(name) for name in dict.fromkeys(named) if Path(name).is_absolute()),
        ]
        digest = hashlib.sha256()
        for path in files:
            # One that is not there is refused where it is loaded.
            if path.is_file():
                digest.update(hashlib.sha256(_bytes(path)).digest())
        for each in measurements:
            digest.update(each.micro.digest.encode() if each.micro is not None else b"")
        return digest.hexdigest()


def _metric_hint(metric: str) -> str:
    """Return what was probably meant: Rally's order of words is different."""
    keys = [key for figure in METRIC_KINDS for key in ([figure.name] if figure.built else kept_keys(figure))]
    if metric in keys:
        return f"index_size is that of all of them; benchctl run and compare take {metric}"
    first, _, rest = metric.partition("_")
    turned = f"{rest}_{first}"
    try:
        return f"did you mean '{metric_of(turned).key}'?"
    except ValueError:
        return guess(metric, keys) or _KNOWN


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
    names = experiment_names()
    if name in names:
        return shipped("experiments") / f"{name}.yml"
    path = Path(name)
    try:
        if path.is_file():
            return path
    except (OSError, ValueError) as err:
        reason = err.strerror if isinstance(err, OSError) else err
        raise UsageError(f"cannot look for experiment '{name}': {reason}") from err
    near = guess(name, names)
    raise UsageError(
        f"no such experiment '{name}'",
        hint=f"{near} known: {', '.join(names) or 'none'}; or give the path of a YAML file".lstrip(),
    )
