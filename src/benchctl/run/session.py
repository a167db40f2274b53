"""The subject of a variant: a node booted on a private copy of its index, or a running cluster."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from benchctl.disk import disk_errors
from benchctl.engine.client import SearchClient
from benchctl.engine.declared import Places, lent
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import ARCHIVE_FLAG, Starts
from benchctl.engine.node import ARCHIVED, DAMAGED_HINT, Node
from benchctl.engine.prepared_index import PreparedIndex, copy_index
from benchctl.engine.settings import switched_off
from benchctl.engine.target import Address, ClusterFacts, Target, explained
from benchctl.errors import BenchctlError
from benchctl.home import Home, open_folder
from benchctl.results.model import EngineFacts, IndexFacts
from benchctl.results.plan import VariantSpec

Serving = Node | Target
"""Source of responses; both have the same interface."""


@dataclass(frozen=True)
class Start:
    """Parameters of one start of a variant."""

    workspace: Path  # directory of the variant's node, with its private copy of the index in `data`
    folder: Path  # new, for configuration and logs
    home: Home
    heap_mb: int  # the variant's takes precedence
    target: str | None  # indices that must be ready, as a path component; None for all
    cpus: tuple[int, ...] | None = None  # None for those that benchctl may use
    flags: tuple[str, ...] = ()  # JVM flags after the variant's
    listen: str = ""  # address; empty for loopback


@dataclass(frozen=True)
class Subject:
    """A variant that is ready to boot."""

    spec: VariantSpec
    installation: Installation
    jdk: Jdk
    index: PreparedIndex | None  # the first build; None if forks start on an empty node
    more_builds: tuple[PreparedIndex, ...] = ()  # which forks take in turn
    starts: Starts | None = None  # recipes of direct starts; None for the engine's script
    unarchived: str = ""  # why direct starts have no archive of classes

    def without_archive(self) -> "Subject":
        """Return it with a node that starts without an archive of classes."""
        starts = None if self.starts is None else replace(self.starts, archived=False)
        return replace(self, starts=starts)

    @property
    def index_facts(self) -> IndexFacts | None:
        """Facts about its index, or the first build; None when nothing is prepared."""
        return None if self.index is None else self.index.facts

    @property
    def builds(self) -> tuple[IndexFacts, ...]:
        """Facts about all builds of its index."""
        return tuple(build.facts for build in self._all_builds)

    @property
    def _all_builds(self) -> tuple[PreparedIndex, ...]:
        return () if self.index is None else (self.index, *self.more_builds)

    @contextmanager
    def workspace(self, home: Home, purpose: str, build: int = 0) -> Iterator[Path]:
        """A scratch folder with a private copy of one build of its index in `data`; removed afterwards.

        Without a prepared index it is empty, and the first node that starts there creates `data`.
        """
        with _scratch(home, f"{purpose}-{self.spec.name}") as root:
            if self.index is not None:
                copy_index(self._all_builds[build], root / "data")
            yield root

    @contextmanager
    def start(self, start: Start) -> Iterator[Serving]:
        """Start its node; see `Node`.

        Raises:
            BenchctlError: If the node does not get ready.
        """
        with ExitStack() as stack:
            try:
                node = stack.enter_context(
                    Node(
                        self.installation,
                        self.jdk,
                        data=start.workspace / "data",
                        folder=start.folder,
                        owner=start.home.node_owner,
                        heap_mb=self.spec.heap_mb or start.heap_mb,
                        jvm_flags=(*self.spec.jvm_flags, *start.flags),
                        settings=self.spec.settings,
                        expect_index=start.target,
                        cpus=start.cpus,
                        variables=self.spec.environment,
                        starts=self.starts,
                        listen=start.listen,
                    )
                )
            except BenchctlError as err:
                if err.hint == DAMAGED_HINT and self.index is not None:
                    raise self._damaged(err.message) from err
                raise
            yield node

    def _damaged(self, message: str) -> BenchctlError:
        """Tells whether the prepared index itself is damaged, or only the copy."""
        for build in self._all_builds:
            if damage := build.damage():
                return BenchctlError(
                    f"{message}; the prepared index {build.root} is damaged: {damage}", hint=build.rebuilt_by
                )
        return BenchctlError(
            f"{message}; the prepared index is intact, but this copy of it was damaged",
            hint="check whether the disk has errors",
        )

    def engine_facts(self, serving: Serving, workspace: Path) -> EngineFacts:
        """Return what the variant resolved to, as far as possible from a running node.

        `workspace` is replaced in the node's flags.

        Raises:
            BenchctlError: If the node's version is not that of its archive.
        """
        if serving.version != self.installation.version:
            raise BenchctlError(
                f"{self.spec.name}: the archive is {self.installation.version}, "
                f"its node reports {serving.version}"
            )
        # A variant may have its own archive.
        ours = () if self.starts is None else (f"{ARCHIVE_FLAG}{self.starts.folder}/",)
        flags = (flag for flag in serving.command[1:] if flag.startswith("-") and not flag.startswith(ours))
        return EngineFacts(
            variant=self.spec.name,
            version=serving.version,
            build=serving.build,
            lucene=serving.lucene,
            archive_sha256=self.installation.archive_sha256,
            jdk=f"{self.jdk.vendor} {self.jdk.version}",
            # Without the folders that differ from fork to fork.
            jvm_flags=tuple(
                flag.replace(str(workspace), "{fork}").replace(str(self.installation.root), "{distribution}")
                for flag in flags
            ),
            modules=self.installation.modules,
            verified_by=self.installation.verified_by,
            jars=dict(self.installation.jars),
            plugins=self._plugins,
            added_modules={module.name: dict(module.jars) for module in self.installation.added},
            start=serving.manner if isinstance(serving, Node) else "",
            switched_off={
                name: value
                for name, value in switched_off(self.installation).items()
                if name not in self.spec.settings
            },
        )

    def changes(self, known: EngineFacts) -> list[str]:
        """Return what has changed since a run began, as text."""
        name, now = self.spec.name, self.installation
        differences = []
        # A run that is known to have used the script had to: its plan asks for direct starts.
        if not known.start and self.starts is not None:
            differences.append(f"nodes of {name} were started by the engine's script")
        if known.start == ARCHIVED and (self.starts is None or not self.starts.archived or self.unarchived):
            differences.append(f"nodes of {name} were started with a class-data archive")
        return differences + _differences(
            name,
            ("archive", {known.archive_sha256[:12]}, {now.archive_sha256[:12]}),
            ("JDK", {known.jdk}, {f"{self.jdk.vendor} {self.jdk.version}"}),
            ("replaced jars", _digests(known.jars), _digests(dict(now.jars))),
            ("modules", {*known.modules}, {*now.modules}),
            ("plug-ins", _digests(known.plugins), _digests(self._plugins)),
        )

    @property
    def _plugins(self) -> dict[str, str]:
        return {plugin.name: plugin.version for plugin in self.installation.plugins}


@dataclass(frozen=True)
class TargetSubject:
    """A variant that is a running cluster."""

    spec: VariantSpec
    address: Address
    facts: ClusterFacts
    shards: int  # primary ones
    index_facts: IndexFacts | None  # before the run; None if challenges make the indices
    makes: Places | None = None  # what challenges make there; None if they only read
    fills: bool = False  # the index is missing, and filled before the first fork
    unsized: str = ""  # why the size of its index is unknown

    @property
    def builds(self) -> tuple[IndexFacts, ...]:
        """The index as the only build, unless challenges make it."""
        return () if self.index_facts is None else (self.index_facts,)

    @contextmanager
    def workspace(self, home: Home, purpose: str, build: int = 0) -> Iterator[Path]:
        """An empty scratch folder; removed afterwards."""
        del build
        with _scratch(home, f"{purpose}-{self.spec.name}") as root:
            yield root

    @contextmanager
    def start(self, start: Start) -> Iterator[Serving]:
        """Use the cluster as it is; see `Target` and `lent`.

        Raises:
            BenchctlError: If the cluster cannot be reached.
        """
        del start
        with SearchClient(self.facts.engine, self.address.endpoint) as client:
            target = Target(self.address, client, self.facts, self.shards)
            if self.makes is None:
                yield target
                return
            with explained(self.spec.name, self.address.endpoint), lent(client, self.makes):
                yield target

    def engine_facts(self, serving: Serving, workspace: Path) -> EngineFacts:
        """Return what the cluster reports; archives are unknown."""
        del workspace
        return EngineFacts(
            variant=self.spec.name,
            version=serving.version,
            build=serving.build,
            lucene=serving.lucene,
            archive_sha256="",
            jdk=self.facts.jdk,
            jvm_flags=self.facts.jvm_flags,
            modules=self.facts.modules,
            start="",
        )

    def changes(self, known: EngineFacts) -> list[str]:
        """Return what has changed since a run began, as text."""
        return _differences(
            self.spec.name,
            ("version", {known.version}, {self.facts.version}),
            ("build", {known.build}, {self.facts.build}),
            ("JDK", {known.jdk}, {self.facts.jdk}),
        )


def _digests(by_name: Mapping[str, str]) -> set[str]:
    """Return versions or digests with their names, short."""
    return {f"{name} {text[:12]}" for name, text in by_name.items()}


def _differences(name: str, *pairs: tuple[str, set[str], set[str]]) -> list[str]:
    """Return what of a variant was otherwise, as text."""
    return [
        f"{what} of {name}: was {', '.join(sorted(was - now)) or 'none'}, "
        f"is {', '.join(sorted(now - was)) or 'none'}"
        for what, was, now in pairs
        if was != now
    ]


NodeSubject = Subject | TargetSubject
"""A variant that has nodes, ready to run."""


class NodelessSubject(Protocol):
    """A variant without nodes and index, such as a JVM of microbenchmarks, ready to run."""

    @property
    def spec(self) -> VariantSpec:
        """Requested version."""

    @property
    def builds(self) -> tuple[IndexFacts, ...]:
        """Nothing."""

    @property
    def index_facts(self) -> IndexFacts | None:
        """Nothing."""

    @property
    def facts(self) -> EngineFacts:
        """Resolved variant."""

    def changes(self, known: EngineFacts) -> list[str]:
        """Return what is not as it was."""


AnySubject = NodeSubject | NodelessSubject
"""A variant, ready to run."""


@contextmanager
def _scratch(home: Home, name: str) -> Iterator[Path]:
    root = home.scratch / name
    shutil.rmtree(root, ignore_errors=True)
    try:
        with disk_errors(f"create {root}"):
            root.mkdir(parents=True)
            open_folder(root)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)
