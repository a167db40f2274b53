"""Plan of a run, decided and validated before any node starts."""

import hashlib
import random
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final, Literal, get_args

import msgspec

from benchctl.errors import UsageError, suggestion
from benchctl.quantities import DURATION
from benchctl.spec import (
    DEFAULT_BUDGET_S,
    DEFAULT_FORKS,
    MOST_FORKS,
    EvidenceEntry,
    EvidenceKind,
    RunSettings,
)
from benchctl.track.library import TrackSource
from benchctl.track.model import Challenge, GeneratorName
from benchctl.track.pollution import POLLUTED

# Sets of CPUs as Linux writes them: `0-2,5`.

_PART = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+))?")
# The kernel's own bound is below that.
_MOST = 1 << 16


def parse_cpus(text: str) -> tuple[int, ...]:
    """Return the numbers of a list, ascending, each once.

    Raises:
        ValueError: If the text is not a list of CPUs.
    """
    found: set[int] = set()
    for part in text.strip().split(","):
        match = _PART.fullmatch(part)
        cpus = range(int(match["first"]), int(match["last"] or match["first"]) + 1) if match else range(0)
        if not cpus or cpus.stop > _MOST:
            raise ValueError(f"'{part}' is neither a CPU nor a range of CPUs")
        found.update(cpus)
    return tuple(sorted(found))


def cpu_list(cpus: Iterable[int]) -> str:
    """Return a set of CPUs as a list of ranges."""
    numbered = enumerate(sorted(set(cpus)))
    ranges = [[cpu for _, cpu in own] for _, own in groupby(numbered, lambda pair: pair[1] - pair[0])]
    return ",".join(str(own[0]) if len(own) == 1 else f"{own[0]}-{own[-1]}" for own in ranges)


EngineName = Literal["elasticsearch", "opensearch", "jvm"]
"""Engine of a variant; `jvm` is for microbenchmarks, which run in a separate JVM."""
DataOrigin = Literal["prepared", "empty"]
StartMode = Literal["direct", "script"]

NAMED_DISTRIBUTIONS: Final = ("official", "min")
"""Distributions of the engines' makers, by the names that `distribution:` takes; `min` is OpenSearch's."""
BUNDLED: Final = "bundled"
"""Name of the JDK that a distribution brings."""

Place = tuple[int, int]
"""(schedule, task): a task's position in a fork."""


class TargetSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A cluster that runs already, as the user named it; how to connect to it is never kept."""

    hosts: tuple[str, ...]
    # Absolute path of the file of `--targets` that has the rest; None where the command line named it.
    file: str | None = None
    fill: bool = False  # whether the track's index may be made and filled where there is none
    writes: bool = False  # whether a challenge may make indices there, which are removed after every fork


class VariantSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A variant, as the user asked for it."""

    name: str  # how tables call it, such as `es` or `es@8.19.0`
    engine: EngineName
    version: str  # the version to fetch; what a given distribution really is, is checked at its first start
    # Path or URL of an archive or folder, or a name of NAMED_DISTRIBUTIONS; None for Maven Central.
    distribution: str | None = None
    # Major version, path of a Java home, or BUNDLED; None for the default.
    jdk: str | None = None
    jvm_flags: tuple[str, ...] = ()  # further flags, in order, behind the common ones
    settings: dict[str, Any] = {}
    # The running cluster that it is, with the engine and version found there; None for nodes that benchctl
    # starts.
    target: TargetSpec | None = None
    heap_mb: int | None = None  # heap of its nodes, MiB; None for the plan's
    environment: dict[str, str] = {}
    index_settings: dict[str, Any] = {}
    # Of fields in the track's index: `message.type` -> its value; None removes it.
    mappings: dict[str, Any] = {}
    operations: dict[str, dict[str, Any]] = {}  # name -> the body that takes the place of the track's
    # That take the place of jars in `lib/`: paths, Maven coordinates `group:artifact:version`, or
    # `patched:FILE.diff` for Lucene's with that diff, or the name of a shipped one; after
    # `patched:recompiled:`, the same classes unchanged.
    jars: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    warmups: tuple[str, ...] = ()
    # Whether its nodes are started by the server's own command line or by the engine's script.
    start: StartMode = "direct"
    documents: int | None = None  # generated documents of its prepared index; None for the plan's
    # Engine and version that fill its prepared index, such as `es@7.17.29`; None for its own.
    index_from: str | None = None

    @property
    def of_index(self) -> dict[str, Any]:
        """Changes of the track's index as written: `index:codec`, `mapping:message.type`."""
        return {
            **{f"index:{name.removeprefix('index.')}": value for name, value in self.index_settings.items()},
            **{f"mapping:{name}": "null" if own is None else own for name, own in self.mappings.items()},
        }

    @property
    def java(self) -> str | None:
        """The JDK, by default that of a named distribution; None for benchctl's own runtime."""
        return self.jdk or (BUNDLED if self.distribution in NAMED_DISTRIBUTIONS else None)

    @property
    def place(self) -> str | None:
        """Path or URL of its distribution; None if that is found by the version."""
        return None if self.distribution in NAMED_DISTRIBUTIONS else self.distribution


