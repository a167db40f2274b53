"""The form: what can be asked for, each stated once.

Options of commands, keys of suites, experiments and files of `--config`, their JSON Schema, the checks, what
a plan keeps and the command that repeats a run follow from the fields below: a new setting is a new field.
Values are as people write them; `run/form.py` makes plans' own of them.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from benchctl.errors import UsageError
from benchctl.quantities import KINDS, Count, Duration, Kind, Percent, Size

Heading = Literal["What is measured", "How much", "Load", "Nodes and indices", "Evidence", "Output"]
"""Sections of a command's help, in its order; a command's own options come before all of these."""

RestartPolicy = Literal["challenge", "task", "never"]
ErrorPolicy = Literal["continue", "abort"]
BusyAction = Literal["warn", "wait", "fail"]
TransportName = Literal["wire", "client"]
EvidenceKind = Literal["inlining", "profile", "jit", "gc", "os"]
MAX_SEED = 1 << 63
MOST_WORKERS = 64
AS_MANY_WORKERS_AS_NEEDED: Final = 0
DEFAULT_FORKS: Final = 6
"""Default number of forks: one more than a reportable verdict takes, so that one may fail."""
MOST_FORKS: Final = 50
"""With a stop rule and no number of forks: more would take hours, and see differences that rarely matter."""
DEFAULT_BUDGET_S: Final = 180.0
"""Where neither a number of forks nor a stop rule is given; with at least the default number of forks."""
MOST_FORKS_IN_FILE: Final = 10_000
"""Of every variant: months of measuring, and few enough to be listed one by one."""

Text = Annotated[str, Meta(min_length=1)]
Positive = Annotated[int, Meta(ge=1)]
Seed = Annotated[int, Meta(ge=0, le=MAX_SEED - 1)]
Workers = Annotated[int, Meta(ge=1, le=MOST_WORKERS)]
Forks = Annotated[int, Meta(ge=1, le=MOST_FORKS_IN_FILE)]
_WORD = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
TAG_FORM: Final = "a tag: NAME or KEY:VALUE, each up to 64 letters, digits, dots, hyphens and underscores"
Tag = Annotated[str, Meta(pattern=f"^{_WORD}(:{_WORD})?$", description=TAG_FORM)]

IndexManner = Literal["usual", "deterministic"]
PageCache = Literal["as-is", "cold", "warm"]
ComparedAs = Literal["ratio", "ratio-of-sums", "difference"]
"""Of geometric means over forks, unless values may be 0; of arithmetic ones; and their difference."""


def _said(
    words: str,
    heading: Heading,
    *,
    option: str = "",
    metavar: str | None = None,
    at_least: int | None = None,
) -> Meta:
    """Help of a setting, its heading, and its option where that is not its name."""
    extra = {"heading": heading, "option": option, "metavar": metavar}
    return Meta(description=words, ge=at_least, extra=extra)


class RunSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """The settings that a run, a suite and an experiment share; each field explains itself."""

    sweep: Annotated[
        tuple[str, ...],
        _said(
            "Measure at each of these values: clients=1,2,4, docs=250k,1m, heap=1g,2g, jvm=FLAG,FLAG, "
            "setting:KEY=A,B or a parameter of the challenge; repeat it for a grid.",
            "What is measured",
            metavar="WHAT=VALUE,...",
        ),
    ] = ()

    restart: Annotated[RestartPolicy, _said("When a fresh node comes in between.", "What is measured")] = (
        "challenge"
    )
    include_tasks: Annotated[
        str,
        _said(
            "Only tasks of these names, type:TYPE or tag:TAG, with commas in between.",
            "What is measured",
            metavar="FILTERS",
        ),
    ] = ""
    exclude_tasks: Annotated[
        str, _said("The same for tasks to leave out.", "What is measured", metavar="FILTERS")
    ] = ""
    segments: Annotated[int, _said("Segments of the prepared index.", "Nodes and indices", at_least=1)] = 1
    ingest_clients: Annotated[
        int,
        _said("Concurrent bulk senders that fill the prepared index.", "Nodes and indices", at_least=1),
    ] = 2
    ingest_transport: Annotated[
        TransportName,
        _said(
            "What fills the prepared index: benchctl's own wire client, or the bulk helpers of "
            "elasticsearch-py and opensearch-py, which encode every document.",
            "Nodes and indices",
        ),
    ] = "wire"
    index_builds: Annotated[
        int,
        _said(
            "Build every prepared index so often; forks take the builds in turn, and their spread counts.",
            "How much",
            metavar="K",
            at_least=1,
        ),
    ] = 1
    index: Annotated[
        IndexManner,
        _said(
            "How prepared indices are filled: fast, or by one sender so that every build is the same.",
            "Nodes and indices",
        ),
    ] = "usual"
    on_error: Annotated[
        ErrorPolicy, _said("Whether a failed request is counted, or ends its fork.", "Load")
    ] = "continue"
    assertions: Annotated[
        bool,
        _said(
            "Count answers that are not what the track's operations assert as failed.",
            "Load",
            option="--enable-assertions",
        ),
    ] = False
    on_node_loss: Annotated[
        Literal["fail", "continue"],
        _said(
            "Whether losing one of a cluster's nodes ends its fork, or is shown.",
            "Load",
        ),
    ] = "fail"
    hosts: Annotated[
        str,
        _said(
            "A file of hosts that load comes from, and nodes are on, instead of this one.",
            "Load",
            metavar="FILE",
        ),
    ] = ""
    metrics: Annotated[
        str,
        _said(
            "What variants are compared by: names of `compare --metric` with commas in between  "
            "[default: throughput,service_time,latency].",
            "Output",
            option="--metric",
            metavar="NAMES",
        ),
    ] = ""
    compared_as: Annotated[
        Literal["ratio", "difference"],
        _said(
            "Whether tables say by how many per cent variants differ, or by how much in the metric's unit.",
            "Output",
            option="--as",
        ),
    ] = "ratio"
    page_cache: Annotated[
        PageCache,
        _said(
            "What of the index is in the page cache when a node starts: whatever is, nothing, or all of it.",
            "Nodes and indices",
        ),
    ] = "as-is"


class EvidenceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The evidence to collect beside the figures: in how many further forks of every variant, or in all."""

    kinds: Annotated[
        tuple[EvidenceKind, ...],
        Meta(
            min_length=1,
            description="Collect what explains the figures, in separate forks: "
            f"{', '.join(get_args(EvidenceKind))}, or all; see: benchctl explain RUN.",
            extra={"heading": "Evidence", "option": "--evidence", "metavar": "KIND[,KIND]"},
        ),
    ]
    forks: Annotated[
        Forks | Literal["all"],
        _said(
            "How many extra forks of every variant carry the evidence, and enter no comparison; or all: then "
            "every fork carries it, and what it costs is in the figures of all variants  [default: 1]",
            "Evidence",
            option="--evidence-forks",
        ),
    ] = 1


