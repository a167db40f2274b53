"""`benchctl ab` and `bisect`: two commits built and compared, and the first of many points that differs."""

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from benchctl.cli.compare import conclude_gate
from benchctl.cli.comparison import Measures, compared
from benchctl.cli.measuring import measuring, measuring_options
from benchctl.cli.options import (
    NO_SWEEP,
    AmountType,
    ParamOptions,
    SectionedCommand,
    grouped,
    open_store,
    param_options,
    runs_option,
)
from benchctl.cli.run_options import (
    BUILT_IN,
    FORKS,
    SCHEDULE,
    SETTINGS,
    SUBJECT,
    asked_run,
    form_options,
    trust_option,
)
from benchctl.cli.streams import emit, note
from benchctl.engine.maven import digest
from benchctl.engine.variant import VARIANT_OPTIONS, check_parts, placed_jar
from benchctl.errors import UsageError
from benchctl.git import Commit
from benchctl.home import Home, resolve_home
from benchctl.plugin.code import Consent
from benchctl.quantities import DURATION
from benchctl.report.formats import step_summary
from benchctl.report.numbers import counted, duration
from benchctl.report.table import escaped
from benchctl.results.plan import Plan, VariantSpec
from benchctl.results.select import Archive, choose_sides
from benchctl.results.store import reference
from benchctl.run.bench import Bench
from benchctl.run.documents import FileOptions
from benchctl.run.fitness import check_quiet
from benchctl.run.orchestrate import Extras, start_run
from benchctl.run.plan import plan_run
from benchctl.run.prepare import check_host
from benchctl.search.answers import MIN_PAIRS
from benchctl.search.bisect import Bisecting, bisect_spec, questions_at_most
from benchctl.search.build import Built, Workshop
from benchctl.search.commands import (
    Opened,
    SearchOptions,
    files_of,
    metric_option,
    new_folder,
    search_options,
)
from benchctl.search.record import BisectSpec, Point, SearchFolder, SearchRecord, Source, all_searches
from benchctl.spec import BusyAction, RunForm
from benchctl.stats.decisions import gate
from benchctl.stats.metrics import kept_metric_of, places, task_at, used_by
from benchctl.track.model import Track

# What is built.

_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class BuildOptions:
    """Options of builds: what and how."""

    source: str | None
    build: str | None
    artifact: str | None
    build_timeout_s: float

    def workshop(self, home: Home) -> Workshop:
        """Return the place of builds.

        Raises:
            UsageError: If something is missing, or there is no such repository.
        """
        if self.source is None or self.build is None or self.artifact is None:
            raise UsageError(
                "missing --source, --build or --artifact",
                hint="such as --source . --build './gradlew assemble' --artifact 'build/libs/*.jar'",
            )
        return Workshop(home, Source(self.source, self.build, self.artifact, self.build_timeout_s))


build_options = grouped(
    "build_options",
    BuildOptions,
    "What to measure",
    click.option("--source", metavar="DIR|GIT", help="A git checkout, or the URL of a repository."),
    click.option(
        "--build",
        metavar="CMD",
        help="Shell command that builds a clean checkout, with your rights and environment.",
    ),
    click.option(
        "--artifact",
        metavar="GLOB",
        help="Built files, relative to the checkout: jars that replace those in lib/, or one .zip or .tar.gz "
        "of the engine.",
    ),
    click.option(
        "--build-timeout",
        "build_timeout_s",
        type=AmountType(DURATION),
        default=_TIMEOUT_S,
        help="Time limit for one build.  [default: 60m]",
    ),
)
"""The options; the command gets them as one, `build_options`."""


def _one_engine(variants: tuple[VariantSpec, ...], what: str) -> VariantSpec:
    engine, *others = variants
    if others:
        raise UsageError(f"--variant is the engine that {what} are put into", hint="name one")
    return engine


# Two commits.

_ASKED = [name for name in (*SCHEDULE, *SUBJECT, *SETTINGS) if name != "sweep"]
_OF_COMPARISONS = ("metrics", "diff")
BASE, HEAD = "base", "head"
MARK = "<!-- benchctl ab -->"
"""By which a job finds the comment of an earlier push, to write it anew."""


_COMMON = ("challenges", "variants", "track", "docs", "params")


