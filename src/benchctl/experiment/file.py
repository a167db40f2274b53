"""Experiment files: read, planned and checked, every mistake with its line, before anything is started."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from benchctl.disk import disk_errors
from benchctl.engine.variant import LATEST, VariantEntry, parse_variant, resolve_variants_mapping
from benchctl.errors import UsageError, guess, suggestion
from benchctl.experiment.record import (
    CallSite,
    ComparisonSpec,
    Expectation,
    ExperimentSpec,
    Measurement,
    Name,
    TableSpec,
    TaskRef,
    Texts,
    is_derived,
    parse_side,
    side_text,
)
from benchctl.home import Home
from benchctl.micro.conduct import MicroEntry, placed_variant, plan_micro
from benchctl.micro.conduct import parse_variant as parse_micro_variant
from benchctl.plugin.code import Consent
from benchctl.results.metrics import METRIC_KINDS
from benchctl.results.plan import EvidenceSpec, Plan, VariantSpec
from benchctl.run.documents import FileOptions
from benchctl.run.form import in_test_mode, placed, placed_work, refuse_problems, run_spec
from benchctl.run.plan import axes_of, plan_ingest, plan_run, reload_track
from benchctl.spec import DEFAULT_FORKS, Conditions, Forks, OnBusy, Text, Work
from benchctl.stats.metrics import RECALL, THROUGHPUT, Metric, kept_keys, kept_metric_of, metric_of, task_at
from benchctl.track.library import shipped
from benchctl.track.load import UnusedParameter
from benchctl.track.model import Track
from benchctl.yaml_file import Step, read_typed

_CONDITIONS: Final = {one.name: one.encode_name for one in msgspec.structs.fields(Conditions)}
_OF_FORKS: Final = ("warmup-challenges", "evidence", "forks", "metrics", "diff")
_MARGIN: Final = re.compile(r"(?P<amount>[0-9.]+) ?(?P<unit>.*)")
_N = TypeVar("_N", ComparisonSpec, CallSite)


class MeasurementEntry(Work, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A run of an experiment: variants that do the same."""

    variants: Texts  # names of variants; for microbenchmarks as `benchctl micro run --variant` takes them
    about: str = ""  # paragraph on the measurement
    ingest: bool = False  # true: only build indices
    micro: MicroEntry | None = None  # microbenchmarks, instead of challenges