class CorpusFile(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True, kw_only=True
):
    """A file of documents that benchctl did not generate."""

    path: str
    documents: int
    held: int
    raw_bytes: int
    sha256: str
    corpus: str = ""  # name of its corpus in the track; empty for a file of the command line
    # Where its documents go; None when their own lines say so, or a data stream is meant.
    index: str | None = None
    data_stream: str | None = None
    type: str | None = None
    has_actions: bool = False


class CorpusSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """The documents: generated ones, whose digest follows from the others; or those of files."""

    seed: int  # of generated ones; 0 for files
    documents: int
    generator_version: int  # which generator made them; 0 for files
    digest: str  # SHA-256 over all documents; empty while it is not known
    files: tuple[CorpusFile, ...] = ()  # that hold them; empty for generated ones
    generator: GeneratorName = "big5"


class RedlineSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True
):
    """A search for the highest rate at which an objective is still met."""

    operation: str
    percentile: float  # which percentile of latency the objective bounds, such as 90
    limit_ns: int
    clients: int  # concurrent; requests that find all of them busy wait, and their latency says so
    schedule: Literal["deterministic", "poisson"]  # how arrivals are spaced
    warm_up_s: float
    settle_s: float
    step_s: float
    tolerance: float  # ratio of neighbouring rates - 1: how exactly the answer is wanted
    max_per_s: float | None = None  # no higher rate is tried; None for no bound


class PinSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The CPUs of nodes and driver; the two have none in common."""

    node: tuple[int, ...]
    driver: tuple[int, ...]


class MicroSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Microbenchmarks of JMH, which a plan may measure instead of nodes."""

    source: str
    digest: str  # SHA-256 of what is there
    # Maven coordinates of what it stands on, without what their POMs need besides.
    dependencies: tuple[str, ...] = ()
    release: int = 0  # of Java that it is compiled for; 0 for a jar, and until that is known
    include: str = ""  # regular expression that names of benchmarks match; empty for all
    # Values of their parameters that were asked for, where these are not the benchmarks' own.
    params: dict[str, tuple[str, ...]] = {}
    threads: tuple[int, ...] = ()  # numbers of threads that were asked for; empty for the benchmarks' own
    arguments: tuple[str, ...] = ()
    timeout_s: float = 600.0
    # Coordinates of jars off the class path; NAME's path is the system property `benchctl.NAME`.
    apart: dict[str, str] = {}


FIRST_LOOK = 5
"""Pairs before the first interim analysis: for an effect's size; the test itself holds from two on."""


class StopSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The end of a run before it has all of its forks: decided after whole blocks."""

    # Seconds for the forks, from the start of the first; a block that is not expected to fit is not begun.
    # None for as long as it takes.
    budget_s: float | None = None
    least_forks: int = FIRST_LOOK  # of every variant, whatever the verdicts; a budget may cut it short
    least_blocks: int = 1  # that are run whatever the budget
    decided: bool = False  # end when every judged effect is faster, slower, different or equivalent
    # The difference that does not matter, as a ratio - 1, of every metric; None for each metric's own.
    margin: float | None = None
    # (schedule, task, metric) of the effects that have a say; empty for all.
    only: tuple[tuple[int, int, str], ...] = ()

    @property
    def is_length(self) -> bool:
        """Return whether time alone decides, whatever the figures are."""
        return self.budget_s is not None and not self.decided

    def blocks_in(self, block_s: float, index_builds: int) -> int:
        """Return how many blocks of so many seconds are run in the budget; every index build has as many."""
        return self.whole_blocks(int((self.budget_s or 0.0) // block_s), index_builds)

    def whole_blocks(self, fitting: int, index_builds: int) -> int:
        """Return how many blocks are run where so many fit: at least the least, as many of every build."""
        least = -(-self.least_blocks // index_builds)
        return index_builds * max(least, fitting // index_builds)

    def length_text(self, most: int) -> str:
        """Return the length of a run of at most so many forks that time ends, for readers.

        Such as `forks for 3m, at least 6 and at most 50 per variant`.
        """
        least = f"at least {self.least_blocks} and " if self.least_blocks > 1 else ""
        return f"forks for {DURATION.text(self.budget_s or 0.0)}, {least}at most {most} per variant"


DEFAULT_LENGTH: Final = StopSpec(
    budget_s=DEFAULT_BUDGET_S, least_forks=DEFAULT_FORKS, least_blocks=DEFAULT_FORKS
)
"""Of a run whose length nobody gave."""


class EvidenceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The evidence that is collected beside the figures, to see why they are as they are."""

    kinds: tuple[EvidenceKind, ...]
    # Forks of every variant that it is collected in, behind the plan's own, which then stay plain; their
    # figures enter no comparison. 0 to collect it in all of the plan's own forks, which are compared with
    # each other, since all of them bear its cost.
    extra_forks: int = 0
    first: int | None = None  # block of the first of these; None for right behind the plan's own

    @classmethod
    def of(cls, entry: EvidenceEntry | None) -> "EvidenceSpec | None":
        """Return what a form asks for; None for nothing."""
        if entry is None:
            return None
        return cls(tuple(sorted(set(entry.kinds))), 0 if entry.forks == "all" else entry.forks)