@click.command(
    "ab",
    cls=SectionedCommand,
    instead=NO_SWEEP,
    first=(
        *("base", "head", "source", "build", "artifact", *_COMMON),
        *("forks", "margin", "budget", "on_busy", "quiet"),
    ),
)
@click.option("--base", metavar="REF", required=True, help="Baseline commit.")
@click.option("--head", metavar="REF", required=True, help="Commit to test.")
@build_options
@param_options
@form_options(*_ASKED, *FORKS)
@trust_option
@measuring_options
@runs_option
def ab_command(
    base: str,
    head: str,
    runs_folder: Path | None,
    *,
    build_options: BuildOptions,
    param_options: ParamOptions,
    form: RunForm,
    trust: bool,
    on_busy: BusyAction | None,
    quiet: bool,
) -> None:
    """Build and benchmark two commits to gate a pull request.

    The built artifacts replace those of --variant. Builds are cached by commit, command and JDK. The result
    is Markdown, for a comment. Exit codes: 3 regression, 4 inconclusive.
    """
    home = resolve_home()
    store = open_store(home, runs_folder)
    workshop = build_options.workshop(home)
    commits = (workshop.repository.commit("--base", base), workshop.repository.commit("--head", head))
    if commits[0] == commits[1]:
        raise UsageError(f"--base and --head are the same commit, {commits[0].short}", hint="name two")
    if form.precision is None:
        form = msgspec.structs.replace(form, until_decided=True)
    consent = Consent(home, given=trust)
    spec = asked_run(form, param_options, usual=BUILT_IN[:1], consent=consent)
    engine = _one_engine(spec.variants, "both commits")
    unbuilt = tuple(msgspec.structs.replace(engine, name=name) for name in (BASE, HEAD))
    # What is wrong with the challenge is told before anything is built.
    plan_run(msgspec.structs.replace(spec, variants=unbuilt))
    store.open()
    with measuring(on_busy, quiet=quiet) as observer:
        built = tuple(workshop.build(commit, observer.stage) for commit in commits)
        variants = tuple(build.variant(engine, name) for build, name in zip(built, (BASE, HEAD), strict=True))
        plan, track = plan_run(msgspec.structs.replace(spec, variants=variants))
        check_host(plan, home)
        check_quiet(home, [plan], observer.note, on_busy)
        bench = Bench(home, store, observer, threading.Event())
        folder, record = start_run(bench, plan, track, Extras(files=spec.files, tags=("ab",)))
    archive = Archive(store, (record.id,))
    measures = Measures(margin=None if spec.stop is None else spec.stop.margin, builds=False)
    analysis = compared(archive, choose_sides(archive, (BASE, HEAD)), measures, method="holm")
    judged = gate(analysis)
    descriptions = "; ".join(map(_told, (BASE, HEAD), commits, built))
    name = escaped(reference(folder, home.runs))
    # A comment is no place for the paths of a host.
    summary = step_summary(analysis, judged).replace(escaped(f"{home.builds}/"), "")
    emit(f"{MARK}\n{summary}\n{descriptions}. Run {name}.\n")
    conclude_gate(judged, printed=True)


def _told(label: str, commit: Commit, built: Built) -> str:
    how = "kept from before" if built.seconds is None else f"built in {duration(built.seconds)}"
    return f"{label} is `{commit.short}` ({escaped(commit.subject)}), {how}"


# The first of many points.

MOST_FORKS = 24
_LEAST_POINTS = 2


@dataclass(frozen=True)
class HistoryOptions:
    """The points, in one of three ways; see the options."""

    good: str | None
    bad: str | None
    versions: str | None
    jars: str | None


history_options = grouped(
    "history_options",
    HistoryOptions,
    "What to measure",
    click.option("--good", metavar="REF", help="A commit before the change."),
    click.option("--bad", metavar="REF", help="A later commit."),
    click.option(
        "--versions", metavar="LIST", help="Versions instead of commits: es@8.9.0,es@8.10.0,es@8.11.0."
    ),
    click.option("--jars", metavar="LIST", help="Jars instead of commits, put into --variant one at a time."),
)


