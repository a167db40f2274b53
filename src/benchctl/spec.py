"""The form: what can be asked for, each stated once.

Options of commands, keys of suites, experiments and files of `--config`, their JSON Schema, the checks, what
a plan keeps and the command that repeats a run follow from the fields below: a new setting is a new field.
Values are as people write them; `run/form.py` makes plans' own of them.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from benchctl.errors import UsageError
from benchctl.git import address_problem
from benchctl.quantities import KINDS, SIZE, Count, Duration, Kind, Percent, Size

Heading = Literal["What to measure", "How long", "Load", "Nodes and indices", "Execution and output"]
"""Sections of a command's help, in its order; a command's own options come before all of these."""

RestartPolicy = Literal["challenge", "task", "never"]
ErrorPolicy = Literal["continue", "abort"]
BusyAction = Literal["warn", "wait", "fail"]
IngestClient = Literal["wire", "official"]
EvidenceKind = Literal["inlining", "profile"]
MAX_SEED = 1 << 63
MOST_WORKERS = 64
AUTOMATIC: Final = "auto"
"""Word for the number that is needed."""
BUILDS_OF_VECTORS: Final = 3
"""Index builds of a track with vectors, unless a number is given: their graphs differ from build to build."""
DEFAULT_FORKS: Final = 6
"""Default number of forks: one more than a reportable verdict takes, so that one may fail."""
MOST_FORKS: Final = 50
"""With a stop rule and no number of forks: more would take hours, and see differences that rarely matter."""
DEFAULT_BUDGET_S: Final = 180.0
"""Budget if neither a number of forks nor a stop rule is given; with at least the default number of forks."""
MOST_FORKS_IN_FILE: Final = 10_000
"""Of every variant: months of measuring, and few enough to be listed one by one."""

Text = Annotated[str, Meta(min_length=1)]
Positive = Annotated[int, Meta(ge=1)]
Seed = Annotated[int, Meta(ge=0, le=MAX_SEED - 1)]
Builds = Annotated[int, Meta(ge=1)]
Workers = Annotated[int, Meta(ge=1, le=MOST_WORKERS)]
Forks = Annotated[int, Meta(ge=1, le=MOST_FORKS_IN_FILE)]
_WORD = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
TAG_FORM: Final = "a tag: NAME or KEY:VALUE, each up to 64 letters, digits, dots, hyphens and underscores"
Tag = Annotated[str, Meta(pattern=rf"^{_WORD}(:{_WORD})?$(?!\n)", description=TAG_FORM)]

Warmup = Literal["auto", "as-written"]
PageCache = Literal["as-is", "cold", "warm"]
Diff = Literal["percent", "absolute"]
ComparedAs = Literal["ratio", "ratio-of-sums", "difference"]
"""Of geometric means over forks, unless values may be 0; of arithmetic ones; and their difference."""
COMPARED_AS: Final[Mapping[Diff, ComparedAs]] = {"percent": "ratio", "absolute": "difference"}


def _said(
    words: str,
    heading: Heading,
    *,
    option: str = "",
    aliases: tuple[str, ...] = (),
    metavar: str | None = None,
    at_least: int | None = None,
    kind: Kind[Any] | None = None,
    problem: Callable[[str], str] | None = None,
) -> Meta:
    """Help of a setting, its heading, its option where that is not its name, and other tools' names of it.

    `problem` returns what is wrong with a text, or nothing.
    """
    value = "" if kind is None else kind.written.description
    extra: dict[str, Any] = {"heading": heading, "option": option, "aliases": aliases, "metavar": metavar}
    extra |= {"value": value, "problem": problem}
    return Meta(description=words, ge=at_least, extra=extra)


_BUILDS = _said(
    "Independent builds of each index, the unit of replication; auto: 3 for tracks with vectors, else 1.",
    "Nodes and indices",
    metavar="auto|N",
)


class RunSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """The settings that a run, a suite and an experiment share; each field explains itself."""

    sweep: Annotated[
        tuple[str, ...],
        _said(
            "Measure at several values, e.g. clients=1,2,4.",
            "What to measure",
            metavar="NAME=A,B,...",
        ),
    ] = ()

    restart: Annotated[
        RestartPolicy,
        _said(
            "When to start a fresh node: for every challenge, for every task, or once per fork (never).",
            "Execution and output",
        ),
    ] = "challenge"
    include_tasks: Annotated[
        str,
        _said(
            "Run only matching tasks: NAME, type:TYPE or tag:TAG. Comma-separated.",
            "What to measure",
            metavar="FILTERS",
        ),
    ] = ""
    exclude_tasks: Annotated[
        str,
        _said("Skip matching tasks; same syntax as --include-tasks.", "What to measure", metavar="FILTERS"),
    ] = ""
    segments: Annotated[
        int, _said("Segments to force-merge each prepared index to.", "Nodes and indices", at_least=1)
    ] = 1
    ingest_clients: Annotated[
        int,
        _said("Concurrent bulk clients that build each index.", "Nodes and indices", at_least=1),
    ] = 2
    ingest_client: Annotated[
        IngestClient,
        _said(
            "Client that builds the index: benchctl's own (wire) or the official bulk helpers.",
            "Nodes and indices",
            option="--client",
        ),
    ] = "wire"
    index_builds: Annotated[Builds, _BUILDS] = 1
    on_error: Annotated[
        ErrorPolicy, _said("Failed requests: count them (continue) or end the fork (abort).", "Load")
    ] = "continue"
    assertions: Annotated[
        bool,
        _said(
            "Count responses that violate the track's assertions as failures.",
            "Load",
            option="--assertions/--no-assertions",
            aliases=("--enable-assertions",),
        ),
    ] = True
    hosts: Annotated[
        str,
        _said(
            "YAML file of hosts that generate load.  [default: this host only]",
            "Load",
            metavar="FILE",
        ),
    ] = ""
    metrics: Annotated[
        str,
        _said(
            "Metrics to compare, see `benchctl list metrics`. Comma-separated.  [default: "
            "throughput,service_time,latency]",
            "Execution and output",
            option="--metric",
            metavar="NAMES",
        ),
    ] = ""
    diff: Annotated[
        Diff,
        _said(
            "Show differences as a percentage (percent) or in the metric's unit (absolute).",
            "Execution and output",
        ),
    ] = "percent"
    one_by_one: Annotated[
        bool,
        _said(
            "Measure variants one after another. By default, their nodes are up at the same time and take "
            "turns, where that is possible.",
            "Execution and output",
        ),
    ] = False
    page_cache: Annotated[
        PageCache,
        _said(
            "Page cache at node start: unchanged (as-is), index evicted (cold) or loaded (warm).",
            "Nodes and indices",
        ),
    ] = "as-is"


class EvidenceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The evidence to collect beside the figures: in how many further forks of every variant, or in all."""

    kinds: Annotated[
        tuple[EvidenceKind, ...],
        Meta(
            min_length=1,
            description=f"Collect {' and '.join(get_args(EvidenceKind))}, or one of them.",
            extra={"heading": "Execution and output", "option": "--evidence", "metavar": "KIND,..."},
        ),
    ]
    forks: Annotated[
        Forks | Literal["all"],
        _said(
            "Extra forks per variant that collect evidence and are not compared; ALL collects in every fork, "
            "which affects timings.  [default: 1]",
            "Execution and output",
            option="--evidence-forks",
        ),
    ] = 1


