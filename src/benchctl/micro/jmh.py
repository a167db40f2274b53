"""JMH: microbenchmarks compiled, listed, and each run in a separate JVM."""

import hashlib
import json
import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import msgspec
import numpy as np

from benchctl.disk import disk_errors, read_file, staging
from benchctl.engine.distribution import fetch_published, needed_jars
from benchctl.engine.jdk import Jdk, provide_jdk, run_java
from benchctl.engine.maven import Coordinates, digest
from benchctl.engine.patched_lucene import GROUP, Library, build_diff, fetch_compiler
from benchctl.engine.process import Command, NodeProcess, describe_exit, last_lines
from benchctl.engine.variant import PATCHED, RECOMPILED, diff_path, part_kind
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.network import Progress
from benchctl.results.figures import OPERATIONS, Quantiles, TaskSummary
from benchctl.results.model import EngineFacts, IndexFacts
from benchctl.results.plan import MicroSpec, VariantSpec
from benchctl.track.model import Task
from benchctl.yaml_file import read_typed

_VERSION = "1.37"
_RUNTIME = (
    f"org.openjdk.jmh:jmh-core:{_VERSION}",
    "net.sf.jopt-simple:jopt-simple:5.0.4",
    "org.apache.commons:commons-math3:3.6.1",
)
_PROCESSOR = f"org.openjdk.jmh:jmh-generator-annprocess:{_VERSION}"
_MAIN = "org.openjdk.jmh.Main"
_LUCENE_CORE = f"{GROUP}:lucene-core"
_FORMAT = "1"
_DEPENDS = re.compile(r"^\s*//\s*DEPS\s+(?P<named>\S.*?)\s*$", re.MULTILINE)
_COORDINATES = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+", re.ASCII)
_PARAM = re.compile(r'\s+param "(?P<name>[^"]+)" = \{(?P<values>.*)\}\s*')
# What benchctl itself tells JMH.
_OURS = ("-f", "-rf", "-rff", "-o", "-jvm", "-p", "-t", "-l", "-lp", "-lprof", "-lrf", "-h", "-foe", "-v")
_TAIL_LINES = 400
_SHOWN_LINES = 6
LEAST_MAJOR = 8
"""Of Java, for which benchmarks are compiled."""
_MOST_RESULT_BYTES = 64 << 20
_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10, "hr": 3.6e12, "day": 8.64e13}


