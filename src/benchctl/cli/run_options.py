"""The options of commands that measure, and what they ask for: a `RunSpec`."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import click
import msgspec
from click.core import ParameterSource

from benchctl.cli.options import (
    AmountType,
    ParamOptions,
    completing,
    grouped,
    keyed,
    once,
    under,
)
from benchctl.cli.streams import say
from benchctl.engine.variant import check_jdks, parse_variant
from benchctl.engine.variant_file import check_spec, load_variants, with_newest
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.nearest import suggestion
from benchctl.plugin.code import Code, Consent, read_code
from benchctl.quantities import COUNT, DURATION, PERCENT, SIZE
from benchctl.results.model import DEFAULT_FORKS, MOST_FORKS
from benchctl.results.plan import (
    CorpusSpec,
    EvidenceKind,
    EvidenceSpec,
    PinSpec,
    StopSpec,
    VariantSpec,
)
from benchctl.run.documents import GENERATED_DOCUMENTS, FileOptions, named_file
from benchctl.run.host import AUTO, allowed_cpus, cores_of, pin_of
from benchctl.run.plan import EVIDENCE_KINDS, TEST_MODE_DOCUMENTS, TEST_MODE_FORKS, RunSpec, usual_heap_mb
from benchctl.run.plugin import plugin_problems
from benchctl.spec import Setting, run_settings
from benchctl.stats.anytime import FIRST_LOOK
from benchctl.track.library import challenge_names, find_track, track_names
from benchctl.track.model import Challenge, Track

variants_option = click.option(
    "--variants",
    "variants_file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="YAML file of further variants that can be named: NAME: {extends: es, jvm: [-Xint]}.",
)


def resolve_variants(
    texts: tuple[str, ...],
    jdks: tuple[str, ...] = (),
    file: Path | None = None,
) -> tuple[VariantSpec, ...]:
    """Read variants, and ask for the newest version where one says `latest`.

    Options are as written; without texts, all variants of the file are meant.

    Raises:
        UsageError: If a text is not a variant or asks for what no node can be given, an option names none, or
            something is wrong in the file.
    """
    by_jdk = keyed(jdks, "--jdk")
    defined = {} if file is None else load_variants(file)
    specs = [parse_variant(text, jdks=by_jdk, defined=defined) for text in texts or defined]
    check_jdks(by_jdk, specs)
    return with_newest(check_spec(spec) for spec in specs)


F = TypeVar("F", bound=Callable[..., Any])

BUILT_IN = ("es", "os")
DEFAULT_EXTRA_FORKS = 1
AS_MANY_WORKERS_AS_NEEDED = 0

_ALL = "all"

# Settings, as they are declared.

PREPARING = ("segments", "ingest_clients", "ingest_transport", "index_builds", "index")
"""Those of them that are about prepared indices."""


def settings_options(*names: str) -> Callable[[F], F]:
    """Add the options of some settings of runs, or all; the command gets their values as `settings`."""
    chosen = [one for one in run_settings() if not names or one.name in names]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def collected(*args: Any, **kwargs: Any) -> Any:
            settings = {one.name: kwargs.pop(one.name) for one in chosen}
            for setting in chosen:
                source = click.get_current_context().get_parameter_source(setting.name)
                if settings[setting.name] == "" and source is ParameterSource.COMMANDLINE:
                    raise UsageError(f"{setting.option} is empty", hint="leave it out, or say what it is")
            return command(*args, settings=settings, **kwargs)

        decorated: Callable[..., Any] = collected
        for one in reversed(chosen):
            decorated = under(one.heading, _option(one))(decorated)
        return decorated

    return cast("Callable[[F], F]", decorate)


def _option(one: Setting) -> Callable[[Any], Any]:
    """Make a setting an option of a command; `check_settings` knows which numbers it may have."""
    if isinstance(one.default, bool):
        return click.option(one.option, one.name, is_flag=True, help=one.meta.description)
    several = isinstance(one.default, tuple)
    return click.option(
        one.option,
        one.name,
        multiple=several,
        type=str if several else click.Choice(one.choices) if one.choices else type(one.default),
        default=one.default,
        show_default=one.default not in ("", ()),
        metavar=one.metavar,
        help=one.meta.description,
    )


# What is measured, and on which index.


@dataclass(frozen=True)
class SubjectOptions:
    """What is measured."""

    variants: tuple[str, ...]
    variants_file: Path | None
    docs: int | None  # None for a million generated ones, or all of files
    corpus_file: str | None
    has_actions: bool
    corpus_dirs: tuple[Path, ...]
    track: str
    heap: int | None  # MiB
    jdks: tuple[str, ...]
    seed: int
    corpus_seed: int
    paired: bool
    pin: str | None  # as written; empty to let the kernel assign CPUs

    def specs(self, default: tuple[str, ...] = BUILT_IN) -> tuple[VariantSpec, ...]:
        """Return the variants; when none was named, all of the file, or the default.

        Raises:
            UsageError: If a variant cannot be understood.
        """
        texts = self.variants if self.variants_file is not None else self.variants or default
        return resolve_variants(texts, self.jdks, self.variants_file)

    def pin_spec(self, workers: int) -> PinSpec | None:
        """Return the CPUs of node and driver here; the driver's clients work in that many processes.

        Raises:
            UsageError: If these CPUs are not available.
        """
        if self.pin is None:
            return None
        allowed = allowed_cpus()
        return pin_of(self.pin, workers=workers, allowed=allowed, cores=cores_of(allowed))

    @property
    def corpus(self) -> CorpusSpec:
        """Return the generated corpus, if any."""
        documents = self.docs or GENERATED_DOCUMENTS
        return CorpusSpec(seed=self.corpus_seed, documents=documents, generator_version=0, digest="")

    @property
    def files(self) -> FileOptions:
        """Return which documents come from files."""
        index, local = named_file(self.corpus_file)
        return FileOptions(
            local,
            self.has_actions,
            self.corpus_dirs,
            self.docs,
            # Nobody asked for the number of documents that another option brings.
            at_most=click.get_current_context().get_parameter_source("docs") is ParameterSource.DEFAULT_MAP,
            local_index=index,
        )


subject_options = grouped(
    "subject_options",
    SubjectOptions,
    "What is measured",
    click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="VARIANT",
        shell_complete=completing(lambda: BUILT_IN),
        help="es, os, es@8.19.0, or LABEL=BASE with options behind commas: jvm:FLAG, setting:KEY=VALUE, "
        "jdk:JDK, distribution:PATH|URL, heap:SIZE, env:NAME=VALUE, index:KEY=VALUE, jar:JAR, plugin:PLUGIN, "
        "warmup:CHALLENGE, start:script, nodes:N, shards:N, replicas:N; repeatable, the first is the "
        "baseline  [default: all of --variants; "
        "else the targets, or es and os]",
    ),
    variants_option,
    click.option(
        "--docs",
        type=AmountType(COUNT),
        default=None,
        help="Documents: of files an even share  [default: 1m generated ones, 100k where run raises the "
        "counts of shipped challenges; all of files]",
    ),
    click.option(
        "--corpus",
        "corpus_file",
        default=None,
        metavar="[INDEX=]FILE",
        help="Documents for the only index of the track, or the named one: JSON, one a line; .zst, .bz2 and "
        ".gz, too.",
    ),
    click.option(
        "--corpus-has-actions",
        "has_actions",
        is_flag=True,
        help="Before each document of --corpus, a line says what to do with it.",
    ),
    click.option(
        "--corpus-dir",
        "corpus_dirs",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        multiple=True,
        metavar="DIR",
        help="Where files of the track's documents are, beside the track's own folder; repeatable.",
    ),
    click.option(
        "--track",
        "--track-path",
        "--workload-path",
        "track",
        multiple=True,
        callback=once,
        default=("big5",),
        show_default=True,
        metavar="NAME|PATH",
        shell_complete=completing(track_names),
        help="Indices, documents and operations: a shipped track, or a folder or file of your own.",
    ),
    "Nodes and indices",
    click.option(
        "--heap",
        type=AmountType(SIZE),
        default=None,
        help="Heap of every node  [default: a quarter of memory, at most 4g, for few documents less]",
    ),
    click.option(
        "--jdk",
        "jdks",
        multiple=True,
        metavar="[VARIANT=]PATH|MAJOR",
        help="Java home, or a major version to fetch  [default: the bundled 21]",
    ),
    "How much",
    click.option(
        "--seed", type=int, default=1, show_default=True, help="Seed of block order, arrivals and values."
    ),
    click.option("--corpus-seed", type=int, default=1, show_default=True, help="Seed of the corpus."),
    "Nodes and indices",
    click.option(
        "--pin",
        is_flag=False,
        flag_value=AUTO,
        default=None,
        metavar="[node=CPUS,driver=CPUS]",
        help="Give nodes and benchctl CPUs of their own; chosen when none are named.",
    ),
    "How much",
    click.option(
        "--paired/--unpaired",
        default=True,
        show_default=True,
        help="Analyse blocks as pairs, which takes the drift of the host out; declared before the run.",
    ),
)
"""The options; the command gets them as one, `subject_options`."""


# What every fork does.


@dataclass(frozen=True)
class ScheduleOptions:
    """What every fork does."""

    challenges: tuple[str, ...]
    warmups: tuple[str, ...]
    as_written: bool = True  # keep counts, however small the corpus is


schedule_options = grouped(
    "schedule_options",
    ScheduleOptions,
    "What is measured",
    click.option(
        "--challenge",
        "--test-procedure",
        "challenges",
        multiple=True,
        metavar="NAME|FILE",
        shell_complete=completing(challenge_names),
        help="What to run; repeat it to run schedules in order on one fork.",
    ),
    click.option(
        "--warmup-challenge",
        "warmups",
        multiple=True,
        metavar="NAME|FILE",
        shell_complete=completing(challenge_names),
        help="Run unmeasured on every fresh node before the schedule.",
    ),
    click.option(
        "--as-written",
        is_flag=True,
        help="Keep the counts of shipped challenges that only say `iterations`, instead of those that warm "
        "the JIT up on a small corpus.",
    ),
)
"""The options; the command gets them as one, `schedule_options`."""


_NO_SCHEDULE = ScheduleOptions(challenges=(), warmups=())


def run_spec(
    subject: SubjectOptions,
    params: ParamOptions,
    settings: dict[str, Any],
    *,
    forks: int,
    workers: int = 1,
    targets: tuple[VariantSpec, ...] = (),
    schedule: ScheduleOptions = _NO_SCHEDULE,
    usual: tuple[str, ...] = BUILT_IN,
) -> RunSpec:
    """Return the run that the command line asks for; what a command has no options for has its default.

    With `targets`, clusters that run already, no variant has to be named; `usual` is measured when
    neither is. Without `schedule` the command makes its own.

    Raises:
        UsageError: If an option cannot be understood, or not be satisfied here.
    """
    return RunSpec(
        **settings,
        variants=(*subject.specs(() if targets else usual), *targets),
        challenges=schedule.challenges,
        warmup_challenges=schedule.warmups,
        forks=forks,
        seed=subject.seed,
        heap_mb=subject.heap
        or usual_heap_mb(
            subject.track,
            subject.docs,
            of_file=subject.corpus_file is not None,
            sweep=settings.get("sweep", ()),
        ),
        track=subject.track,
        corpus=subject.corpus,
        files=subject.files,
        params=params.read(),
        paired=subject.paired,
        workers=workers,
        pin=subject.pin_spec(workers),
        settle=not schedule.as_written,
    )


# How many forks there are, and when fewer are enough.


@dataclass(frozen=True)
class ForkOptions:
    """How many forks."""

    forks: int | None
    precision: float | None  # half width of intervals that is enough, as a ratio - 1; None not to end early
    budget_s: float | None  # None for as long as they take
    decided: bool  # end when everything has a verdict
    margin: float | None  # for these verdicts, as a ratio - 1; None for each metric's own

    @property
    def stop(self) -> StopSpec | None:
        """Return the stop rule; None when all forks are run."""
        if (self.precision, self.budget_s, self.margin, self.decided) == (None, None, None, False):
            return None
        found = StopSpec(self.precision, self.budget_s, margin=self.margin)
        if not self.decided:
            return found
        return msgspec.structs.replace(found, decided=True, least_forks=FIRST_LOOK)

    @property
    def count(self) -> int:
        """Return the forks of every variant; with a rule, the maximum."""
        if self.forks is not None:
            return self.forks
        return DEFAULT_FORKS if self.stop is None else MOST_FORKS


fork_options = grouped(
    "fork_options",
    ForkOptions,
    "How much",
    click.option(
        "--forks",
        type=int,
        default=None,
        help="Passes of every variant on fresh nodes  "
        f"[default: {DEFAULT_FORKS}; at most {MOST_FORKS} with --until-decided, --precision or --budget]",
    ),
    click.option(
        "--until-decided",
        "decided",
        is_flag=True,
        help="End when every difference is faster, slower, different or equal; looked at after "
        f"every block from the {FIRST_LOOK}th on, by a test that holds in spite of it.",
    ),
    click.option(
        "--margin",
        type=AmountType(PERCENT),
        default=None,
        help="Difference that does not matter to --until-decided  [default: 3% of throughput, 5% of times].",
    ),
    click.option(
        "--precision",
        type=AmountType(PERCENT),
        default=None,
        help="End when the 95 % interval of every difference reaches no further than this either side, such "
        "as 5%; looked at after every block from the 8th on, whatever p is.",
    ),
    click.option(
        "--budget",
        "budget_s",
        type=AmountType(DURATION),
        default=None,
        help="End in time, such as 30m: no block begins that is not expected to fit. It is the time of the "
        "forks; the preparation is not counted.",
    ),
)
"""The options; the command gets them as one, `fork_options`."""


# What is collected beside the figures.


class EvidenceForksType(click.ParamType[int]):
    """How many extra forks carry evidence: a number; or `all`, which is 0: all of the plan's own forks do."""

    name = "N|all"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the number."""
        if isinstance(value, int):
            return value
        text = str(value)
        if text == _ALL:
            return 0
        if not text.isdecimal() or int(text) < 1:
            self.fail(f"{text!r} is neither a number from 1 nor '{_ALL}'", param, ctx)
        return int(text)


@dataclass(frozen=True)
class EvidenceOptions:
    """What is collected."""

    evidence: tuple[str, ...]
    evidence_forks: int | None  # of every variant, after the plan's own; 0 for these; None if not given

    @property
    def spec(self) -> EvidenceSpec | None:
        """Return the evidence as the plan takes it; None for none.

        Raises:
            UsageError: If a kind is unknown, or forks are to carry nothing.
        """
        if not self.evidence:
            if self.evidence_forks is not None:
                raise UsageError(
                    "--evidence-forks says which forks carry evidence, and none is wanted",
                    hint="add --evidence, such as --evidence jit,gc",
                )
            return None
        extra = DEFAULT_EXTRA_FORKS if self.evidence_forks is None else self.evidence_forks
        return EvidenceSpec(read_kinds(self.evidence), extra)


def read_kinds(texts: tuple[str, ...]) -> tuple[EvidenceKind, ...]:
    """The kinds of evidence that texts such as `jit,gc` name, each once, sorted.

    Raises:
        UsageError: If a kind is unknown, or empty.
    """
    names = [name.strip() for text in texts for name in text.split(",")]
    if _ALL in names:
        names += EVIDENCE_KINDS
    for name in names:
        if name not in (*EVIDENCE_KINDS, _ALL):
            raise UsageError(
                f"--evidence: there is no kind of evidence '{name}'",
                hint=suggestion(name, [*EVIDENCE_KINDS, _ALL]),
            )
    return cast("tuple[EvidenceKind, ...]", tuple(sorted(set(names) - {_ALL})))


evidence_options = grouped(
    "evidence_options",
    EvidenceOptions,
    "Evidence",
    click.option(
        "--evidence",
        multiple=True,
        metavar="KIND[,KIND]",
        help="Collect what explains the figures, in forks of their own: "
        f"{', '.join(EVIDENCE_KINDS)}, or {_ALL}; see: benchctl evidence RUN.",
    ),
    click.option(
        "--evidence-forks",
        type=EvidenceForksType(),
        default=None,
        metavar="N|all",
        help="How many extra forks of every variant carry the evidence, and enter no comparison; or all: "
        "then every fork carries it, and what it costs is in the figures of all variants  "
        f"[default: {DEFAULT_EXTRA_FORKS}]",
    ),
)
"""The options; the command gets them as one, `evidence_options`."""


# How the load is made.


class WorkersType(click.ParamType[int]):
    """A number of processes, or `auto`."""

    name = "auto|N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it; AS_MANY_WORKERS_AS_NEEDED for `auto`."""
        if value == "auto":
            return AS_MANY_WORKERS_AS_NEEDED
        if isinstance(value, str) and value.isdecimal() and int(value) > 0:
            return int(value)
        return self.fail(f"'{value}' is neither auto nor a number of processes", param, ctx)