def _subject(options: HistoryOptions, build: BuildOptions, form: RunForm) -> RunForm:
    """Return what is measured: of versions, all of them."""
    of_commits = options.good is not None or options.bad is not None or build.source is not None
    if of_commits + (options.versions is not None) + (options.jars is not None) != 1:
        raise UsageError(
            "points are commits, versions, or jars", hint="give --good and --bad, or --versions, or --jars"
        )
    if options.versions is None:
        return form
    if form.variants:
        raise UsageError("--versions are the variants", hint="remove --variant")
    # A comma belongs to a variant where one of its options follows.
    versions = re.split(rf",(?!(?:{'|'.join(VARIANT_OPTIONS)}):)", options.versions)
    return msgspec.structs.replace(form, variants=tuple(filter(None, map(str.strip, versions))))


@dataclass(frozen=True)
class _History:
    """Subject of a bisection: points, the oldest first, and what they are built into."""

    spec: BisectSpec  # without its task
    identity: tuple[str, ...] = ()  # what else decides what is measured
    workshop: Workshop | None = None


def _history(
    home: Home, options: HistoryOptions, build: BuildOptions, specs: tuple[VariantSpec, ...]
) -> _History:
    if options.versions is not None:
        return _of_specs([Point(variant.name) for variant in specs], specs)
    if options.jars is not None:
        return _of_jars([*filter(None, map(str.strip, options.jars.split(",")))], _one_engine(specs, "jars"))
    if options.good is None or options.bad is None:
        raise UsageError("a bisection of commits takes --good and --bad")
    engine, workshop = _one_engine(specs, "commits"), build.workshop(home)
    good, bad = (
        workshop.repository.commit(f"--{name}", ref)
        for name, ref in (("good", options.good), ("bad", options.bad))
    )
    commits = workshop.repository.between(good, bad)
    points = tuple(Point(commit.short, commit.subject) for commit in commits)
    source = msgspec.structs.replace(
        workshop.source,
        repository=str(workshop.repository.path),
        shas=tuple(commit.sha for commit in commits),
    )
    spec = BisectSpec(points=points, variants=(engine,), source=source)
    return _History(spec, workshop.identity, workshop)


def _of_jars(texts: list[str], engine: VariantSpec) -> _History:
    paths = [placed_jar(text, Path.cwd()) for text in texts]
    stems = [Path(path).name.removesuffix(".jar").lower() for path in paths]
    names = [f"{number}-{re.sub(r'[^a-z0-9._-]+', '-', stem)}" for number, stem in enumerate(stems, 1)]
    specs = tuple(
        msgspec.structs.replace(engine, name=name, jars=(*engine.jars, path))
        for name, path in zip(names, paths, strict=True)
    )
    for spec in specs:
        check_parts(spec)
    held = tuple(digest(Path(path), "sha256") for path in paths if Path(path).is_file())
    if len(held) == len(paths) and held[0] == held[-1]:
        raise UsageError(f"{texts[0]} and {texts[-1]} are the same jar", hint="the ends have to differ")
    return _of_specs([*map(Point, names, texts)], specs, held)


def _of_specs(
    points: list[Point], specs: tuple[VariantSpec, ...], identity: tuple[str, ...] = ()
) -> _History:
    if len(specs) < _LEAST_POINTS:
        raise UsageError("a bisection takes at least two points, and an unchanged one first")
    return _History(BisectSpec(points=tuple(points), variants=specs), identity)


def opened_bisection(
    home: Home,
    record: SearchRecord,
    track: Track,
    *,
    folder: SearchFolder | None = None,
    workshop: Workshop | None = None,
) -> Opened:
    """Return a new bisection, or that of the same which was begun before.

    Raises:
        UsageError: If commits are to be built, and there is no such repository.
    """
    spec = bisect_spec(record)
    if folder is None:
        same = (
            search for search in all_searches(home, note) if getattr(search[1].spec, "key", "") == spec.key
        )
        folder, record = next(same, (new_folder(home, record.plan), record))
        record = msgspec.structs.replace(record, id=folder.path.name)
    source = spec.source
    if source is not None and workshop is None:
        workshop = Workshop(home, source)

    def variant(number: int, stage: Callable[[str], None]) -> VariantSpec:
        if source is None or workshop is None:
            return spec.variants[number]
        point = spec.points[number]
        built = workshop.build(Commit(source.shas[number], point.about), stage)
        return built.variant(spec.variants[0], point.name)

    def remarks() -> Iterator[str]:
        count = len(spec.points)
        yield (
            f"{counted(count, 'point')}: at most {counted(questions_at_most(count), 'question')} for the "
            f"first that differs, and a few that check it; each takes from {MIN_PAIRS} to {record.most} "
            "pairs of forks"
        )

    def policy(stage: Callable[[str], None]) -> Bisecting:
        return Bisecting(lambda number: variant(number, stage))

    return Opened(home, folder, record, track, policy, remarks)


