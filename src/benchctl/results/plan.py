"""What a run is going to do, decided and validated before any node starts."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from benchctl.errors import UsageError
from benchctl.nearest import suggestion
from benchctl.results.figures import about
from benchctl.spec import RunSettings
from benchctl.track.model import Challenge, GeneratorName

# Sets of CPUs as Linux writes them: `0-2,5`.


_PART = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+))?")
# The kernel's own bound is below that.
_MOST = 1 << 16


def parse_cpus(text: str) -> tuple[int, ...]:
    """The numbers of a list, ascending, each once.

    Raises:
        ValueError: it is not a list of CPUs.
    """
    found: set[int] = set()
    for part in text.strip().split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"'{part}' is neither a CPU nor a range of CPUs")
        first, last = int(match["first"]), int(match["last"] or match["first"])
        if last < first or last >= _MOST:
            raise ValueError(f"'{part}' is not a range of CPUs")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def cpu_list(cpus: Iterable[int]) -> str:
    """A set of CPUs as a list of ranges."""
    ranges: list[tuple[int, int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1] = (ranges[-1][0], cpu)
        else:
            ranges.append((cpu, cpu))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


EngineName = Literal["elasticsearch", "opensearch", "jvm"]
"""What nodes run; `jvm` is no engine: microbenchmarks have a JVM of their own."""
DataOrigin = Literal["prepared", "empty"]
EvidenceKind = Literal["inlining", "profile", "jit", "gc", "os"]
EVIDENCE_READERS: Final[Mapping[EvidenceKind, str]] = {
    "inlining": "inlining {run} --method CLASS::METHOD",
    "profile": "profile {run}",
    "jit": "evidence {run}",
    "gc": "evidence {run}",
    "os": "evidence {run}",
}
"""All kinds, and the command that shows what was collected."""
StartMode = Literal["direct", "script"]

Place = tuple[int, int]
"""(schedule, task): a task's position in a fork."""


class TargetSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A cluster that runs already, as the user named it; credentials are never kept.

    Attributes:
        hosts: scheme, host and port of every address that requests go to in turn.
        ca: absolute path of the certificates that are trusted instead of the system's.
        verify: whether its certificate is checked.
        auth_file: absolute path of the file that its credentials come from; None for the environment.
        restart_command: run where a node would be booted: program and arguments; empty for none.
        fill: whether the track's index may be made and filled where there is none.
        writes: what becomes of the indices that a challenge makes there; None when it may make none.
    """

    hosts: tuple[str, ...]
    ca: str | None = None
    verify: bool = True
    auth_file: str | None = None
    restart_command: tuple[str, ...] = ()
    fill: bool = False
    writes: Literal["removed", "kept"] | None = None


class NodeSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """A node of a cluster that benchctl starts.

    Attributes:
        settings: over those of its variant; its roles and attributes are among them.
        host: of `hosts.yml` that it is to be on; empty for the next one that carries nodes.
    """

    name: str
    settings: dict[str, Any] = {}
    host: str = ""

    def has_role(self, role: Literal["master", "data"], common: Mapping[str, Any]) -> bool:
        """Whether it may become master, or holds data; `common` are the settings of its variant."""
        settings = {**common, **self.settings}
        roles = settings.get("node.roles")
        if roles is None:
            return str(settings.get(f"node.{role}", "true")).lower() == "true"
        roles = roles.split(",") if isinstance(roles, str) else roles
        wanted = ("master", "cluster_manager") if role == "master" else ("data",)
        return any(one.strip().startswith(wanted) for one in roles)


class VariantSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What is measured, as the user asked for it.

    Attributes:
        name: how tables call it, such as `es` or `es@8.19.0`.
        version: the version to fetch; what a given distribution really is, is checked at its first start.
        distribution: path or URL of an archive or folder instead of Maven Central; None for Central.
        jdk: path of a Java home, or a major version; None for the bundled runtime.
        jvm_flags: further flags, in order, behind the common ones.
        settings: node settings beyond the common ones.
        target: the running cluster that it is, with the engine and version found there; None for nodes that
            benchctl starts.
        heap_mb: heap of its nodes, MiB; None for the plan's.
        environment: variables of its nodes' processes, over benchctl's own.
        index_settings: of its prepared index, over those of the track's index body.
        jars: that take the place of jars in `lib/`: paths, Maven coordinates `group:artifact:version`, or
            `patched:FILE.diff` for Lucene's with that diff, or the name of a shipped one; after
            `patched:recompiled:`, the same classes unchanged.
        plugins: that are installed: paths or URLs of their zip files, or Maven coordinates.
        warmups: names or files of challenges that run unmeasured after every boot, before the plan's own.
        start: whether its nodes are started by the server's own command line or by the engine's script.
        documents: generated documents of its prepared index; None for the plan's.
        nodes: of the cluster that it is; empty for a single node.
        index_from: engine and version that fill its prepared index, such as `es@7.17.29`; None for its own.
    """

    name: str
    engine: EngineName
    version: str
    distribution: str | None = None
    jdk: str | None = None
    jvm_flags: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    target: TargetSpec | None = None
    heap_mb: int | None = None
    environment: dict[str, str] = {}
    index_settings: dict[str, Any] = {}
    jars: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    warmups: tuple[str, ...] = ()
    start: StartMode = "direct"
    documents: int | None = None
    nodes: tuple[NodeSpec, ...] = ()
    index_from: str | None = None

    @property
    def layout(self) -> tuple[NodeSpec, ...]:
        """The nodes with all settings that decide where shards are, those of the variant included."""
        common = {
            name: value
            for name, value in self.settings.items()
            if name.startswith(("node.", "cluster.routing."))
        }
        return tuple(NodeSpec(node.name, {**common, **node.settings}) for node in self.nodes)

    @property
    def node_names(self) -> tuple[str, ...]:
        """What records call the nodes that benchctl starts for it; the name of a single one is empty."""
        return tuple(node.name for node in self.nodes) if len(self.nodes) > 1 else ("",)

    @property
    def node_count(self) -> int:
        """How many nodes benchctl starts for it."""
        return 0 if self.target is not None else max(len(self.nodes), 1)


class CorpusFile(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True, kw_only=True
):
    """One file of documents that benchctl did not generate.

    Attributes:
        path: absolute path of the file, compressed or not.
        documents: how many of its documents are used: all of them, or an even share.
        held: how many it holds.
        raw_bytes: of all its lines, decompressed.
        sha256: of the same, hexadecimal.
        corpus: name of its corpus in the track; empty for a file of the command line.
        index: where its documents go; None when their own lines say so, or a data stream is meant.
        data_stream: the same for a data stream.
        type: of its documents, for nodes old enough to have types.
        has_actions: whether a line before each document says what to do with it.
    """

    path: str
    documents: int
    held: int
    raw_bytes: int
    sha256: str
    corpus: str = ""
    index: str | None = None
    data_stream: str | None = None
    type: str | None = None
    has_actions: bool = False


class CorpusSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """Which documents: generated ones, whose digest follows from the others; or those of files.

    Attributes:
        seed: of generated ones; 0 for files.
        generator_version: which generator made them; 0 for files.
        digest: SHA-256 over all documents; empty while it is not known.
        files: that hold them; empty for generated ones.
        generator: of generated ones.
    """

    seed: int
    documents: Annotated[int, about("documents of the corpus")]
    generator_version: int
    digest: str
    files: tuple[CorpusFile, ...] = ()
    generator: GeneratorName = "big5"


SearchedBy = Literal["rate", "factor", "clients"]


class RedlineSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True
):
    """A search for the highest load at which an objective is still met.

    Attributes:
        operation: the operation's name; where a factor is searched for, the challenge's.
        percentile: which percentile of latency the objective bounds, such as 90.
        limit_ns: its bound.
        clients: concurrent clients; requests that find all of them busy wait, and their latency says so.
            Where their number is searched for, the most of them; tasks of a challenge have their own.
        schedule: how arrivals are spaced; tasks of a challenge have their own.
        warm_up_s: closed loop before the search.
        settle_s: of every step, before what is measured of it.
        step_s: measured of every step.
        tolerance: ratio of neighbouring loads - 1: how exactly the answer is wanted.
        max_per_s: no higher rate, or factor, is tried; None for no bound.
        by: what is raised: the rate of an open loop, a factor of all rates of a challenge, or the clients of
            a closed loop.
        least_clients: the fewest clients to be tried, where their number is searched for.
        tasks: names or operations of those of a challenge that `limit_ns` bounds; empty for all with a
            target.
    """

    operation: str
    percentile: float
    limit_ns: int
    clients: int
    schedule: Literal["deterministic", "poisson"]
    warm_up_s: float
    settle_s: float
    step_s: float
    tolerance: float
    max_per_s: float | None = None
    by: SearchedBy = "rate"
    least_clients: int = 1
    tasks: tuple[str, ...] = ()


class PinSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Which CPUs nodes and the driver get; the two have none in common.

    Attributes:
        node: CPU numbers of the nodes.
        driver: CPU numbers of benchctl itself, its workers included.
    """

    node: tuple[int, ...]
    driver: tuple[int, ...]


class MicroSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Microbenchmarks of JMH, which a plan may measure instead of nodes.

    Attributes:
        source: absolute path of a file of Java, a folder of such, or a jar of benchmarks.
        digest: SHA-256 of what is there.
        dependencies: Maven coordinates of what it stands on, without what their POMs need besides.
        release: of Java that it is compiled for; 0 for a jar, and until that is known.
        include: regular expression that names of benchmarks match; empty for all.
        params: values of their parameters that were asked for, where these are not the benchmarks' own.
        threads: numbers of threads that were asked for; empty for the benchmarks' own.
        arguments: further ones of JMH's.
        timeout_s: that one benchmark may take in one fork.
        apart: coordinates of jars off the class path; NAME's path is the system property `benchctl.NAME`.
    """

    source: str
    digest: str
    dependencies: tuple[str, ...] = ()
    release: int = 0
    include: str = ""
    params: dict[str, tuple[str, ...]] = {}
    threads: tuple[int, ...] = ()
    arguments: tuple[str, ...] = ()
    timeout_s: float = 600.0
    apart: dict[str, str] = {}


class StopSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """When a run ends before it has all of its forks: decided after whole blocks.

    With `precision`, p-values have no say. With `decided` they have, and are judged at levels that hold for
    all looks together.

    Attributes:
        precision: half width of the 95 % interval of every judged effect that is enough, as a ratio - 1
            (0.05 for 5 %); None not to end early.
        budget_s: seconds for the forks, from the start of the first; a block that is not expected to fit is
            not begun. None for as long as it takes.
        least_forks: that every variant gets whatever the intervals are; a budget may cut it short.
        decided: end when every judged effect is faster, slower or equivalent.
        margin: the difference that does not matter, as a ratio - 1, of every metric; None for each metric's
            own.
        most: blocks that the levels of `decided` hold for; None for as many as they ever do.
    """

    precision: float | None = None
    budget_s: float | None = None
    least_forks: int = 8
    decided: bool = False
    margin: float | None = None
    most: int | None = None


class EvidenceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What is collected beside the figures, to see why they are as they are.

    Attributes:
        kinds: what, sorted.
        extra_forks: forks of every variant that it is collected in, behind the plan's own, which then stay
            plain; their figures enter no comparison. 0 to collect it in all of the plan's own forks, which
            are compared with each other, since all of them bear its cost.
        first: block of the first of these; None for right behind the plan's own.
    """

    kinds: tuple[EvidenceKind, ...]
    extra_forks: int = 0
    first: int | None = None


MOST_FORKS_IN_FILE: Final = 10_000
"""Of every variant: months of measuring, and few enough to be listed one by one."""

Forks = Annotated[int, Meta(ge=1, le=MOST_FORKS_IN_FILE)]


class EvidenceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What is collected beside the figures: in how many further forks of every variant, or in all."""

    kinds: Annotated[tuple[EvidenceKind, ...], Meta(min_length=1)]
    forks: Forks | Literal["all"] = 1

    @property
    def spec(self) -> EvidenceSpec:
        """As the plan takes it."""
        extra = 0 if self.forks == "all" else self.forks
        return EvidenceSpec(kinds=tuple(sorted(set(self.kinds))), extra_forks=extra)