workers_option = under(
    "Load",
    click.option(
        "--workers",
        type=WorkersType(),
        default="auto",
        show_default=True,
        help="Processes that clients work in; auto is one, unless targets ask for more than one offers.",
    ),
)
"""`--workers`."""


# `--test-mode`, and the defaults that it changes.


def test_mode_option(command: F) -> F:
    """Add `--test-mode`."""
    return under("How much", click.option(
        "--test-mode", is_flag=True, is_eager=True, callback=_other_defaults,
        help=f"See whether it works, not how fast: {TEST_MODE_DOCUMENTS:,} documents and {TEST_MODE_FORKS} "
        "fork unless given, every task at most 3 times after 1 warm-up, unthrottled.",
    ))(command)  # fmt: skip


def _other_defaults(context: click.Context, _option: click.Parameter, given: bool) -> bool:  # noqa: FBT001 - click's type
    """Replace defaults; eager, so that later options see them and explicit ones still win."""
    if given:
        context.default_map = {
            **(context.default_map or {}),
            "docs": TEST_MODE_DOCUMENTS,
            "forks": TEST_MODE_FORKS,
        }
    return given


trust_option = under(
    "What is measured",
    click.option(
        "--trust", is_flag=True, help="Execute the track's Python plug-in; see `benchctl track trust`."
    ),
)
"""The option; the command gets it as `trust`."""


def code_of(path: str) -> Code | None:
    """Return the plug-in of a track, given by path or a shipped track's name; nothing of it is executed."""
    return read_code(find_track(path).parent)


def echo_plugin(path: str, track: Track, challenges: Iterable[Challenge], *, trust: bool) -> None:
    """Print the state of the plug-in that challenges need; execute it only if trusted.

    Raises:
        UsageError: If the plug-in failed, or lacks something that all challenges need.
    """
    challenges = tuple(challenges)
    needing = [challenge for challenge in challenges if track.lacking(challenge)]
    code = code_of(path) if needing else None
    if code is None:
        return
    say(f"plug-in {code.digest[:12]}: {code.describe()}")
    if trust:
        problems = plugin_problems(code, track, needing)
        if problems and len(problems) == len(challenges):
            raise problems[0]
        say("it was executed" if problems else "it was executed, and registers all that is needed")
        for problem in problems:
            say(problem.message)
    elif Consent(resolve_home()).is_remembered(code):
        say("you trust it: `benchctl run` executes it")
    else:
        say(
            "nothing of it was executed; `benchctl run` does so with --trust, or after `benchctl track trust`"
        )