class _Beside(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A YAML file beside the sources; see `MicroSpec`."""

    dependencies: tuple[str, ...] = ()
    apart: dict[str, str] = {}


def read_source(path: Path) -> MicroSpec:
    """Read what a Java file, a folder of such, or a jar of benchmarks declares.

    Dependencies are Maven coordinates, in comments (`//DEPS group:artifact:version`, several with spaces in
    between) or under `dependencies` in a YAML file of the same name beside it (`micro.yml` in a folder).

    Raises:
        UsageError: If the source does not exist, or coordinates are invalid.
    """
    path = path.absolute()
    if not path.exists():
        raise UsageError(f"no such file: {path}", hint="give a Java file, a directory of them, or a jar")
    files = sources_of(path)
    with disk_errors(f"read {path}"):
        texts = [read_file(file).decode(errors="replace") for file in files]
        content = hashlib.sha256()
        for file in files or [path]:
            content.update(f"{file.name}\0".encode() + read_file(file, _MOST_RESULT_BYTES))
    dependencies = [
        name for text in texts for match in _DEPENDS.finditer(text) for name in match["named"].split()
    ]
    beside = path / "micro.yml" if path.is_dir() else path.with_suffix(".yml")
    declared = read_typed(beside, _Beside).value if beside.is_file() else _Beside()
    dependencies += declared.dependencies
    for name in (*dependencies, *declared.apart.values()):
        if not _COORDINATES.fullmatch(name):
            raise UsageError(
                f"{path}: '{name}' is not a Maven coordinate",
                hint="write //DEPS group:artifact:version, such as org.apache.lucene:lucene-core:9.8.0",
            )
    return MicroSpec(str(path), content.hexdigest(), tuple(dict.fromkeys(dependencies)), apart=declared.apart)


def sources_of(path: Path) -> list[Path]:
    """Return the Java files of a source; none of a jar.

    Raises:
        UsageError: If the source is neither Java nor a jar.
    """
    if path.is_dir():
        files = sorted(path.rglob("*.java"))
        if not files:
            raise UsageError(f"{path} has no Java file", hint="give a Java file, a directory, or a jar")
        return files
    if path.suffix not in {".java", ".jar"}:
        raise UsageError(f"{path} is neither Java nor a jar", hint="its name has to end in .java or .jar")
    return [path] if path.suffix == ".java" else []


def check_arguments(words: Sequence[str]) -> None:
    """Refuse arguments of JMH that benchctl sets.

    Raises:
        UsageError: If an argument is reserved.
    """
    instead = {"-p": "give --param", "-t": "give --threads", "-f": "give --forks"}
    for word in words:
        if word in _OURS or word.startswith("-jvm"):
            hint = "give it to a variant: jvm:FLAG, jdk:JDK" if word.startswith("-jvm") else "remove it"
            raise UsageError(f"--jmh {word}: benchctl sets that itself", hint=instead.get(word, hint))


@dataclass(frozen=True)
class MicroSubject:
    """A variant of microbenchmarks that is ready to run."""

    spec: VariantSpec  # what was asked for
    jdk: Jdk  # that its JVMs are
    class_path: tuple[Path, ...]  # JMH, the benchmarks, and what they stand on, in order
    # name -> SHA-256 of what a variant has otherwise than the others
    jars: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)  # of its JVMs, by name
    builds: tuple[IndexFacts, ...] = ()
    index_facts: IndexFacts | None = None

    @property
    def facts(self) -> EngineFacts:
        """Return what the variant resolved to."""
        return EngineFacts(
            variant=self.spec.name,
            version=self.jdk.version,
            build="",
            lucene=next((match[1] for path in self.class_path if (match := _lucene(path))), ""),
            archive_sha256="",
            jdk=f"{self.jdk.vendor} {self.jdk.version}",
            jvm_flags=self.spec.jvm_flags,
            modules=(),
            jars=dict(self.jars),
        )

    def changes(self, known: EngineFacts) -> list[str]:
        """Return what has changed since a run began, as text."""
        pairs = (("JDK", known.jdk, self.facts.jdk), ("jars", known.jars, self.facts.jars))
        name = self.spec.name
        return [f"the {what} of {name} were {was}, are {now}" for what, was, now in pairs if was != now]


def _lucene(path: Path) -> re.Match[str] | None:
    return re.search(r"lucene-core-(\d[\w.]*\d)(?:-[\w-]*)?\.jar$", path.name)


@dataclass(frozen=True)
class Workbench:
    """The shared part of all variants of a source: its classes, and jars by their coordinates."""

    home: Home
    jdk: Jdk
    progress: Progress

    def jar(self, coordinates: str) -> Path:
        """Return a jar of the Maven repository.

        Raises:
            UsageError: If there is no such jar.
            BenchctlError: If the jar cannot be downloaded.
        """
        group, artifact, version = coordinates.split(":")
        return fetch_published(self.home, Coordinates(group, artifact), version, self.progress).path

    def classes(self, micro: MicroSpec) -> Path:
        """Return the benchmarks as a jar or a folder of classes, compiled with what JMH generates.

        Raises:
            BenchctlError: If the benchmarks do not compile, with the compiler's words.
        """
        source = Path(micro.source)
        files = sources_of(source)
        if not files:
            return source
        class_path = [
            self.jar(dependency)
            for dependency in (*_RUNTIME, _PROCESSOR, *needed_jars(self.home, micro.dependencies))
        ]
        compiler = fetch_compiler(self.home, self.jdk, self.progress)
        parts = (_FORMAT, micro.digest, *micro.dependencies, str(micro.release), compiler.sha256)
        final = self._folder(micro, *parts)
        if not final.is_dir():
            with staging(final.parent, f"compile {source}") as folder:
                out, generated = folder / "classes", folder / "generated"
                out.mkdir()
                generated.mkdir()
                compiler.compile(files, class_path, micro.release, out, name=source.name, generated=generated)
                if not (out / "META-INF" / "BenchmarkList").is_file():
                    raise UsageError(
                        f"{source} has no benchmark", hint="mark a public method with @Benchmark"
                    )
                out.rename(final)
        return final

    def subject(self, spec: VariantSpec, micro: MicroSpec, classes: Path) -> MicroSubject:
        """Prepare a variant: its jars precede the others, or replace other versions.

        Raises:
            UsageError: If a jar does not exist.
            BenchctlError: If a jar cannot be downloaded or patched.
        """
        named = {dependency.rsplit(":", 1)[0]: dependency for dependency in micro.dependencies}
        files: list[Path] = []
        patches: list[str] = []
        for text in spec.jars:
            match part_kind(text):
                case "maven":
                    place = text.rsplit(":", 1)[0]
                    named = {**named, place: text} if place in named else {place: text, **named}
                case "patched":
                    patches.append(text)
                case _:
                    if not Path(text).is_file():
                        raise UsageError(f"variant '{spec.name}': no such jar: {text}")
                    files.append(Path(text))
        by_artifact = {
            jar.rsplit(":", 1)[0]: self.jar(jar) for jar in needed_jars(self.home, tuple(named.values()))
        }
        for text in patches:
            by_artifact |= self._patched(by_artifact, text)
        own = {*files, *by_artifact.values()}.difference(
            map(self.jar, needed_jars(self.home, micro.dependencies))
        )
        return MicroSubject(
            spec,
            provide_jdk(self.home, spec.jdk),
            (*files, classes, *map(self.jar, _RUNTIME), *by_artifact.values()),
            {path.name: digest(path, "sha256") for path in sorted(own)},
            {
                "benchctl.kept": str(self._kept(micro)),
                **{f"benchctl.{name}": str(self.jar(library)) for name, library in micro.apart.items()},
            },
        )

    def _folder(self, micro: MicroSpec, *parts: str) -> Path:
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        return self.home.artifacts / f"micro-{Path(micro.source).stem}-{key}"

    def _kept(self, micro: MicroSpec) -> Path:
        """Return the folder of what takes long to make, until sources or dependencies change."""
        folder = self._folder(micro, micro.digest, *micro.dependencies, *micro.apart.values())
        folder = folder.with_name(f"{folder.name}-kept")
        with disk_errors(f"make {folder}"):
            folder.mkdir(exist_ok=True)
        return folder

    def _patched(self, by_artifact: Mapping[str, Path], text: str) -> dict[str, Path]:
        """The jars that replace Lucene's, by their coordinates."""
        original = by_artifact.get(_LUCENE_CORE)
        lucene = None if original is None else _lucene(original)
        diff = diff_path(text)
        if lucene is None or diff is None:
            raise UsageError(
                f"{text} patches Lucene, which is not a dependency",
                hint=f"name it: //DEPS {_LUCENE_CORE}:9.8.0",
            )
        modules = {
            name.removeprefix(f"{GROUP}:"): jar
            for name, jar in by_artifact.items()
            if name.startswith(f"{GROUP}:lucene-")
        }
        others = tuple(jar for jar in by_artifact.values() if jar not in modules.values())
        unchanged = text.startswith(f"{PATCHED}{RECOMPILED}")
        library = Library(lucene[1], modules, others)
        built = build_diff(self.home, library, self.jdk, diff, self.progress, unchanged=unchanged)
        return {f"{GROUP}:{artifact}": jar for artifact, jar in built.jars.items()}


Benchmarks = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Full name of a method -> its parameters with their values in the source."""


def list_benchmarks(jdk: Jdk, class_path: Sequence[Path], include: str) -> Benchmarks:
    """Return the benchmarks whose name a regular expression matches.

    Raises:
        UsageError: If no benchmark matches.
        BenchctlError: If JMH fails.
    """
    words = ["-cp", joined(class_path), _MAIN, "-lp", *([include] if include else [])]
    done = run_java(jdk.home, words, None)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()[:_SHOWN_LINES]
        shown = "; ".join(line.strip() for line in lines)
        raise BenchctlError(f"JMH cannot list the benchmarks: {shown}")
    benchmarks = parse_listing(done.stdout)
    if not benchmarks:
        matching = f" that matches '{include}'" if include else ""
        raise UsageError(f"no benchmark{matching}", hint="mark a public method with @Benchmark")
    return benchmarks


def parse_listing(text: str) -> Benchmarks:
    """Parse the output of JMH's `-lp`."""
    benchmarks: dict[str, dict[str, tuple[str, ...]]] = {}
    name = ""
    for line in text.splitlines():
        if match := _PARAM.fullmatch(line):
            if name:
                benchmarks[name][match["name"]] = tuple(match["values"].split(", "))
        elif line and not line[0].isspace() and not line.endswith(":") and "." in line:
            name = line.strip()
            benchmarks[name] = {}
    return benchmarks


def tasks_of(
    benchmarks: Benchmarks, params: Mapping[str, tuple[str, ...]], threads: Sequence[int]
) -> tuple[Task, ...]:
    """Return a task for every benchmark, each of its parameters' values, and each number of threads.

    Raises:
        UsageError: If no benchmark has such a parameter.
    """
    known = {name for own in benchmarks.values() for name in own}
    for name in params:
        if name not in known:
            raise UsageError(
                f"--param {name}: no benchmark has such a parameter",
                hint=f"known: {', '.join(sorted(known)) or 'none'}",
            )
    names = short_names(benchmarks)
    tasks = []
    for benchmark, own in benchmarks.items():
        for chosen in product(*(params.get(name, values) for name, values in own.items())):
            given = dict(zip(own, chosen, strict=True))
            for count in threads:
                marks = [f"{name}={value}" for name, value in given.items()]
                marks += [f"threads={count}"] if len(threads) > 1 or count > 1 else []
                label = names[benchmark] + (f":{','.join(marks)}" if marks else "")
                meta = {"benchmark": benchmark, "params": given, "threads": count}
                # Each is an operation of its own: nothing says that two of them do the same.
                tasks.append(Task(label, clients=max(count, 1), meta=meta))
    return tuple(tasks)


def short_names(names: Collection[str]) -> dict[str, str]:
    """Return short by full name: `Class.method`, or `method` where all are of one class."""
    parts = 1 if len({name.rpartition(".")[0] for name in names}) == 1 else 2
    short = {name: ".".join(name.split(".")[-parts:]) for name in names}
    return short if len({*short.values()}) == len(names) else {name: name for name in names}


# One benchmark in one JVM: its results, in the terms of a run.


# JMH writes what is not finite as text: "NaN", "+INF", "-INF".
_Score = float | str


class _Primary(msgspec.Struct, frozen=True, rename="camel"):
    score_unit: str
    raw_data: tuple[tuple[_Score, ...], ...] = ()
    raw_data_histogram: tuple[tuple[tuple[tuple[_Score, int], ...], ...], ...] = ()


class JmhEntry(msgspec.Struct, frozen=True, rename="camel"):
    """A benchmark with one set of parameters, measured by one JVM."""

    mode: str
    primary_metric: _Primary

    def scores(self) -> list[tuple[float, int]]:
        """Return the scores of iterations, or sampled operations, and how often each occurred."""
        metric = self.primary_metric
        if metric.raw_data:
            return [(float(score), 1) for scores in metric.raw_data for score in scores]
        iterations = (iteration for jvm in metric.raw_data_histogram for iteration in jvm)
        return [(float(score), times) for iteration in iterations for score, times in iteration]


def figures_of(place: int, label: str, entry: JmhEntry) -> TaskSummary:
    """Return the figures of one fork: a mean time, percentiles of sampled times, or a throughput.

    JMH's times are of one thread's operations; throughput is that of all threads together. Iterations whose
    score is no number are failures.

    Raises:
        BenchctlError: If it has no scores, or in a unit that does not fit the mode.
    """
    scores = entry.scores()
    scored = sum(times for _, times in scores)
    if not scored:
        raise BenchctlError(f"{label} has no scores")
    values = sorted(pair for pair in scores if math.isfinite(pair[0]))
    count = sum(times for _, times in values)
    left, _, right = entry.primary_metric.score_unit.partition("/")
    rate = entry.mode == "thrpt"
    unit_ns = _NS.get(right if rate else left)
    if unit_ns is None or (left if rate else right) != ("ops" if rate else "op"):
        raise BenchctlError(
            f"{label}: unit '{entry.primary_metric.score_unit}' does not fit mode '{entry.mode}' "
            f"(expected {'ops/TIME' if rate else 'TIME/op'})"
        )
    blank = TaskSummary(
        0,
        place,
        label,
        label,
        unit=OPERATIONS,
        failures={"failed": scored - count} if scored > count else {},
        failure_reasons=("its score is not a number",) if scored > count else (),
    )
    if not count:
        return blank
    mean = sum(value * times for value, times in values) / count
    quantiles = None
    if not entry.primary_metric.raw_data:
        numbers, times = zip(*values, strict=True)
        ranked = np.quantile(numbers, (0.5, 0.9, 0.99), weights=times, method="inverted_cdf")
        quantiles = Quantiles(*(ranked * unit_ns).tolist())
    return msgspec.structs.replace(
        blank,
        samples=count,
        throughput_per_s=mean * 1e9 / unit_ns if rate else None,
        mean_ns=None if rate else mean * unit_ns,
        service_time=quantiles,
    )


def run_trial(
    subject: MicroSubject,
    micro: MicroSpec,
    task: Task,
    flags: Sequence[str],
    folder: Path,
    stopped: Callable[[], bool],
) -> JmhEntry:
    """Run a benchmark in a JVM of its own, and return its entry of JMH's JSON.

    JMH starts that JVM: benchctl starts JMH anew every time, so that it decides what comes after what.

    Args:
        subject: the variant.
        micro: with further arguments of JMH's, and how long it may take.
        task: see `tasks_of`.
        flags: further ones of the JVM's.
        folder: a new one, for what it leaves.
        stopped: whether to end it.

    Raises:
        BenchctlError: If JMH fails, crashes or takes too long, with its last lines; or was stopped.
    """
    meta, result = task.meta, folder / "result.json"
    java = str(subject.jdk.home / "bin" / "java")
    # Its files, and the lock of its own, for which benchctl has another.
    words = [java, f"-Djava.io.tmpdir={folder}", "-cp", joined(subject.class_path), _MAIN]
    words += [f"^{re.escape(meta['benchmark'])}$", "-f", "1", "-foe", "true", "-jvm", java]
    words += ["-t", str(meta["threads"])] if meta["threads"] else []
    words += ["-rf", "json", "-rff", str(result), *micro.arguments]
    for name, value in meta["params"].items():
        words += ["-p", f"{name}={value}"]
    properties = [f"-D{name}={value}" for name, value in subject.properties.items()]
    # JMH cuts at white space outside quotes.
    own = [f'"{flag}"' if " " in flag else flag for flag in (*subject.spec.jvm_flags, *flags, *properties)]
    words += ["-jvmArgsAppend", " ".join(own)] if own else []
    with disk_errors(f"run a benchmark in {folder}"):
        folder.mkdir(parents=True)
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": str(folder), **subject.spec.environment}
    command = Command(tuple(words), environment, folder, folder / "stdout.log", folder / "stderr.log")
    begun = time.monotonic()
    with NodeProcess(command, grace_s=0.0) as process:
        while (status := process.wait(_POLL_S)) is None:
            if stopped():
                raise BenchctlError("it was stopped")
            if time.monotonic() - begun > micro.timeout_s:
                raise BenchctlError(
                    f"{task.label} did not end within {micro.timeout_s:g} s: {_last_words(folder)}",
                    hint="give it more with --timeout",
                )
    try:
        # Some versions write numbers that are NaN.
        entries = msgspec.convert(json.loads(read_file(result, _MOST_RESULT_BYTES)), list[JmhEntry])
    except (OSError, ValueError):
        entries = []
    if status != 0 or not entries:
        how = describe_exit(status) if status else "left no result"
        raise BenchctlError(f"{task.label} {how}: {_last_words(folder)}")
    return entries[0]


_POLL_S = 0.1


def joined(class_path: Iterable[Path]) -> str:
    """Join paths as Java takes them."""
    return os.pathsep.join(map(str, class_path))


def _last_words(folder: Path) -> str:
    """Return JMH's and the JVM's last words: an exception and its place in the user's code, or the end."""
    lines = last_lines(folder / "stdout.log", _TAIL_LINES) + last_lines(folder / "stderr.log", _TAIL_LINES)
    lines = [line for line in lines if line.strip()]
    start = next((place for place, line in enumerate(lines) if _RAISED.match(line)), None)
    if start is not None:
        frames = (line.strip() for line in lines[start + 1 : start + 30] if line.lstrip().startswith("at "))
        where = next((frame for frame in frames if not _JDK_FRAME.match(frame)), "")
        return f"{lines[start].strip()} {where}".strip()
    ended = [line.strip(" <>") for line in lines if "forked VM failed" in line or "ERROR:" in line]
    return (ended or [line.lstrip("# ") for line in lines[-1:]] or ["no output"])[-1]


_RAISED = re.compile(
    r"\s*(Caused by: )?(?!org\.openjdk\.jmh)([\w$]+\.)+[\w$]*(Exception|Error)\b"
    r"|.*A fatal error has been detected"
)
_JDK_FRAME = re.compile(r"at (java\.|jdk\.|sun\.|org\.openjdk\.jmh|.*_jmhType|.*_jmhTest|.*jmh_generated)")