class ExperimentFile(Conditions, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """An experiment file as a whole.

    Its conditions are those of every measurement that has none of its own.
    """

    title: Text  # title of the report
    about: str = ""  # paragraph below the title
    source: str = ""  # source of published values
    forks: Forks = DEFAULT_FORKS  # forks per variant
    on_busy: OnBusy = "warn"
    # Parameters of all measurements; each takes those that its challenges know.
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    # Variants by name, besides built-in ones such as `es`, `os` and `es@8.19.0`.
    variants: dict[str, VariantEntry] = msgspec.field(default_factory=dict)
    measurements: Annotated[dict[Name, MeasurementEntry], Meta(min_length=1)]  # measurements by name
    tables: tuple[TableSpec, ...] = ()  # tables of comparisons
    call_sites: tuple[CallSite, ...] = ()  # calls whose inlining is of interest
    expectations: tuple[Expectation, ...] = ()  # statements to judge


@dataclass(frozen=True)
class Changes:
    """Command-line values that replace the file's; None for the file's."""

    forks: int | None = None
    docs: int | None = None
    heap: str | None = None
    seed: int | None = None
    test_mode: bool = False
    at_most: bool = False  # fewer documents than `docs` will do
    overrides: Mapping[str, Any] = field(default_factory=dict)  # of parameters


@dataclass(frozen=True)
class Planned:
    """A measurement that is ready to be opened as a run."""

    plan: Plan  # of the run; its corpus digest may still be empty
    track: Track  # with the operations of its challenges
    files: FileOptions
    tags: tuple[str, ...]
    unused: frozenset[str]  # parameters of the experiment that its challenges do not know


Plans = Mapping[str, Planned]
"""By the measurement's name, in the order of the experiment."""


@dataclass(frozen=True)
class Experiment:
    """A checked experiment."""

    spec: ExperimentSpec
    plans: Plans
    on_busy: OnBusy


def load_experiment(path: Path, changes: Changes, home: Home) -> Experiment:
    """Read an experiment file, and plan and check all of it; consents are remembered in `home`.

    Raises:
        UsageError: If something is wrong, in the file with line and column; nothing has been started.
    """
    return _Reader(path.absolute(), changes, home).read()


class _Reader:
    """The reader of one file; every method checks and completes its part of it."""

    def __init__(self, path: Path, changes: Changes, home: Home) -> None:
        typed = read_typed(path, ExperimentFile)
        refuse_problems(typed)
        self._path, self._changes, self._home = path, changes, home
        self._file, self._document = typed.value, typed.document
        self._variants = resolve_variants_mapping(
            self._file.variants, self._document, ("variants",), path.parent
        )
        self._params = {**self._file.params, **changes.overrides}
        self._plans: dict[str, Planned] = {}

    def read(self) -> Experiment:
        file = self._file
        for name, entry in file.measurements.items():
            with self._at("measurements", name):
                self._plans[name] = self._planned(name, entry)
        self._check_params()
        tables = tuple(
            msgspec.structs.replace(
                table,
                rows=tuple(
                    self._row(row, table, ("tables", place, "rows", number))
                    for number, row in enumerate(table.rows)
                ),
            )
            for place, table in enumerate(file.tables)
        )
        rows = self._by_name("tables", [row for table in tables for row in table.rows])
        sites = self._by_name("call-sites", file.call_sites)
        for place, site in enumerate(sites.values()):
            with self._at("call-sites", place):
                self._check_call_site(site)
        expectations = []
        for place, expectation in enumerate(file.expectations):
            with self._at("expectations", place):
                expectations.append(_checked(expectation, rows, sites))
        spec = ExperimentSpec(
            name=self._path.stem,
            title=file.title,
            about=file.about,
            source=file.source.strip(),
            seed=next(seed for seed in (self._changes.seed, file.seed, 1) if seed is not None),
            measurements={
                name: Measurement(
                    variants=tuple(variant.name for variant in self._plans[name].plan.variants),
                    grows=not entry.ingest and entry.forks is None,
                    explained=entry.evidence is not None,
                )
                for name, entry in file.measurements.items()
            },
            tables=tables,
            call_sites=tuple(
                msgspec.structs.replace(site, label=site.label or site.name) for site in sites.values()
            ),
            expectations=tuple(expectations),
        )
        return Experiment(spec, self._plans, file.on_busy)

    @contextmanager
    def _at(self, *steps: Step) -> Iterator[None]:
        """A context whose errors are reported at a place of the file."""
        try:
            yield
        except UsageError as err:
            raise self._document.refuse(steps, err.message, hint=err.hint) from err

    def _by_name(self, steps: str, named: Iterable[_N]) -> dict[str, _N]:
        by_name: dict[str, _N] = {}
        for one in named:
            if one.name in by_name:
                raise self._document.refuse((steps,), f"'{one.name}' is the name of two")
            by_name[one.name] = one
        return by_name

    # Measurements as plans of ordinary runs.

    def _planned(self, name: str, entry: MeasurementEntry) -> Planned:
        if (bool(entry.challenges), entry.ingest, entry.micro is not None).count(True) != 1:
            raise UsageError(
                "a measurement has challenges or microbenchmarks, or builds indices only",
                hint="give it one of `challenges`, `micro`, and `ingest: true`",
            )
        written = self._document.value["measurements"][name]
        if entry.ingest and (idle := [key for key in _OF_FORKS if key in written]):
            raise UsageError(f"'{idle[0]}' has no effect where indices are built and nothing else")
        forks = self._file.forks if self._changes.forks is None else self._changes.forks
        forks = 0 if entry.ingest else forks if entry.forks is None else min(forks, entry.forks)
        work = self._work(entry, written)
        if entry.micro is not None:
            plan = plan_micro(
                self._home,
                entry.micro.spec(self._path.parent),
                [parse_micro_variant(placed_variant(text, self._path.parent)) for text in entry.variants],
                forks=forks,
                seed=1 if work.seed is None else work.seed,
                stop=None,
                evidence=EvidenceSpec.of(entry.evidence),
                progress=lambda *_: None,
            )
            planned = Planned(plan, reload_track(plan), FileOptions(), work.tags, frozenset(self._params))
        else:
            planned = self._of_challenges(entry, msgspec.structs.replace(work, forks=forks or None))
        return replace(planned, plan=in_test_mode(planned.plan)) if self._changes.test_mode else planned

    def _of_challenges(self, entry: MeasurementEntry, work: Work) -> Planned:
        """Plan what nodes run: with those parameters of the experiment that its challenges know."""
        variants = [self._variant(text) for text in entry.variants]
        consent = Consent(self._home)
        options = run_spec(work, variants, home=self._home, consent=consent, at_most=self._changes.at_most)
        unused: set[str] = set()
        while True:
            try:
                plan, track = plan_ingest(options) if entry.ingest else plan_run(options)
            except UnusedParameter as err:
                if err.name in entry.params or err.name not in self._params:
                    raise
                unused.add(err.name)
                left = {name: value for name, value in options.params.items() if name != err.name}
                options = msgspec.structs.replace(options, params=left)
            else:
                return Planned(plan, track, options.files, work.tags, frozenset(unused))

    def _work(self, entry: MeasurementEntry, written: Mapping[str, object]) -> Work:
        """Return what a measurement does: its own conditions before the file's."""
        file, changes, folder = self._file, self._changes, self._path.parent
        others = {name for name, key in _CONDITIONS.items() if key not in written}
        if {"track", "corpus"} & {*written}:
            # The experiment's number is of other documents.
            others.discard("docs")
        entry = msgspec.structs.replace(entry, **{name: getattr(file, name) for name in others})
        challenges, warmups = placed_work(entry, folder)
        given = {"docs": changes.docs, "heap": changes.heap, "seed": changes.seed}
        sizes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if axes_of(entry.sweep).documents:
            # A measurement that sweeps documents has numbers of its own.
            sizes["docs"] = None
        return msgspec.structs.replace(
            placed(entry, folder),
            challenges=challenges,
            warmup_challenges=warmups,
            params={**self._file.params, **entry.params, **changes.overrides},
            **sizes,
        )

    def _variant(self, text: str) -> VariantSpec:
        spec = self._variants.get(text) or parse_variant(text, defined=self._variants)
        if spec.version == LATEST:
            raise UsageError(
                f"variant '{text}': a repeatable experiment names versions",
                hint=f"write one for {LATEST}",
            )
        return spec

    def _check_params(self) -> None:
        """Refuse parameters that no measurement of the experiment uses: they are typing mistakes."""
        idle = frozenset.intersection(*(planned.unused for planned in self._plans.values()))
        for name in sorted(idle):
            message = f"no challenge of any measurement uses the parameter '{name}'"
            if name in self._changes.overrides:
                raise UsageError(f"--param {name}: {message}")
            raise self._document.refuse(("params",), message, key=name)

    # Comparisons and call sites, resolved to tasks of the plans.

    def _row(self, row: ComparisonSpec, table: TableSpec, steps: tuple[Step, ...]) -> ComparisonSpec:
        with self._at(*steps, "metric"):
            metric = _metric(row.metric or table.metric)
        found = []
        for name in ("baseline", "contender"):
            with self._at(*steps, name):
                terms = parse_side(getattr(row, name))
                found.append(Counter((term.minus, *self._place(term.ref, metric)) for term in terms))
        with self._at(*steps):
            if found[0] == found[1]:
                raise UsageError(f"'{side_text(row.sides[1])}' is compared with itself")
            if row.published is not None and row.compared_as == "difference":
                raise UsageError("published values are only shown with ratios")
            self._check_alike(row)
        derived = row.compared_as == "ratio" and any(map(is_derived, row.sides))
        return msgspec.structs.replace(
            row,
            label=row.label or row.name,
            metric=metric.key,
            compared_as="ratio-of-sums" if derived else row.compared_as,
        )

    def _place(self, ref: TaskRef, metric: Metric) -> tuple[object, ...]:
        """Return what a reference means, which has to have a figure in the metric."""
        planned = self._planned_as(ref.measurement)
        plan, place = planned.plan, None
        variants = [spec.name for spec in plan.variants]
        _check_known(ref.variant, variants, f"measurement '{ref.measurement}' has no variant")
        if not ref.task and not metric.kind.built:
            raise UsageError(f"'{ref}' is an index, and {metric.key} is that of a task")
        if not ref.task and plan.origin == "empty":
            raise UsageError(f"'{ref}' prepares no index: its challenges make their own data")
        for point in ref.points_in(plan) if ref.task else ():
            place = point.place_in(plan)
            task = task_at(plan, place)
            for needed in (metric, *([] if ref.recall is None else [RECALL])):
                if reason := needed.lacking(task, planned.track.operations.get(task.operation)):
                    usual = "latency_p90" if task.throttled else "throughput"
                    hint = f"compare {usual} or service_time_p90"
                    raise UsageError(f"'{ref}' has no {needed.key}: {reason}", hint=hint)
        return ref.measurement, ref.variant, place, ref.recall

    def _planned_as(self, name: str) -> Planned:
        _check_known(name, self._plans, "unknown measurement")
        return self._plans[name]

    def _check_alike(self, row: ComparisonSpec) -> None:
        """Refuse to compare what differs in evidence or index builds."""
        plans = [self._plans[ref.measurement].plan for ref in row.refs]
        if len({bool(ref.task) for ref in row.refs}) > 1:
            raise UsageError("index builds are compared with a task")
        if row.refs[0].task and len({(plan.evidence_in(0), plan.index_builds) for plan in plans}) > 1:
            raise UsageError(
                "the two sides have different numbers of index builds, or collect different evidence in the "
                "forks that are compared",
                hint="give both the same `index-builds`, and evidence in further forks: `{forks: 1}`",
            )

    def _check_call_site(self, site: CallSite) -> None:
        evidence = self._planned_as(site.measurement).plan.evidence
        if evidence is None or "inlining" not in evidence.kinds:
            raise UsageError(
                f"measurement '{site.measurement}' keeps no inlining logs",
                hint="give it `evidence: {kinds: [inlining]}`",
            )
        for variant in site.variants:
            self._place(site.task_of(variant), THROUGHPUT)


def _metric(key: str) -> Metric:
    try:
        return kept_metric_of(key)
    except ValueError as err:
        keys = [key for kind in METRIC_KINDS for key in ([kind.name] if kind.built else kept_keys(kind))]
        hint = guess(key, keys) or "all: benchctl list metrics"
        raise UsageError(
            str(err) if key else "neither the row nor its table has a 'metric'", hint=hint
        ) from err


# Expectations: about comparisons or call sites that exist, with margins in the units of what is compared.


def _checked(
    one: Expectation, rows: Mapping[str, ComparisonSpec], sites: Mapping[str, CallSite]
) -> Expectation:
    named = bool(one.comparisons), one.is_ is not None
    if one.fate is not None and not (any(named) or one.margin or one.than):
        _check_known(one.fate.call_site, sites, "unknown call site")
        variants = sites[one.fate.call_site].variants
        _check_known(one.fate.variant, variants, f"call site '{one.fate.call_site}' has no variant")
        return one
    if one.fate is not None or not all(named):
        raise UsageError("an expectation has `comparisons` and `is`, or else a `fate`")
    for name in (*one.comparisons, *([one.than] if one.than else [])):
        _check_known(name, rows, "unknown comparison")
    if one.than is not None:
        kinds = {(rows[name].metric, rows[name].compared_as) for name in (*one.comparisons, one.than)}
        derived = any(kind == "ratio-of-sums" for _, kind in kinds)
        if len(one.comparisons) > 1 or one.than in one.comparisons or len(kinds) > 1 or derived:
            raise UsageError(
                "'than' holds one ratio of single tasks against another one in the same metric, or one "
                "difference against another",
                hint="compare both `as: difference`" if derived else "",
            )
    return msgspec.structs.replace(one, margin=_margin([rows[name] for name in one.comparisons], one.margin))


def _check_known(name: str, known: Iterable[str], what: str) -> None:
    names = [*known]
    if name not in names:
        raise UsageError(f"{what} '{name}'", hint=suggestion(name, names))


def _margin(rows: Sequence[ComparisonSpec], margin: str | None) -> str:
    """Return a percentage, or an amount in what the differences of the rows are measured in."""
    metrics = [metric_of(row.metric) for row in rows if row.compared_as == "difference"]
    units = {metric.unit for metric in metrics} | ({"%"} if len(metrics) < len(rows) else set())
    if len(units) > 1:
        raise UsageError("what is compared has no unit in common", hint="write an expectation for each")
    (unit,) = units
    match = _MARGIN.fullmatch(margin or ("5%" if unit == "%" else ""))
    # What throughput counts, only its tasks know.
    counts = bool(metrics) and metrics[0].kind.counts
    if match is None or (match["unit"] != unit and not (counts and match["unit"] not in ("", "%"))):
        raise UsageError(f"the margin is in the unit of what is compared: {unit}")
    amount = float(match["amount"])
    if not 0 < amount < (100 if unit == "%" else float("inf")):
        raise UsageError("a margin is more than 0, and less than 100%")
    return f"{match['amount']}%" if unit == "%" else f"{match['amount']} {match['unit']}"


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
    with disk_errors(f"look for {name}"):
        if Path(name).is_file():
            return Path(name)
    near = guess(name, names)
    raise UsageError(
        f"no such experiment '{name}'",
        hint=f"{near} known: {', '.join(names) or 'none'}; or give the path of a YAML file".lstrip(),
    )