class Axis(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What a sweep varies.

    Attributes:
        name: of a parameter, `docs`, or an option of variants such as `heap` or `setting:KEY`.
        values: as written; by size where they have one, else in the order of the command line.
        numbers: of the values, in one unit; empty for flags, names and what is not more than 0.
    """

    name: str
    values: tuple[str, ...]
    numbers: tuple[float, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The values for readers: an empty one stands for what is there without."""
        return tuple(value or "none" for value in self.values)


class Swept(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What a variant or a challenge of a sweep is.

    Attributes:
        of: its name without the sweep.
        at: name of an axis -> its value here; for the axes that are about variants, or about challenges.
    """

    of: str
    at: dict[str, str] = {}


class SweepSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A sweep: variants and challenges at every point of a grid.

    Attributes:
        axes: in the order of the command line; the first is the one that lines are drawn over.
        bases: the variants without the sweep, in table order.
        variants: by the name that they have in the run.
        schedules: by position in the plan.
    """

    axes: tuple[Axis, ...]
    bases: tuple[VariantSpec, ...]
    variants: dict[str, Swept]
    schedules: tuple[Swept, ...]

    @property
    def challenges(self) -> tuple[str, ...]:
        """The challenges without the sweep, in order."""
        return tuple(dict.fromkeys(one.of for one in self.schedules))

    def rounds(self) -> tuple[tuple[int, ...], ...]:
        """Positions of the challenges of each point, in order."""
        points: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for place, one in enumerate(self.schedules):
            points.setdefault(tuple(one.at.items()), []).append(place)
        return tuple(map(tuple, points.values()))


class PluginSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The Python plug-in that a run executes, with the user's consent.

    Attributes:
        path: absolute path of its main file.
        digest: SHA-256 over all its Python files.
    """

    path: str
    digest: str


class Plan(RunSettings, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Everything a run is going to do, decided and validated before any node starts; with its settings.

    Attributes:
        variants: in table order; the first is the baseline.
        schedules: the challenges of one fork, in order, fully expanded.
        warmup_challenges: run unmeasured after every boot, before the schedule's own tasks.
        track_digest: SHA-256 over the rendered track.
        corpus: which documents.
        params: values given on the command line for template parameters.
        sources: challenge name -> path, for challenges that were given as files.
        workers: processes that clients work in, on each of the hosts.
        redline: the search that every fork does instead of running its schedule once.
        pin: CPUs of nodes and driver; None to leave them to the kernel.
        stop: when it may end with fewer forks; None for always all of them.
        test_mode: its tasks were cut to see whether they work; its figures mean nothing.
        origin: what every fork begins on: a copy of data that was prepared, or an empty node, whose data the
            challenges make themselves.
        plugin: the track's Python plug-in, where its challenges need it; None when nothing of it is executed.
        evidence: what is collected beside the figures; None for nothing.
        variant_warmups: variant -> its own warm-up challenges, expanded; they run before the common ones.
        settled: challenges that only count requests got counts that warm the JIT up, instead of their own.
        swept: what variants and schedules are, where `sweep` made them; None without one.
        load_hosts: names of the hosts that clients work on; empty for that of benchctl.
        node_hosts: variant -> the host of each of its nodes, or of its only one, empty for that of benchctl;
            without any where all are there.
        micro: the microbenchmarks that are measured instead of nodes; None for nodes.
    """

    variants: tuple[VariantSpec, ...]
    schedules: tuple[Challenge, ...]
    warmup_challenges: tuple[Challenge, ...]
    forks: Annotated[int, about("planned forks of every variant")]
    seed: Annotated[int, about("of the order of variants within blocks, of arrivals and values")]
    heap_mb: Annotated[int, about("heap of every node, MiB")]
    # Its operations are in the record by the digest only.
    track: Annotated[str, about("name of the track")]
    track_digest: str
    corpus: CorpusSpec
    params: dict[str, Any]
    sources: dict[str, str] = msgspec.field(default_factory=dict)
    paired: Annotated[bool, about("blocks are analysed as pairs, as declared before the run")] = False
    workers: int = 1
    redline: RedlineSpec | None = None
    pin: PinSpec | None = None
    stop: StopSpec | None = None
    test_mode: bool = False
    origin: DataOrigin = "prepared"
    plugin: PluginSpec | None = None
    evidence: EvidenceSpec | None = None
    variant_warmups: dict[str, tuple[Challenge, ...]] = msgspec.field(default_factory=dict)
    settled: bool = False
    swept: SweepSpec | None = None
    load_hosts: tuple[str, ...] = ()
    node_hosts: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    micro: MicroSpec | None = None
    # 0 where another tool measured, which does not say.
    segments: int = 1
    ingest_clients: int = 2

    @property
    def challenges(self) -> tuple[str, ...]:
        """Names of the measured challenges, without what a sweep adds to them."""
        return tuple(one.name for one in self.schedules) if self.swept is None else self.swept.challenges

    @property
    def families(self) -> tuple[str, ...]:
        """Names of the variants, without what a sweep makes of them."""
        return tuple(one.name for one in (self.variants if self.swept is None else self.swept.bases))

    @property
    def all_warmups(self) -> tuple[Challenge, ...]:
        """Warm-up challenges of any variant, then the common ones."""
        own = (challenge for challenges in self.variant_warmups.values() for challenge in challenges)
        return (*own, *self.warmup_challenges)

    def warmups_of(self, variant: str) -> tuple[Challenge, ...]:
        """What runs unmeasured after every boot of a variant, in order."""
        return (*self.variant_warmups.get(variant, ()), *self.warmup_challenges)

    def of(self, variant: VariantSpec) -> "Plan":
        """The plan as a variant knows it: on its own number of documents."""
        if variant.documents in (None, self.corpus.documents):
            return self
        corpus = msgspec.structs.replace(self.corpus, documents=variant.documents, digest="")
        return msgspec.structs.replace(self, corpus=corpus)

    def compared_together(self, labels: Iterable[str]) -> list[list[str]]:
        """Variants in groups whose first is the baseline of the others: all of them, or those of a point.

        In a sweep of a single variant the first point is the baseline, and of some variants the first one.
        """
        labels = list(labels)
        if self.swept is None or len(self.swept.bases) == 1 or set(labels) != self.swept.variants.keys():
            return [labels]
        groups: dict[tuple[str, ...], list[str]] = {}
        for label in labels:
            groups.setdefault(tuple(self.swept.variants[label].at.values()), []).append(label)
        return list(groups.values())

    def point(self, variant: str, schedule: int) -> str:
        """Where in a sweep a variant's challenge is: `clients=2,docs=1k`; empty without one."""
        if self.swept is None:
            return ""
        at = self.swept.schedules[schedule].at | self.swept.variants[variant].at
        return ",".join(f"{axis.name}={at[axis.name] or 'none'}" for axis in self.swept.axes)

    def sweeps(self, parameter: str) -> bool:
        """Whether points differ in a parameter, be it of all challenges or of one."""
        names = [] if self.swept is None else [axis.name for axis in self.swept.axes]
        return any(re.split("[:.]", name)[-1] == parameter for name in names)

    def is_extra(self, block: int) -> bool:
        """Whether the forks of a block are for evidence alone, and enter no comparison."""
        return block in self.extra_blocks

    @property
    def extra_blocks(self) -> range:
        """The blocks that are there for evidence alone."""
        if self.evidence is None:
            return range(0)
        first = self.forks if self.evidence.first is None else self.evidence.first
        return range(first, first + self.evidence.extra_forks)

    @property
    def evidence_kinds(self) -> tuple[EvidenceKind, ...]:
        """Of evidence that some of its forks collect."""
        return () if self.evidence is None else self.evidence.kinds

    def evidence_in(self, block: int) -> tuple[EvidenceKind, ...]:
        """What is collected in the forks of a block."""
        if self.evidence is None or (self.evidence.extra_forks and not self.is_extra(block)):
            return ()
        return self.evidence.kinds


# Which task of a plan a name means: `TASK` or `CHALLENGE/TASK`, numbered where it repeats.
#
# Numbers count from 1: `CHALLENGE#2` is the second time that the challenge runs, `TASK#2` the second task of
# that label in its challenge.


def task_named(plan: Plan, name: str) -> Place:
    """Find the one task that a name, `[CHALLENGE[#N]/]TASK[#N]`, means; both parts may hold slashes.

    Raises:
        UsageError: there is none, or there are several.
    """
    parts = name.split("/")
    readings = [("/".join(parts[:cut]), "/".join(parts[cut:])) for cut in range(1, len(parts))]
    found = dict.fromkeys(
        place
        for challenge, task in (("", name), *(one for one in readings if one[0]))
        for place in _fitting(plan, _schedules(plan, challenge), task)
    )
    if not found:
        ways = [way for place in _places(plan) for way in (_label(plan, place), _way(plan, place))]
        raise UsageError(f"there is no task '{name}'", hint=suggestion(name, ways))
    return _only(plan, [*found], name)


def task_of_challenge(plan: Plan, challenge: str, task: str, called: str) -> Place:
    """Find the one task by `CHALLENGE[#N]`, empty for any, and `TASK[#N]`; messages call it `called`.

    Raises:
        UsageError: there is none, or there are several.
    """
    schedules = _schedules(plan, challenge)
    if not schedules:
        names = (one.name for one in plan.schedules)
        raise UsageError(f"'{called}': no challenge '{challenge}'", hint=suggestion(challenge, names))
    found = _fitting(plan, schedules, task)
    if not found:
        labels = (_label(plan, place) for place in _places(plan) if place[0] in schedules)
        raise UsageError(f"'{called}': no task '{task}'", hint=suggestion(task, labels))
    return _only(plan, found, called)


def _only(plan: Plan, found: Sequence[Place], called: str) -> Place:
    if len(found) > 1:
        ways = ", ".join(_way(plan, place) for place in found)
        raise UsageError(f"'{called}' is {len(found)} tasks", hint=f"say which: {ways}")
    return found[0]


def _places(plan: Plan) -> Iterator[Place]:
    for schedule, challenge in enumerate(plan.schedules):
        yield from ((schedule, task) for task in range(len(challenge.schedule)))


def _schedules(plan: Plan, challenge: str) -> list[int]:
    """Positions of the challenges of this name, or all if it is empty."""
    names = [one.name for one in plan.schedules]
    return [place for place in range(len(names)) if not challenge or _means(challenge, names, place)]


def _fitting(plan: Plan, schedules: Sequence[int], task: str) -> list[Place]:
    found = []
    for schedule in schedules:
        labels = [one.label for one in plan.schedules[schedule].schedule]
        found += [(schedule, place) for place in range(len(labels)) if _means(task, labels, place)]
    return found


def _means(text: str, names: Sequence[str], place: int) -> bool:
    """Whether a text is the name at a place, or that with its number; a unique one is number 1."""
    name = names[place]
    # A name may itself end like a number.
    return text == name or (text not in names and text == f"{name}#{names[: place + 1].count(name)}")


def _way(plan: Plan, place: Place) -> str:
    """An unambiguous name of a task."""
    schedule, task = place
    labels = [one.label for one in plan.schedules[schedule].schedule]
    return f"{_numbered([one.name for one in plan.schedules], schedule)}/{_numbered(labels, task)}"


def _numbered(names: Sequence[str], place: int) -> str:
    name = names[place]
    return name if names.count(name) == 1 else f"{name}#{names[: place + 1].count(name)}"


def _label(plan: Plan, place: Place) -> str:
    return plan.schedules[place[0]].schedule[place[1]].label
