"""Nodes of one host for a benchctl elsewhere: the ordinary code for nodes, in this host's own home."""

import os
import shutil
import socket
import tarfile
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import psutil

from benchctl.disk import disk_errors, free_bytes, open_regular, require_space
from benchctl.engine.cluster import Collector, Scene, archive_classes
from benchctl.engine.equipment import Equipment, equip
from benchctl.engine.launch import Starts, starts_of
from benchctl.engine.node import Ground, Node, Wanted, place_of
from benchctl.engine.prepared_index import (
    DamagedIndexError,
    bytes_by_kind,
    copy_index,
    find_prepared,
    keep,
    part_damage,
)
from benchctl.engine.usage import Usage
from benchctl.errors import BenchctlError
from benchctl.home import Home, open_folder
from benchctl.results.model import IndexFacts
from benchctl.results.plan import VariantSpec
from benchctl.slices import hook
from benchctl.spec import EvidenceKind

# Of a node's folder: what its JVM and libraries unpack for themselves.
_NOT_FETCHED = "tmp"


@dataclass(frozen=True)
class SiteFacts:
    """Facts about a site, for the other side."""

    root: Path  # its folder; nodes' data and starts are below
    memory_bytes: int
    epoch_ns: int  # its monotonic clock minus its wall clock
    kernel: str  # which start of a kernel it is; containers of one machine share it


@dataclass(frozen=True)
class Kit:
    """Software that a variant's nodes run on a host."""

    equipment: Equipment
    starts: Starts | None  # of what is measured; None where its nodes are started by the engine's script
    notes: tuple[str, ...]  # what made nodes start by the script
    unarchived: str = ""  # why they have no archive of classes


