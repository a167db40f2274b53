"""JMH: microbenchmarks compiled, listed, and each run in a separate JVM."""

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from benchctl.disk import disk_errors, read_file, staging
from benchctl.engine.distribution import fetch_published, needed_jars
from benchctl.engine.jdk import Jdk, provide_jdk, run_java
from benchctl.engine.maven import Coordinates, digest
from benchctl.engine.patched_lucene import GROUP, Library, build_diff, fetch_compiler
from benchctl.engine.process import Command, NodeProcess, describe_exit, last_lines
from benchctl.engine.variant import PATCHED, RECOMPILED, diff_path, part_kind
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.micro.results import MOST_RESULT_BYTES, decode_jmh, label_of, short_names
from benchctl.network import Progress
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
_LEAST_MAJOR = 8


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
            content.update(f"{file.name}\0".encode() + read_file(file, MOST_RESULT_BYTES))
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
            raise UsageError(f"{path} has no file of Java", hint="give a Java file, a directory, or a jar")
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
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        final = self.home.artifacts / f"micro-{source.stem}-{key}"
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
            self.jdk_of(spec),
            (*files, classes, *map(self.jar, _RUNTIME), *by_artifact.values()),
            {path.name: digest(path, "sha256") for path in sorted(own)},
            {"benchctl.kept": str(self._kept(micro)), **self._apart(micro)},
        )

    def _kept(self, micro: MicroSpec) -> Path:
        """Return the folder of what takes long to make, until sources or dependencies change."""
        parts = (micro.digest, *micro.dependencies, *micro.apart.values())
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        folder = self.home.artifacts / f"micro-{Path(micro.source).stem}-{key}-kept"
        with disk_errors(f"make {folder}"):
            folder.mkdir(exist_ok=True)
        return folder

    def _apart(self, micro: MicroSpec) -> dict[str, str]:
        return {f"benchctl.{name}": joined([self.jar(library)]) for name, library in micro.apart.items()}

    def jdk_of(self, spec: VariantSpec) -> Jdk:
        """Return the runtime of a variant."""
        return provide_jdk(self.home, spec.jdk)

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


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: its method's full name, and its parameters with their values in the source."""

    name: str
    params: Mapping[str, tuple[str, ...]]


def list_benchmarks(jdk: Jdk, class_path: Sequence[Path], include: str) -> list[Benchmark]:
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


def parse_listing(text: str) -> list[Benchmark]:
    """Parse the output of JMH's `-lp`."""
    benchmarks: list[tuple[str, dict[str, tuple[str, ...]]]] = []
    for line in text.splitlines():
        if match := _PARAM.fullmatch(line):
            if benchmarks:
                benchmarks[-1][1][match["name"]] = tuple(match["values"].split(", "))
        elif line and not line[0].isspace() and not line.endswith(":") and "." in line:
            benchmarks.append((line.strip(), {}))
    return [Benchmark(name, params) for name, params in benchmarks]


def tasks_of(
    benchmarks: Sequence[Benchmark], params: Mapping[str, tuple[str, ...]], threads: Sequence[int]
) -> tuple[Task, ...]:
    """Return a task for every benchmark, each of its parameters' values, and each number of threads.

    Raises:
        UsageError: If no benchmark has such a parameter.
    """
    param_names = {name for benchmark in benchmarks for name in benchmark.params}
    for name in params:
        if name not in param_names:
            raise UsageError(
                f"--param {name}: no benchmark has such a parameter",
                hint=f"known: {', '.join(sorted(param_names)) or 'none'}",
            )
    names = short_names({benchmark.name for benchmark in benchmarks})
    tasks = []
    for benchmark in benchmarks:
        values = [params.get(name, known_values) for name, known_values in benchmark.params.items()]
        for chosen in product(*values):
            given = dict(zip(benchmark.params, chosen, strict=True))
            for count in threads:
                shown_clients = count if len(threads) > 1 or count > 1 else None
                label = label_of(names[benchmark.name], given, shown_clients)
                meta = {"benchmark": benchmark.name, "params": given, "threads": count}
                # Each is an operation of its own: nothing says that two of them do the same.
                tasks.append(Task(label, clients=max(count, 1), meta=meta))
    return tuple(tasks)


@dataclass(frozen=True)
class Trial:
    """A benchmark to be run in a separate JVM.

    JMH starts that JVM, one for each trial: benchctl starts JMH anew every time, so that it decides what
    comes after what.
    """

    task: Task  # see `tasks_of`
    arguments: tuple[str, ...]  # further ones of JMH's
    flags: tuple[str, ...]  # further ones of the JVM's
    folder: Path  # a new one, for what it leaves
    timeout_s: float  # how long it may take


def run_trial(subject: MicroSubject, trial: Trial, stopped: Callable[[], bool]) -> dict[str, Any]:
    """Run a benchmark and return its entry of JMH's JSON, as JMH wrote it.

    Raises:
        BenchctlError: If JMH fails, crashes or takes too long, with its last lines; or was stopped.
    """
    meta = trial.task.meta
    result = trial.folder / "result.json"
    java = subject.jdk.home / "bin" / "java"
    # Its files, and the lock of its own, for which benchctl has another.
    words = [str(java), f"-Djava.io.tmpdir={trial.folder}", "-cp", joined(subject.class_path), _MAIN]
    words += [f"^{re.escape(meta['benchmark'])}$"]
    words += ["-f", "1", "-foe", "true", "-jvm", str(java)]
    words += ["-t", str(meta["threads"])] if meta["threads"] else []
    words += ["-rf", "json", "-rff", str(result), *trial.arguments]
    for name, value in meta["params"].items():
        words += ["-p", f"{name}={value}"]
    properties = [f"-D{name}={value}" for name, value in subject.properties.items()]
    if flags := [*subject.spec.jvm_flags, *trial.flags, *properties]:
        # JMH cuts at white space outside quotes.
        words += ["-jvmArgsAppend", " ".join(f'"{flag}"' if " " in flag else flag for flag in flags)]
    with disk_errors(f"run a benchmark in {trial.folder}"):
        trial.folder.mkdir(parents=True)
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": str(trial.folder)}
    command = Command(
        tuple(words),
        {**environment, **subject.spec.environment},
        trial.folder,
        trial.folder / "stdout.log",
        trial.folder / "stderr.log",
    )
    begun = time.monotonic()
    with NodeProcess(command, grace_s=0.0) as process:
        while (status := process.wait(_POLL_S)) is None:
            if stopped():
                raise BenchctlError("it was stopped")
            if time.monotonic() - begun > trial.timeout_s:
                raise BenchctlError(
                    f"{trial.task.label} did not end within {trial.timeout_s:g} s: "
                    f"{_last_words(trial.folder)}",
                    hint="give it more with --timeout",
                )
    try:
        entries = decode_jmh(read_file(result, MOST_RESULT_BYTES), list[dict[str, Any]])
    except (OSError, ValueError):
        entries = []
    if status != 0 or not entries:
        how = describe_exit(status) if status else "left no result"
        raise BenchctlError(f"{trial.task.label} {how}: {_last_words(trial.folder)}")
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


def least_release(jdks: Iterable[Jdk]) -> int:
    """Return the Java release that all of the runtimes run."""
    return max(min(jdk.major for jdk in jdks), _LEAST_MAJOR)


def named_params(texts: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Parse `--param NAME=A,B`.

    Raises:
        UsageError: If a text is not of that form.
    """
    for text in texts:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise UsageError(f"--param {text}: it is not NAME=VALUE", hint="write --param size=10,100")
        yield name, tuple(values.split(","))