class Axis(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The axis of a sweep."""

    name: str  # of a parameter, `docs`, or an option of variants such as `heap` or `setting:KEY`
    values: tuple[str, ...]  # as written; by size where they have one, else in the order of the command line
    # Of the values, in one unit; empty for flags, names and what is not more than 0.
    numbers: tuple[float, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The values for readers: an empty one stands for what is there without."""
        return tuple(value or "none" for value in self.values)


History = Literal["fresh", "scheduled", "polluted"]
"""Tasks that a node ran before: none; those of its challenge; only those that pollute type profiles.

Where it is `fresh` or `polluted`, every measured step has a node of its own.
"""
HISTORIES: Final[tuple[History, ...]] = get_args(History)
HISTORY: Final = "history"
"""Name of the axis."""


class Swept(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A variant or a challenge of a sweep: its point."""

    of: str  # its name without the sweep
    # Name of an axis -> its value here; for the axes that are about variants, or about challenges.
    at: dict[str, str] = {}


class SweepSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A sweep: variants and challenges at every point of an axis."""

    axes: tuple[Axis, ...]  # one; none of a run that is compared at one point
    bases: tuple[VariantSpec, ...]  # the variants without the sweep, in table order
    variants: dict[str, Swept]  # by the name that they have in the run
    schedules: tuple[Swept, ...]  # by position in the plan
    # Operations that no table shows: where every task has a node, they run on that of the task after them.
    preparing: tuple[str, ...] = ()

    @property
    def challenges(self) -> tuple[str, ...]:
        """The challenges without the sweep, in order."""
        return tuple(dict.fromkeys(schedule.of for schedule in self.schedules))

    def rounds(self) -> tuple[tuple[int, ...], ...]:
        """Return positions of the challenges of each point, in order."""
        points: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for place, one in enumerate(self.schedules):
            points.setdefault(tuple(one.at.items()), []).append(place)
        return tuple(map(tuple, points.values()))


class PluginSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The Python plug-in that a run executes, with the user's consent."""

    path: str
    digest: str  # SHA-256 over all its Python files


class Plan(RunSettings, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Everything a run is going to do, decided and validated before any node starts; with its settings."""

    variants: tuple[VariantSpec, ...]  # in table order; the first is the baseline
    schedules: tuple[Challenge, ...]  # the challenges of one fork, in order, fully expanded
    warmup_challenges: tuple[Challenge, ...]
    forks: int  # planned forks of every variant
    seed: int  # of the order of variants within blocks, of arrivals and values
    heap_mb: int  # heap of every node, MiB
    track: str  # its name; its operations are in the record by the digest only
    track_digest: str  # SHA-256 over the rendered track
    # The repository that `track` was checked out of; None without one.
    track_source: TrackSource | None = None
    corpus: CorpusSpec
    params: dict[str, Any]
    # What followed `benchctl` on the command line, as typed; empty where no command asked for it.
    words: tuple[str, ...] = ()
    workers: int = 1
    redline: RedlineSpec | None = None
    pin: PinSpec | None = None  # CPUs of nodes and driver; None to leave them to the kernel
    stop: StopSpec | None = None  # when it may end with fewer forks; None for always all of them
    test_mode: bool = False  # its tasks were cut to see whether they work; its values mean nothing
    # What every fork begins on: a copy of data that was prepared, or an empty node, whose data the
    # challenges make themselves.
    origin: DataOrigin = "prepared"
    # The track's Python plug-in, where its challenges need it; None when nothing of it is executed.
    plugin: PluginSpec | None = None
    evidence: EvidenceSpec | None = None  # what is collected beside the figures; None for nothing
    # Variant -> its own warm-up challenges, expanded; they run before the common ones.
    variant_warmups: dict[str, tuple[Challenge, ...]] = msgspec.field(default_factory=dict)
    # What `polluted` nodes run unmeasured after every boot; None without such a history.
    pollution: Challenge | None = None
    settled: bool = False
    # What variants and schedules are, where `sweep` made them; None without one.
    swept: SweepSpec | None = None
    load_hosts: tuple[str, ...] = ()  # names of the hosts that clients work on; empty for that of benchctl
    # Why variants are measured one after another; empty where those of a block are measured at the same time.
    apart: str = ""
    micro: MicroSpec | None = None  # the microbenchmarks that are measured instead of nodes; None for nodes
    segments: int = 1  # 0 of microbenchmarks, as `ingest_clients`
    ingest_clients: int = 2

    @property
    def digest(self) -> str:
        """SHA-256 over all of it: its track and challenges as rendered, and their settings."""
        # By which revision a track was asked for decides nothing: the path of its checkout has the commit.
        decisive = msgspec.structs.replace(self, track_source=None, words=())
        return hashlib.sha256(msgspec.json.encode(decisive, order="sorted")).hexdigest()

    @property
    def together(self) -> bool:
        """Return whether variants of a block are measured at the same time."""
        return len(self.variants) > 1 and not self.apart

    @property
    def way(self) -> str:
        """Tell whether variants take turns, for readers; empty for one."""
        if self.together:
            return "the nodes of all variants are up at the same time, and take turns"
        several = len(self.variants) > 1
        return f"variants are measured one after another: {self.apart}" if several else ""

    @property
    def challenges(self) -> tuple[str, ...]:
        """Names of the measured challenges, without what a sweep adds to them."""
        return (
            tuple(schedule.name for schedule in self.schedules)
            if self.swept is None
            else self.swept.challenges
        )

    @property
    def families(self) -> tuple[str, ...]:
        """Names of the variants, without what a sweep makes of them."""
        return tuple(variant.name for variant in (self.variants if self.swept is None else self.swept.bases))

    @property
    def all_warmups(self) -> tuple[Challenge, ...]:
        """Warm-up challenges of any variant, then the common ones, then the pollution."""
        own = (challenge for challenges in self.variant_warmups.values() for challenge in challenges)
        return (*own, *self.warmup_challenges, *([self.pollution] if self.pollution else []))

    def warmups_of(self, variant: str, schedule: int) -> tuple[Challenge, ...]:
        """Return the challenges that run unmeasured after boots of a variant for a challenge, in order."""
        if self.pollution is not None and self.history(schedule) == "polluted":
            return (self.pollution,)
        return (*self.variant_warmups.get(variant, ()), *self.warmup_challenges)

    def history(self, schedule: int) -> History | None:
        """Return the history of a challenge's tasks; None if histories are not swept."""
        at = {} if self.swept is None else self.swept.schedules[schedule].at
        history: History | None = msgspec.convert(at.get(HISTORY), History | None)
        return history

    @property
    def polluting(self) -> frozenset[str]:
        """Operations of warm-ups that are derived from the track: those that a node refuses are left out."""
        challenges = [challenge for challenge in self.all_warmups if challenge.name == POLLUTED]
        names = (task.operation for challenge in challenges for task in challenge.schedule)
        # A user's own challenge of that name has the track's operations, which may be measured as well.
        return frozenset(name for name in names if name.startswith(f"{POLLUTED}:"))

    def of(self, variant: VariantSpec) -> "Plan":
        """Return the plan with a variant's own number of documents."""
        if variant.documents in (None, self.corpus.documents):
            return self
        corpus = msgspec.structs.replace(self.corpus, documents=variant.documents, digest="")
        return msgspec.structs.replace(self, corpus=corpus)

    def compared_together(self, labels: Iterable[str]) -> list[list[str]]:
        """Return groups of variants, baseline first: all of them, or those of a point.

        In a sweep of a single variant the first point is the baseline, and of some variants the first one.
        """
        labels = list(labels)
        if self.swept is None or len(self.swept.bases) == 1 or set(labels) != self.swept.variants.keys():
            return [labels]
        groups: dict[tuple[str, ...], list[str]] = {}
        for label in labels:
            groups.setdefault(tuple(self.swept.variants[label].at.values()), []).append(label)
        return list(groups.values())

    @property
    def by_time(self) -> bool:
        """Return whether time alone decides how many forks there are."""
        return self.stop is not None and self.stop.is_length and self.forks == MOST_FORKS

    def is_extra(self, block: int) -> bool:
        """Return whether the forks of a block are for evidence alone, and enter no comparison."""
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
        """Return the evidence collected in the forks of a block."""
        if self.evidence is None or (self.evidence.extra_forks and not self.is_extra(block)):
            return ()
        return self.evidence.kinds


def task_named(plan: Plan, name: str, called: str = "") -> Place:
    """Find the one task that a name, `[CHALLENGE[#N]/]TASK[#N]`, means; both parts may hold slashes.

    Numbers count from 1: `CHALLENGE#2` is the second time that the challenge runs, `TASK#2` the second task
    of that label in its challenge.

    Args:
        plan: that has the task.
        name: of the task.
        called: what messages call it instead.

    Raises:
        UsageError: If no task matches, or several do.
    """
    challenges = [challenge.name for challenge in plan.schedules]
    names: dict[Place, list[str]] = {}
    for schedule, challenge in enumerate(plan.schedules):
        labels = [task.label for task in challenge.schedule]
        for place in range(len(labels)):
            tasks = _names_at(labels, place)
            ways = [f"{first}/{task}" for first in _names_at(challenges, schedule) for task in tasks]
            names[schedule, place] = [*tasks, *ways]
    found = [place for place, own in names.items() if name in own]
    if not found:
        labels = [task.label for challenge in plan.schedules for task in challenge.schedule]
        known = dict.fromkeys([own[-1] for own in names.values()] if "/" in name else labels)
        raise UsageError(f"unknown task '{called or name}'", hint=suggestion(name, known))
    if len(found) > 1:
        each = ", ".join(names[place][-1] for place in found)
        raise UsageError(f"'{called or name}' is {len(found)} tasks", hint=f"specify one: {each}")
    return found[0]


def _names_at(names: Sequence[str], place: int) -> list[str]:
    """A name as it is, and with its number among those of one name; the last is unambiguous."""
    name = names[place]
    numbered = f"{name}#{names[: place + 1].count(name)}"
    return [name, numbered] if names.count(name) > 1 else [numbered, name]


# The order of forks in a block, and the node starts of a fork with their steps: random, and reproducible.

Step = tuple[Place, ...]
"""Tasks that run concurrently: one, or those of a parallel element."""


def block_order(plan: Plan, block: int, run: int = 0) -> tuple[VariantSpec, ...]:
    """The order of variants in one block: random, but reproducible; `run` is its number in a study."""
    return tuple(sorted(plan.variants, key=lambda spec: place_in_block(plan.seed, block, run, spec.name)))


def place_in_block(seed: int, block: int, run: int, variant: str) -> float:
    """Return the sort key of a fork in its block, of the run of that number among those of the block."""
    return random.Random(f"{seed}/{block}/{run}/{variant}").random()  # noqa: S311 - reproducible, not secret


def boots(plan: Plan, block: int = 0) -> tuple[tuple[Step, ...], ...]:
    """Group the steps by node start, in order, by the restart policy; `task` restarts per step.

    So do the histories `fresh` and `polluted`, per step that tables show.
    The points of a sweep come in random order, the same for all variants of a block; so do tasks that only
    differ in their clients, and the steps of a challenge that asks for it.
    """
    dice = random.Random(f"{plan.seed}/{block}/points")  # noqa: S311 - reproducible, not secret
    order = list(range(len(plan.schedules)))
    if plan.swept is not None:
        rounds = list(plan.swept.rounds())
        dice.shuffle(rounds)
        order = [schedule for round_ in rounds for schedule in round_]
    by_schedule = [
        tuple(
            tuple((schedule, task) for task in step)
            for step in _shuffled_steps(plan.schedules[schedule], dice)
        )
        for schedule in order
    ]
    steps = tuple(step for own in by_schedule for step in own)
    if plan.restart == "never":
        return (steps,)
    if plan.restart == "task" or plan.micro is not None:
        return tuple((step,) for step in steps)
    return tuple(
        together
        for schedule, own in zip(order, by_schedule, strict=True)
        for together in ([own] if plan.history(schedule) in {None, "scheduled"} else _apart(plan, own))
    )


def _apart(plan: Plan, steps: Iterable[Step]) -> list[tuple[Step, ...]]:
    """Return steps that tables show, each with those that prepare it; the last go with the one before."""
    preparing = () if plan.swept is None else plan.swept.preparing
    found: list[tuple[Step, ...]] = []
    waiting: tuple[Step, ...] = ()
    for step in steps:
        waiting = (*waiting, step)
        if any(plan.schedules[place].schedule[task].operation not in preparing for place, task in step):
            found.append(waiting)
            waiting = ()
    return [*found[:-1], (*found[-1], *waiting)] if found else [waiting]


def boot_of(plan: Plan, block: int, place: Place) -> int:
    """Return the number of the node start at which a task runs."""
    starts = enumerate(boots(plan, block))
    return next(number for number, steps in starts if any(place in step for step in steps))


def _shuffled_steps(challenge: Challenge, dice: random.Random) -> list[tuple[int, ...]]:
    """The steps of a challenge, the points of each of its curves in random order among their places."""
    steps = list(challenge.steps)
    if challenge.order == "random":
        dice.shuffle(steps)
        return steps
    tasks = challenge.schedule
    for curve in dict.fromkeys(task.swept for task in tasks if task.swept):
        places = [place for place, step in enumerate(steps) if tasks[step[0]].swept == curve]
        points = [steps[place] for place in places]
        dice.shuffle(points)
        for place, point in zip(places, points, strict=True):
            steps[place] = point
    return steps