def kernel_start() -> str:
    """Return which start of a kernel this host is; empty if unknown."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


class Site:
    """A folder in the home of a host, and the nodes that are on it; a context manager that leaves neither.

    Args:
        home: of this host.
        session: of all hosts that nodes are on at the same time.
        address: that nodes take requests at.
    """

    def __init__(self, home: Home, session: str, address: str) -> None:
        self._home = home
        self._session = session
        self._address = address
        self._host = socket.gethostname()
        self._root = home.scratch / f"nodes-{session}-{self._host}-{uuid.uuid4().hex[:8]}"
        self._nodes: dict[str, Node] = {}
        self._up: set[str] = set()
        self._collectors: dict[str, list[Collector]] = {}
        self._uncollected: dict[str, BenchctlError] = {}

    def __enter__(self) -> Self:
        if others := list(self._home.scratch.glob(f"nodes-{self._session}-*")):
            raise BenchctlError(
                f"its home {self._home.root} is that of another host of these, too ({others[0].name})",
                hint="start its Dask worker with a BENCHCTL_HOME on its own disk",
            )
        with disk_errors(f"make {self._root}"):
            # Of a worker that was killed.
            for left in self._home.scratch.glob(f"nodes-*-{self._host}-*"):
                shutil.rmtree(left, ignore_errors=True)
            self._root.mkdir()
            open_folder(self._root)
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self._root, ignore_errors=True)
            for name in {**self._collectors, **self._nodes}:
                stack.callback(self.leave, name)

    @property
    def facts(self) -> SiteFacts:
        """Return what the other side has to know."""
        epoch_ns = time.monotonic_ns() - time.time_ns()
        return SiteFacts(self._root, psutil.virtual_memory().total, epoch_ns, kernel_start())

    def running(self) -> dict[str, bool]:
        """Return whether each node runs that should."""
        return {name: not self._nodes[name].lost for name in tuple(self._up)}

    def equip(self, spec: VariantSpec, evidence: Sequence[EvidenceKind]) -> Kit:
        """Install a variant's engine and runtime, unless that was done before.

        Raises:
            BenchctlError: If one of them cannot be had, or the runtime cannot provide the evidence.
        """
        equipment = equip(self._home, spec, lambda *_: None)
        hook("collectors").check_runtime(evidence, equipment.jdk.home)
        if spec.start != "direct":
            return Kit(equipment, None, ())
        installation, jdk = equipment.installation, equipment.jdk
        starts = starts_of(self._home, installation)
        unarchived = archive_classes(self._home, installation, jdk, starts)
        notes = [
            f"nodes are started by the engine's script: {reason}" for reason in set(starts.refused.values())
        ]
        return Kit(equipment, starts, tuple(notes), unarchived)

    def find(self, name: str, nodes: Sequence[str]) -> IndexFacts | None:
        """Return a prepared index, if the part of these nodes is here; see `find_prepared`."""
        try:
            prepared = find_prepared(self._home, name, nodes)
        except DamagedIndexError:
            # It is built again, on all hosts.
            return None
        return None if prepared is None else prepared.facts

    def damage(self, name: str) -> str:
        """Return what is wrong with what is here of a prepared index; empty for nothing."""
        return part_damage(self._home, name)

    def take(self, name: str, nodes: Sequence[str]) -> None:
        """Give the nodes their private copies of a prepared index.

        Raises:
            BenchctlError: If it is gone, or there is no space.
        """
        index = find_prepared(self._home, name, nodes)
        if index is None:
            raise BenchctlError(f"the prepared index {name} is gone", hint="the next run builds it again")
        copy_index(index, self._root / "data")

    def require(self, needed_bytes: int, purpose: str) -> None:
        """Refuse what needs more space.

        Raises:
            BenchctlError: If there is too little.
        """
        require_space(self._home.scratch, needed_bytes, purpose, available=free_bytes(self._home.scratch))

    def collect(self, kinds: Sequence[EvidenceKind], kit: Kit, folder: str, name: str) -> tuple[str, ...]:
        """Make the collectors of a node that is not configured yet; their JVM flags.

        Raises:
            BenchctlError: If the disk refuses.
        """
        jdk = kit.equipment.jdk
        scene = Scene(place_of(self._root / folder, name) / "evidence", jdk.home)
        self._uncollected.pop(name, None)
        self._collectors[name] = hook("collectors").collectors(kinds, scene)
        return tuple(flag for collector in self._collectors[name] for flag in collector.flags())

    def collect_from(self, name: str, step: Literal["begin", "measured"]) -> None:
        """Do a step of `Collector`."""
        for collector in self._collectors[name]:
            getattr(collector, step)(self._nodes[name])

    def check_collected(self, name: str) -> None:
        """Return whether the collectors of a node, which has ended, did so in peace.

        Raises:
            BenchctlError: If the first that one of them raised.
        """
        if name in self._uncollected:
            raise self._uncollected[name]

    def configure(self, kit: Kit, folder: str, wanted: Wanted, building: bool) -> None:  # noqa: FBT001 - called from afar
        """Make a node, which is not started yet.

        `folder` is the name of its start's; `building`: whether it is to build an index.

        Raises:
            BenchctlError: If it cannot be made.
        """
        installation = kit.equipment.builder if building else kit.equipment.installation
        ground = Ground(
            installation,
            kit.equipment.jdk,
            self._root / "data",
            self._root / folder,
            self._home.node_owner,
            starts=starts_of(self._home, installation) if building else kit.starts,
            listen=self._address,
        )
        self._nodes[wanted.name] = ground.node(wanted)

    def start(self, name: str) -> None:
        """Start a node.

        Raises:
            BenchctlError: If it cannot be.
        """
        self._nodes[name].__enter__()
        self._up.add(name)

    def wait_address(self, name: str) -> str:
        return self._nodes[name].wait_address(lambda: name not in self._up)

    def wait_listening(self, name: str) -> dict[str, Any]:
        node = self._nodes[name]
        node.wait_listening(lambda: name not in self._up)
        return _told(node)

    def take_down(self, name: str, at_once: bool) -> None:  # noqa: FBT001 - called from afar
        self._up.discard(name)
        self._nodes[name].take_down(at_once=at_once)

    def start_again(self, name: str) -> dict[str, Any]:
        node = self._nodes[name]
        self._up.add(name)
        node.start_again(lambda: name not in self._up)
        return _told(node)

    def ask(self, name: str, method: str, arguments: Sequence[Any]) -> Any:
        """Call a method of a node that takes what can be sent."""
        return getattr(self._nodes[name], method)(*arguments)

    def usage(self, name: str) -> Usage:
        """Return what a node's process has used."""
        return self._nodes[name].gauge.read()

    def stop(self, name: str, at_once: bool) -> float:  # noqa: FBT001 - called from afar
        self._up.discard(name)
        return self._nodes[name].stop(at_once=at_once)

    def leave(self, name: str) -> None:
        """End a node, if it was ever started, and what collects its evidence."""
        self._up.discard(name)
        try:
            if name in self._nodes:
                self._nodes[name].__exit__()
        finally:
            self._end_collecting(name)

    def _end_collecting(self, name: str) -> None:
        for collector in self._collectors.pop(name, ()):
            try:
                collector.end()
            except BenchctlError as err:
                self._uncollected.setdefault(name, err)

    def pack(self, name: str, folder: str) -> Path:
        """Pack the folder of a node's start, without its temporary files, into one file.

        Raises:
            BenchctlError: If the disk refuses.
        """
        root, packed = place_of(self._root / folder, name), self._root / f"{folder}-{name}.tar.gz"
        with (
            disk_errors(f"pack {root}"),
            packed.open("wb") as target,
            tarfile.open(fileobj=target, mode="w:gz", compresslevel=1) as archive,
        ):
            for there, folders, files in os.walk(root):
                if Path(there) == root and _NOT_FETCHED in folders:
                    folders.remove(_NOT_FETCHED)
                for path in (Path(there, file) for file in sorted(files)):
                    # Its user may replace anything by a link or a pipe, at any moment.
                    with suppress(OSError), open_regular(path, follow=False) as source:
                        info = tarfile.TarInfo(str(path.relative_to(root)))
                        status = os.fstat(source.fileno())
                        info.size, info.mtime = status.st_size, status.st_mtime
                        archive.addfile(info, source)
        return packed

    def files(self) -> dict[str, int]:
        """Return bytes by kind of nodes that are stopped; see `bytes_by_kind`."""
        return bytes_by_kind(self._root / "data")

    def keep(self, name: str, facts: IndexFacts, nodes: Sequence[str]) -> None:
        """Keep what the nodes here have of an index; they are stopped.

        Raises:
            BenchctlError: If the disk refuses.
        """
        built = self._root / "built"
        with disk_errors(f"keep a prepared index in {built}"):
            built.mkdir()
            open_folder(built)
            (self._root / "data").rename(built / "data")
        keep(self._home, name, built, facts, nodes)


def _told(node: Node) -> dict[str, Any]:
    """Return what the other side has to know of a node that listens."""
    node.reading()  # opens what later ones need
    facts = {word: getattr(node, word) for word in ("http_port", "start_s", "command", "manner")}
    return facts | {"life": node.lives[-1]}