_WORKERS = _said(
    "Processes that clients work in; auto is one, unless targets ask for more than one offers.",
    "Load",
    metavar="auto|N",
)
OnBusy = Annotated[
    BusyAction,
    _said("Busy host: warn, wait up to 10m until it is quiet, or fail.", "Output"),
]
_AS_WRITTEN = _said(
    "Keep the counts of shipped challenges that only say `iterations`, instead of those that warm the JIT up "
    "on a small corpus.",
    "What is measured",
)
"""Settings whose defaults differ by form."""


class Conditions(RunSettings, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Settings of a measurement: of a run, a suite, an experiment or one of its measurements."""

    track: Annotated[
        Text,
        _said(
            "Indices, documents and operations: a shipped track, or a folder or file of your own.",
            "What is measured",
            option="--track/--track-path/--workload-path",
            metavar="NAME|PATH",
        ),
    ] = "big5"
    docs: Annotated[
        Positive | Count | None,
        _said(
            "Documents: of files an even share  [default: 1m generated ones, 100k where run raises the "
            "counts of shipped challenges; all of files]",
            "What is measured",
        ),
    ] = None
    corpus: Annotated[
        str,
        _said(
            "Documents for the only index of the track, or the named one: JSON, one a line; .zst, .bz2 and "
            ".gz, too.",
            "What is measured",
            metavar="[INDEX=]FILE",
        ),
    ] = ""
    corpus_has_actions: Annotated[
        bool,
        _said("Before each document of --corpus, a line says what to do with it.", "What is measured"),
    ] = False
    corpus_dirs: Annotated[
        tuple[Text, ...],
        _said(
            "Where files of the track's documents are, beside the track's own folder; repeatable.",
            "What is measured",
            option="--corpus-dir",
            metavar="DIR",
        ),
    ] = ()
    corpus_seed: Annotated[Seed, _said("Seed of the corpus.", "How much")] = 1
    seed: Annotated[
        Seed | None, _said("Seed of block order, arrivals and values  [default: 1]", "How much")
    ] = None
    heap: Annotated[
        Size | None,
        _said(
            "Heap of every node  [default: a quarter of memory, at most 4g, for few documents less]",
            "Nodes and indices",
        ),
    ] = None
    pin: Annotated[
        str,
        _said(
            "Give nodes and benchctl CPUs of their own; chosen when none are named.",
            "Nodes and indices",
            metavar="[node=CPUS,driver=CPUS]",
        ),
    ] = ""
    workers: Annotated[Workers, _WORKERS] = 1
    paired: Annotated[
        bool,
        _said(
            "Analyse blocks as pairs, which takes the drift of the host out; declared before the run.",
            "How much",
            option="--paired/--unpaired",
        ),
    ] = True
    as_written: Annotated[bool, _AS_WRITTEN] = True
    tags: Annotated[
        tuple[Tag, ...],
        _said(
            "Words to find the run by, with compare and `runs list`. Repeatable.",
            "Output",
            option="--tag",
            metavar="NAME|KEY:VALUE,...",
        ),
    ] = ()
    calibrate: Annotated[
        bool,
        _said(
            "First measure what the driver itself costs on this machine, and keep that with the run.", "Load"
        ),
    ] = False


class Work(Conditions, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Subject of a measurement apart from the variants."""

    challenges: Annotated[
        tuple[Text, ...],
        _said(
            "What to run; repeat it to run schedules in order on one fork.",
            "What is measured",
            option="--challenge/--test-procedure",
            metavar="NAME|FILE",
        ),
    ] = ()
    warmup_challenges: Annotated[
        tuple[Text, ...],
        _said(
            "Run unmeasured on every fresh node before the schedule.",
            "What is measured",
            option="--warmup-challenge",
            metavar="NAME|FILE",
        ),
    ] = ()
    params: dict[str, Any] = msgspec.field(default_factory=dict)  # as `--param` takes them
    forks: Annotated[
        Forks | None,
        _said(
            "Forks per variant, each on fresh nodes; the maximum with --until-decided, --precision or "
            f"--budget  [default: as many as fit into --budget, at most {MOST_FORKS}]",
            "How much",
        ),
    ] = None
    evidence: EvidenceEntry | None = None


class RunForm(Work, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Form of `benchctl run`, for options and files."""

    variants: Annotated[
        tuple[Text, ...],
        _said(
            "es, os, es@8.19.0, or LABEL=BASE with options behind commas: jvm:FLAG, setting:KEY=VALUE, "
            "jdk:JDK, distribution:PATH|URL, heap:SIZE, env:NAME=VALUE, index:KEY=VALUE, jar:JAR, "
            "plugin:PLUGIN, warmup:CHALLENGE, start:script, nodes:N, shards:N, replicas:N; repeatable, the "
            "first is the baseline  [default: all of --variants; else the targets, or es and os]",
            "What is measured",
            option="--variant",
            metavar="VARIANT",
        ),
    ] = ()
    variants_file: Annotated[
        str,
        _said(
            "YAML file of further variants that can be named: NAME: {extends: es, jvm: [-Xint]}.",
            "What is measured",
            option="--variants",
            metavar="FILE",
        ),
    ] = ""
    jdks: Annotated[
        tuple[Text, ...],
        _said(
            "Java home, or a major version to fetch  [default: the bundled 21]",
            "Nodes and indices",
            option="--jdk",
            metavar="[VARIANT=]PATH|MAJOR",
        ),
    ] = ()
    workers: Annotated[int, Meta(ge=0, le=MOST_WORKERS), _WORKERS] = AS_MANY_WORKERS_AS_NEEDED
    as_written: Annotated[bool, _AS_WRITTEN] = False
    until_decided: Annotated[
        bool,
        _said(
            "End when every difference is faster, slower, different or equal; looked at after every block, "
            "by a test that holds in spite of it.",
            "How much",
        ),
    ] = False
    margin: Annotated[
        Percent | None,
        _said(
            "Difference that does not matter to --until-decided  [default: 3% of throughput, 5% of times]",
            "How much",
        ),
    ] = None
    precision: Annotated[
        Percent | None,
        _said(
            "End when the 95% interval of every difference reaches no further than this either side, such "
            "as 5%; looked at after every block from the 8th on, whatever p is.",
            "How much",
        ),
    ] = None
    budget: Annotated[
        Duration | None,
        _said(
            "Time limit for all forks, preparation not counted; blocks that would exceed it are not started  "
            f"[default: {DEFAULT_BUDGET_S / 60:g}m, with at least {DEFAULT_FORKS} blocks]",
            "How much",
        ),
    ] = None
    until_steady: Annotated[
        bool,
        _said(
            "First find out, on unmeasured pilot forks, for how long tasks must warm up, and let them.",
            "How much",
        ),
    ] = False
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
        """The option on the command line, and other names of it."""
        own: str = self._extra["option"]
        return tuple(own.split("/")) if own else (f"--{self.name.replace('_', '-')}",)

    @property
    def option(self) -> str:
        """The option on the command line."""
        return self.options[0]

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
    def _extra(self) -> Mapping[str, Any]:
        return self.meta.extra or {}


def _settings(form: type[msgspec.Struct], within: str = "") -> Iterator[Setting]:
    hints = get_type_hints(form, include_extras=True)
    bases = [one for one in form.__mro__ if issubclass(one, msgspec.Struct) and one is not msgspec.Struct]
    later = {name: place for place, base in enumerate(bases) for name in base.__struct_fields__}
    for field in sorted(msgspec.structs.fields(form), key=lambda one: later[one.name]):
        hint = hints[field.name]
        plain, metas = _unwrapped(hint)
        members = [_unwrapped(one) for one in get_args(plain) or (plain,) if one is not type(None)]
        if get_origin(plain) in {tuple, Literal}:
            members = [_unwrapped(plain)]
        inner, bounds = members[0]
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            yield from _settings(inner, field.name)
        elif any(one.extra for one in metas):
            several = get_origin(inner) is tuple
            members = [_unwrapped(get_args(inner)[0])] if several else members
            words = [get_args(kind) for kind, _ in members if get_origin(kind) is Literal]
            patterns = {one.pattern for _, found in members for one in found}
            yield Setting(
                name=field.name,
                within=within,
                default=field.default,
                meta=next(one for one in metas if one.extra),
                several=several,
                choices=words[0] if words else (),
                is_flag=inner is bool,
                kind=next((kind for kind in KINDS if kind.written.pattern in patterns), None),
                is_number=inner is int,
                least=next((int(one.ge) for one in (*metas, *bounds) if one.ge is not None), None),
                most=next((int(one.le) for one in (*metas, *bounds) if one.le is not None), None),
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
    return next(one for one in settings(RunForm) if one.name == name)


def run_settings() -> tuple[Setting, ...]:
    """Return the settings that plans keep as they are."""
    return settings(RunSettings)


def settings_in(source: RunSettings) -> dict[str, Any]:
    """Return the settings that plans keep, by name: arguments for another that has them."""
    return {one.name: getattr(source, one.name) for one in run_settings()}


def setting_words(source: msgspec.Struct) -> list[str]:
    """Return the options of a command line for the settings that differ from the default, in help's order."""
    words: list[str] = []
    headings = get_args(Heading)
    for one in sorted(settings(type(source)), key=lambda setting: headings.index(setting.heading)):
        value = one.value_in(source)
        if value is None or value == one.default:
            continue
        if one.is_flag:
            words.append(one.options[0 if value else -1])
        elif one.several:
            shown = [",".join(value)] if one.choices else value
            words += [word for text in shown for word in (one.option, text)]
        else:
            text = str(value) if one.kind is None or isinstance(value, str) else one.kind.text(value)
            words += [one.option, text]
    return words


def problems(source: msgspec.Struct) -> Iterator[tuple[Setting, str]]:
    """Yield what is wrong with numbers and amounts, which may come from anywhere."""
    for one in settings(type(source)):
        value = one.value_in(source)
        if isinstance(value, str) and one.kind is not None:
            try:
                one.kind.parse(value)
            except UsageError as err:
                yield one, err.message
        elif isinstance(value, int) and one.least is not None and value < one.least:
            yield one, f"must be at least {one.least}"
        elif isinstance(value, int) and one.most is not None and value > one.most:
            yield one, f"must be at most {one.most}"


def check_settings(source: msgspec.Struct) -> None:
    """Refuse what is out of range, under the names that it has on the command line.

    Raises:
        UsageError: If a number or an amount is out of range.
    """
    for one, problem in problems(source):
        raise UsageError(f"{one.option}: {problem}")