def bisection(
    spec: BisectSpec,
    plan: Plan,
    options: SearchOptions,
    *,
    metric: str,
    identity: tuple[str, ...] = (),
    files: FileOptions | None = None,
) -> SearchRecord:
    """Return the record of a bisection to be; `identity` is what else decides what is measured."""
    plan = msgspec.structs.replace(plan, forks=options.most, stop=None)
    source = spec.source and msgspec.structs.replace(spec.source, repository="", timeout_s=0.0)
    same = (msgspec.structs.replace(spec, source=source), metric, plan, identity)
    key = hashlib.sha256(msgspec.json.encode(same)).hexdigest()[:12]
    return SearchRecord(
        id="",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        spec=msgspec.structs.replace(spec, key=key),
        metric=metric,
        most=options.most,
        budget_s=options.budget_s,
        plan=plan,
        files=files_of(files or FileOptions()),
    )


@click.command(
    "bisect",
    cls=SectionedCommand,
    instead=NO_SWEEP,
    first=(
        *("task", "metric", "good", "bad", "versions", "jars", "source", "build", "artifact", *_COMMON),
        *("most", "budget_s", "on_busy", "output_format", "quiet"),
    ),
)
@click.option("--task", metavar="NAME", help="Task that shows the difference.  [default: the only one]")
# What a kind of threads used may be nothing; then it is no pair.
@metric_option(
    lambda kind: (
        "minimize" in used_by(kind) or (kind.additive and kind.loop == "cost" and not kind.resolution)
    )
)
@history_options
@build_options
@param_options
@form_options(*(name for name in _ASKED if name not in _OF_COMPARISONS))
@search_options(MOST_FORKS)
@trust_option
@measuring_options
def bisect_command(
    task: str | None,
    metric: str | None,
    *,
    search_options: SearchOptions,
    history_options: HistoryOptions,
    build_options: BuildOptions,
    param_options: ParamOptions,
    form: RunForm,
    trust: bool,
    on_busy: BusyAction | None,
    quiet: bool,
) -> None:
    """Find the commit, version or jar that changed performance.

    Each candidate is compared with the first in pairs of forks until the result is conclusive; candidates
    that fail to build are skipped. Rerun the same command to resume. Exit code 4: inconclusive.
    """
    home = resolve_home()
    if not form.paired:
        raise UsageError("the blocks of a bisection are pairs in any case", hint="remove --unpaired")
    form = msgspec.structs.replace(_subject(history_options, build_options, form), forks=search_options.most)
    consent = Consent(home, given=trust)
    options = asked_run(form, param_options, usual=BUILT_IN[:1], consent=consent)
    history = _history(home, history_options, build_options, options.variants)

    plan, track = plan_run(msgspec.structs.replace(options, variants=history.spec.variants))
    place = _place(plan, track, task)
    shown = metric or ("service_time_p50" if task_at(plan, place).throttled else "throughput")
    spec = msgspec.structs.replace(history.spec, place=place, task=task_at(plan, place).label)
    record = bisection(
        spec,
        plan,
        search_options,
        metric=kept_metric_of(shown).key,
        identity=history.identity,
        files=options.files,
    )
    opened = opened_bisection(home, record, track, workshop=history.workshop)
    opened.again(search_options).conclude(search_options.output_format, on_busy=on_busy, quiet=quiet)


def _place(plan: Plan, track: Track, name: str | None) -> tuple[int, int]:
    """Return where the task is that shows the difference."""
    fitting = [
        place
        for place in places(plan)
        if track.operations[task_at(plan, place).operation].reported
        and name in (None, task_at(plan, place).label)
    ]
    if len(fitting) != 1:
        labels = dict.fromkeys(task_at(plan, place).label for place in places(plan))
        raise UsageError(
            f"{len(fitting) or 'no'} tasks could show the difference"
            + (f" by the name '{name}'" if name else ""),
            hint=f"name one with --task: {', '.join(labels)}",
        )
    return fitting[0]