_WORKERS = _said(
    "Load-generator processes; auto: one, or more if the target rates require it.",
    "Load",
    metavar="auto|N",
)
OnBusy = Annotated[
    BusyAction,
    _said(
        "On a busy host: measure and mark the result (warn), wait up to 10 minutes (wait), or exit (fail).",
        "Execution and output",
    ),
]
_WARMUP = _said(
    "Warm-up of shipped challenges: by corpus size (auto) or as in the JSON (as-written).",
    "What to measure",
)
"""Settings whose defaults differ by form."""


class Conditions(RunSettings, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Settings of a measurement: of a run, a suite, an experiment or one of its measurements."""

    track: Annotated[
        Text,
        _said(
            "Indices, documents and operations.",
            "What to measure",
            aliases=("--track-path", "--workload", "--workload-path"),
            metavar="NAME|PATH",
        ),
    ] = "big5"
    track_repository: Annotated[
        str,
        _said(
            "Git repository that has the track.",
            "What to measure",
            aliases=("--workload-repository",),
            metavar="URL|DIR",
            problem=address_problem,
        ),
    ] = ""
    track_revision: Annotated[
        str,
        _said(
            "Branch, tag or commit of --track-repository.  [default: by engine version]",
            "What to measure",
            aliases=("--workload-revision",),
            metavar="REV",
        ),
    ] = ""
    docs: Annotated[
        Positive | Count | None,
        _said(
            "Number of documents, e.g. 300k.  [default: auto]",
            "What to measure",
        ),
    ] = None
    corpus: Annotated[
        str,
        _said(
            "JSON Lines (also .zst, .bz2, .gz) for the only index, or as named in action lines.",
            "What to measure",
            metavar="FILE",
        ),
    ] = ""
    corpus_dirs: Annotated[
        tuple[Text, ...],
        _said(
            "Additional directory to search for the track's document files. Repeatable.",
            "What to measure",
            option="--corpus-dir",
            metavar="DIR",
        ),
    ] = ()
    corpus_seed: Annotated[Seed, _said("Random seed for the generated corpus.", "What to measure")] = 1
    seed: Annotated[
        Seed | None,
        _said(
            "Random seed for block order, arrival times and parameter values.  [default: 1]",
            "Execution and output",
        ),
    ] = None
    heap: Annotated[Size, _said("JVM heap per node, e.g. 512m or 4g.", "Nodes and indices", kind=SIZE)] = "1g"
    pin: Annotated[
        str,
        _said(
            "Pin nodes and driver to separate CPUs, chosen automatically if none are given.",
            "Nodes and indices",
            metavar="[node=CPUS,driver=CPUS]",
        ),
    ] = ""
    workers: Annotated[Workers, _WORKERS] = 1
    warmup: Annotated[Warmup, _WARMUP] = "as-written"
    tags: Annotated[
        tuple[Tag, ...],
        _said(
            "Label for finding the run later. Repeatable.",
            "Execution and output",
            option="--tag",
            aliases=("--user-tag", "--user-tags"),
            metavar="TAG",
        ),
    ] = ()


class Work(Conditions, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Subject of a measurement apart from the variants."""

    challenges: Annotated[
        tuple[Text, ...],
        _said(
            "Challenge to run. Repeatable.  [default: the track's]",
            "What to measure",
            option="--challenge",
            aliases=("--test-procedure",),
            metavar="NAME|FILE",
        ),
    ] = ()
    warmup_challenges: Annotated[
        tuple[Text, ...],
        _said(
            "Challenge to run unmeasured on every fresh node first. Repeatable.",
            "What to measure",
            option="--warmup-challenge",
            metavar="NAME|FILE",
        ),
    ] = ()
    params: dict[str, Any] = msgspec.field(default_factory=dict)  # parameters by name, as of `--param`
    forks: Annotated[
        Forks | None,
        _said(
            "Fresh-node repetitions per variant.  [default: adaptive]",
            "How long",
        ),
    ] = None
    evidence: EvidenceEntry | None = None  # evidence to collect


class RunForm(Work, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Form of `benchctl run`, for options and files."""

    variants: Annotated[
        tuple[Text, ...],
        _said(
            "es, os, es@8.19.0 or LABEL=BASE,KEY:VALUE,... Repeatable; the first is the baseline.  "
            "[default: es, os]",
            "What to measure",
            option="--variant",
            metavar="VARIANT",
        ),
    ] = ()
    variants_file: Annotated[
        str,
        _said(
            "YAML file that defines more variants.",
            "What to measure",
            option="--variants",
            metavar="FILE",
        ),
    ] = ""
    jdk: Annotated[
        str,
        _said(
            "JDK of variants without `jdk:`: 17, bundled (the distribution's), or a Java home.  "
            "[default: auto]",
            "Nodes and indices",
            aliases=("--runtime-jdk",),
            metavar="JDK",
        ),
    ] = ""
    workers: Annotated[Workers | Literal["auto"], _WORKERS] = AUTOMATIC  # type: ignore[assignment]
    index_builds: Annotated[Builds | Literal["auto"], _BUILDS] = AUTOMATIC  # type: ignore[assignment]
    warmup: Annotated[Warmup, _WARMUP] = "auto"
    targets: Annotated[
        tuple[Text, ...],
        _said(
            "Running cluster to measure instead. Repeatable.",
            "What to measure",
            option="--target",
            metavar="NAME=URL",
        ),
    ] = ()
    targets_file: Annotated[
        str,
        _said(
            "YAML file of running clusters: url, credentials, ca, proxy, fill.",
            "What to measure",
            option="--targets",
            metavar="FILE",
        ),
    ] = ""
    allow_writes: Annotated[
        bool,
        _said(
            "Let challenges create missing indices and data streams on targets; removed after every fork.",
            "Nodes and indices",
        ),
    ] = False
    until_decided: Annotated[
        bool,
        _said(
            "Stop when every row has a verdict.",
            "How long",
        ),
    ] = False
    margin: Annotated[
        Percent | None,
        _said(
            "Largest difference that counts as equal, for --until-decided.  [default: 3% throughput, 5% "
            "times]",
            "How long",
        ),
    ] = None
    budget: Annotated[
        Duration | None,
        _said(
            f"Time for the forks; at least {DEFAULT_FORKS} forks per variant by default.  "
            f"[default: {DEFAULT_BUDGET_S / 60:g}m]",
            "How long",
        ),
    ] = None
    on_busy: OnBusy = "warn"


class Setting(msgspec.Struct, frozen=True):
    """A field of the form as declared."""

    name: str
    within: str  # the field that holds the struct that it is of; empty for the form itself
    default: Any
    meta: Meta  # what is said of it
    several: bool = False  # whether it is a list
    choices: tuple[str, ...] = ()  # words that it may be, besides a number; empty for any
    is_flag: bool = False
    kind: Kind[Any] | None = None  # of its amounts; None for something else
    is_number: bool = False
    least: int | None = None
    most: int | None = None

    @property
    def parameter(self) -> str:
        """The name of the option's value."""
        return f"{self.within}_{self.name}" if self.within else self.name

    @property
    def options(self) -> tuple[str, ...]:
        """The option on the command line, and the one that turns a flag off."""
        own: str = self._extra["option"]
        return tuple(own.split("/")) if own else (f"--{self.name.replace('_', '-')}",)

    @property
    def option(self) -> str:
        """The option on the command line."""
        return self.options[0]

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names of the option, which help does not have."""
        found: tuple[str, ...] = self._extra.get("aliases", ())
        return found

    @property
    def heading(self) -> Heading:
        """The heading of its section in the help."""
        found: Heading = self._extra["heading"]
        return found

    @property
    def metavar(self) -> str | None:
        """The metavar of its value in the help; None for the type's own."""
        found: str | None = self._extra["metavar"]
        return found

    def value_in(self, source: object) -> Any:
        """Return its value in a form; None where it has none."""
        holder = getattr(source, self.within) if self.within else source
        return None if holder is None else getattr(holder, self.name)

    @property
    def problem(self) -> Callable[[str], str] | None:
        """Return a function that returns what is wrong with its text; None where any will do."""
        found: Callable[[str], str] | None = self._extra.get("problem")
        return found

    @property
    def _extra(self) -> Mapping[str, Any]:
        return self.meta.extra or {}


def _settings(form: type[msgspec.Struct], within: str = "") -> Iterator[Setting]:
    hints = get_type_hints(form, include_extras=True)
    bases = [one for one in form.__mro__ if issubclass(one, msgspec.Struct) and one is not msgspec.Struct]
    later = {name: place for place, base in enumerate(bases) for name in base.__struct_fields__}
    for field in sorted(msgspec.structs.fields(form), key=lambda info: later[info.name]):
        hint = hints[field.name]
        plain, metas = _unwrapped(hint)
        members = [_unwrapped(arg) for arg in get_args(plain) or (plain,) if arg is not type(None)]
        if get_origin(plain) in {tuple, Literal}:
            members = [_unwrapped(plain)]
        inner, bounds = members[0]
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            yield from _settings(inner, field.name)
        elif any(meta.extra for meta in metas):
            several = get_origin(inner) is tuple
            members = [_unwrapped(get_args(inner)[0])] if several else members
            words = [get_args(kind) for kind, _ in members if get_origin(kind) is Literal]
            patterns = {one.pattern for _, found in (*members, (plain, metas)) for one in found}
            yield Setting(
                name=field.name,
                within=within,
                default=field.default,
                meta=next(meta for meta in metas if meta.extra),
                several=several,
                choices=words[0] if words else (),
                is_flag=inner is bool,
                kind=next((kind for kind in KINDS if kind.written.pattern in patterns), None),
                is_number=inner is int,
                least=next((int(meta.ge) for meta in (*metas, *bounds) if meta.ge is not None), None),
                most=next((int(meta.le) for meta in (*metas, *bounds) if meta.le is not None), None),
            )


def _unwrapped(hint: Any) -> tuple[Any, tuple[Meta, ...]]:
    """Return a type without what is said of it, and that."""
    if get_origin(hint) is not Annotated:
        return hint, ()
    plain, *metas = get_args(hint)
    return plain, tuple(metas)


@cache
def settings(form: type[msgspec.Struct]) -> tuple[Setting, ...]:
    """Return all settings of a form in the order of their declaration, its own before those of its bases."""
    return tuple(_settings(form))


def setting(name: str) -> Setting:
    """Return a setting of `benchctl run` by its name."""
    return next(candidate for candidate in settings(RunForm) if candidate.name == name)


def run_settings() -> tuple[Setting, ...]:
    """Return the settings that plans keep as they are."""
    return settings(RunSettings)


def settings_in(source: RunSettings) -> dict[str, Any]:
    """Return the settings that plans keep, by name: arguments for another that has them."""
    return {run_setting.name: getattr(source, run_setting.name) for run_setting in run_settings()}


def problems(source: msgspec.Struct) -> Iterator[tuple[Setting, str]]:
    """Yield what is wrong with numbers, amounts and addresses, which may come from anywhere."""
    for entry in settings(type(source)):
        value = entry.value_in(source)
        if isinstance(value, str) and entry.kind is not None:
            try:
                entry.kind.parse(value)
            except UsageError as err:
                yield entry, err.message
        elif isinstance(value, str) and entry.problem is not None and (problem := entry.problem(value)):
            yield entry, problem
        elif isinstance(value, int) and entry.least is not None and value < entry.least:
            yield entry, f"must be at least {entry.least}"
        elif isinstance(value, int) and entry.most is not None and value > entry.most:
            yield entry, f"must be at most {entry.most}"


def check_settings(source: msgspec.Struct) -> None:
    """Refuse what is out of range, under the names that it has on the command line.

    Raises:
        UsageError: If a number or an amount is out of range.
    """
    for entry, problem in problems(source):
        raise UsageError(f"{entry.option}: {problem}", hint=_example(entry))


def _example(one: Setting) -> str:
    """Return an option with a valid value, for a hint; empty where messages have an example."""
    value = DEFAULT_FORKS if one.name == "forks" else one.default or one.least
    return "" if one.kind is not None or not value else f"e.g. {one.option} {value}"
