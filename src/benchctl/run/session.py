"""What a variant runs on: a node booted on a private copy of its index, or a cluster that runs already."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchctl.disk import disk_errors
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import ARCHIVE_FLAG, Starts
from benchctl.engine.node import DAMAGED_HINT, Node, boot
from benchctl.engine.prepared_index import PreparedIndex, copy_index
from benchctl.engine.target import Address, ClusterFacts, Target, attach, describe_cluster
from benchctl.errors import BenchctlError
from benchctl.home import Home, open_folder
from benchctl.results.model import EngineFacts, IndexFacts
from benchctl.results.plan import VariantSpec

Serving = Node | Target
"""What answers requests; both have the same face."""


@dataclass(frozen=True)
class Start:
    """One start of a variant.

    Attributes:
        workspace: the scratch folder that `workspace` made.
        folder: a new folder for configuration and logs.
        home: whose user nodes run as.
        heap_mb: heap of a node whose variant does not say otherwise, MiB.
        target: the indices that must be ready, as in a path; None for whatever there is.
        cpus: that a node runs on; None for those that benchctl may use.
        jvm_flags: behind those of the variant, for this start only.
    """

    workspace: Path
    folder: Path
    home: Home
    heap_mb: int
    target: str | None
    cpus: tuple[int, ...] | None = None
    jvm_flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subject:
    """A variant with everything that it needs to boot.

    Attributes:
        spec: what was asked for.
        installation: the engine, with the plug-ins and jars of the variant.
        jdk: its Java runtime.
        index: the prepared index, or the first build of it; None when forks begin on an empty node.
        more_builds: further builds of it, for which forks take turns.
        starts: what was learnt of how its server starts; None to start it by the engine's script.
    """

    spec: VariantSpec
    installation: Installation
    jdk: Jdk
    index: PreparedIndex | None
    more_builds: tuple[PreparedIndex, ...] = ()
    starts: Starts | None = None

    @property
    def index_facts(self) -> IndexFacts | None:
        """What its index is, or the first build of it; None when nothing is prepared."""
        return None if self.index is None else self.index.facts

    @property
    def builds(self) -> tuple[IndexFacts, ...]:
        """What all builds of its index are."""
        return tuple(build.facts for build in self._all_builds)

    @property
    def _all_builds(self) -> tuple[PreparedIndex, ...]:
        return () if self.index is None else (self.index, *self.more_builds)

    @contextmanager
    def workspace(self, home: Home, purpose: str, build: int = 0) -> Iterator[Path]:
        """A scratch folder with a private copy of a build of its index in `data`; gone afterwards.

        When nothing is prepared it is empty, and the first node that starts there makes `data`.
        """
        with _scratch(home, f"{purpose}-{self.spec.name}") as root:
            if self.index is not None:
                copy_index(self._all_builds[build], root / "data")
            yield root

    @contextmanager
    def start(self, start: Start) -> Iterator[Serving]:
        """Boot a node; see `boot`.

        Raises:
            BenchctlError: it did not get ready.
        """
        node = boot(
            self.installation,
            self.jdk,
            data=start.workspace / "data",
            folder=start.folder,
            owner=start.home.node_owner,
            heap_mb=self.spec.heap_mb or start.heap_mb,
            jvm_flags=(*self.spec.jvm_flags, *start.jvm_flags),
            settings=self.spec.settings,
            expect_index=start.target,
            cpus=start.cpus,
            variables=self.spec.environment,
            starts=self.starts,
        )
        with ExitStack() as stack:
            try:
                serving = stack.enter_context(node)
            except BenchctlError as err:
                if err.hint == DAMAGED_HINT and self.index is not None:
                    raise self._damaged(err.message) from err
                raise
            yield serving

    def _damaged(self, message: str) -> BenchctlError:
        """Whether what a node could not read is damaged in the prepared index itself, or in the copy only."""
        for build in self._all_builds:
            if damage := build.damage():
                return BenchctlError(
                    f"{message}; the prepared index {build.root} is damaged: {damage}", hint=build.rebuilt_by
                )
        return BenchctlError(
            f"{message}; the prepared index is whole, this copy of it was not",
            hint="see whether the disk has errors",
        )

    def engine_facts(self, serving: Serving, workspace: Path) -> EngineFacts:
        """What the variant resolved to, from the node where it can say.

        Args:
            serving: a node of it that is up.
            workspace: as it stands in the node's flags.

        Raises:
            BenchctlError: the node is of another version than its archive.
        """
        if serving.version != self.installation.version:
            raise BenchctlError(
                f"{self.spec.name}: the archive is {self.installation.version}, "
                f"its node says {serving.version}"
            )
        # A variant may name an archive of its own.
        ours = () if self.starts is None else (f"{ARCHIVE_FLAG}{self.starts.folder}/",)
        words = serving.command[1:]
        flags = (word for word in words if word.startswith("-") and not word.startswith(ours))
        return EngineFacts(
            variant=self.spec.name,
            version=serving.version,
            build=serving.build,
            lucene=serving.lucene,
            archive_sha256=self.installation.archive_sha256,
            jdk=f"{self.jdk.vendor} {self.jdk.version}",
            jvm_flags=tuple(self._placeless(flag, workspace) for flag in flags),
            modules=self.installation.modules,
            verified_by=self.installation.verified_by,
            jars=dict(self.installation.jars),
            plugins=self._plugins,
            start=serving.manner if isinstance(serving, Node) else "",
        )

    def changes(self, known: EngineFacts) -> list[str]:
        """What is no longer as it was when a run began, in words."""
        found = []
        # One that is known to have used the script had to: the plan, which is the same, asks for the other.
        if not known.start and self.starts is not None:
            found.append(f"nodes of {self.spec.name} were started by the engine's script")
        if known.archive_sha256 != self.installation.archive_sha256:
            found.append(f"the archive of {self.spec.name} has changed")
        jdk = f"{self.jdk.vendor} {self.jdk.version}"
        if known.jdk != jdk:
            found.append(f"the JDK of {self.spec.name} was {known.jdk}, is {jdk}")
        now = dict(self.installation.jars)
        for jar in sorted(known.jars.keys() | now.keys()):
            was, has = ((jars[jar][:12] if jar in jars else "the engine's own") for jars in (known.jars, now))
            if was != has:
                found.append(f"{jar} of {self.spec.name} was {was}, is {has}")
        if known.plugins != self._plugins:
            were, are = (
                ", ".join(f"{name} {version}" for name, version in plugins.items()) or "none"
                for plugins in (known.plugins, self._plugins)
            )
            found.append(f"the plug-ins of {self.spec.name} were {were}, are {are}")
        return found

    @property
    def _plugins(self) -> dict[str, str]:
        """Name -> version of those that were installed."""
        return {one.name: one.version for one in self.installation.plugins}

    def _placeless(self, flag: str, workspace: Path) -> str:
        """A flag without the folders that differ from fork to fork: those make no variant another."""
        return flag.replace(str(workspace), "{fork}").replace(str(self.installation.root), "{distribution}")


@dataclass(frozen=True)
class TargetSubject:
    """A variant that is a running cluster.

    Attributes:
        spec: with its target.
        address: where it is.
        facts: what it says about what it runs.
        shards: primary shards of its indices.
        index_facts: what they were before the run.
    """

    spec: VariantSpec
    address: Address
    facts: ClusterFacts
    shards: int
    index_facts: IndexFacts

    @property
    def builds(self) -> tuple[IndexFacts, ...]:
        """The one index that it has."""
        return (self.index_facts,)

    @contextmanager
    def workspace(self, home: Home, purpose: str, build: int = 0) -> Iterator[Path]:
        """An empty scratch folder; gone afterwards."""
        del build
        with _scratch(home, f"{purpose}-{self.spec.name}") as root:
            yield root

    @contextmanager
    def start(self, start: Start) -> Iterator[Serving]:
        """Use the cluster, restarted where there is a command for that; see `attach`.

        Raises:
            BenchctlError: it cannot be reached, or did not come back.
        """
        restart = self.spec.target.restart_command if self.spec.target else ()
        with attach(
            self.address, self.facts, index=start.target, shards=self.shards, restart_command=restart
        ) as target:
            if restart:
                self._check_same(describe_cluster(target.client))
            yield target

    def engine_facts(self, serving: Serving, workspace: Path) -> EngineFacts:
        """What the cluster says; nothing about archives is known."""
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
        """What is no longer as it was when a run began, in words."""
        pairs = (
            ("version", known.version, self.facts.version),
            ("build", known.build, self.facts.build),
            ("JDK", known.jdk, self.facts.jdk),
        )
        return [
            f"the {what} of {self.spec.name} was {was}, is {now}" for what, was, now in pairs if was != now
        ]

    def _check_same(self, now: ClusterFacts) -> None:
        if (now.version, now.build, now.jdk) != (self.facts.version, self.facts.build, self.facts.jdk):
            raise BenchctlError(
                f"{self.spec.name} came back from its restart as another: version {self.facts.version} on "
                f"{self.facts.jdk} before, {now.version} on {now.jdk} now"
            )


AnySubject = Subject | TargetSubject
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
