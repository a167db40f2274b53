"""Evidence of a node start: the collectors of each node, and where it is kept."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

import zstandard

from benchctl.disk import disk_errors, open_regular
from benchctl.engine.evidence import Collector, Scene, collectors
from benchctl.engine.node import Member
from benchctl.errors import BenchctlError
from benchctl.results.plan import EvidenceKind

# Shorter logs stay uncompressed, for grep.
_PACKED_FROM_BYTES = 1 << 20
_LEVEL = 3


class Collection:
    """The collectors of one node start: node -> its own, in the order in which they are called."""

    def __init__(self, collecting: Mapping[str, Sequence[Collector]] = MappingProxyType({})) -> None:
        self._collecting = collecting
        self._lost: set[str] = set()

    @property
    def flags(self) -> dict[str, tuple[str, ...]]:
        """Node -> JVM flags, appended to the variant's."""
        return {
            node: tuple(flag for one in own for flag in one.flags()) for node, own in self._collecting.items()
        }

    def begin(self, nodes: Sequence[Member]) -> None:
        """As for `Collector`, before the first task; a target, whose nodes are not ours, has none."""
        for node in nodes:
            for one in self._collecting.get(node.name, ()):
                one.begin(node)

    def measured(self, nodes: Sequence[Member]) -> None:
        """As for `Collector`, after the last task, of nodes that were there all the time."""
        self._lost = {node.name for node in nodes if node.down or len(node.lives) > 1}
        for node in nodes:
            for one in () if node.name in self._lost else self._collecting.get(node.name, ()):
                one.measured(node)

    def end(self) -> None:
        """As for `Collector`, for all of them even if one fails.

        Raises:
            BenchctlError: the first that one of them raised whose node was there all the time.
        """
        raised: list[BenchctlError] = []
        for node, own in self._collecting.items():
            for one in own:
                try:
                    one.end()
                except BenchctlError as err:
                    raised += [] if node in self._lost else [err]
        if raised:
            raise raised[0]


@contextmanager
def collecting(
    kinds: Sequence[EvidenceKind],
    scenes: Mapping[str, Scene],
    kept: Path,
    elsewhere: Mapping[str, Collector] = MappingProxyType({}),
) -> Iterator[Collection]:
    """Collect and keep evidence of the nodes that run within the block, even if either fails.

    Args:
        kinds: of evidence.
        scenes: by node.
        kept: where their content stays, in a folder for each node that has a name; replaced.
        elsewhere: of nodes of other hosts, which leave what they collected in their scene's folder here.

    Raises:
        BenchctlError: the block's; else a collector failed, or the disk is full or cannot be written.
    """
    own = {node: collectors(kinds, scene) for node, scene in scenes.items() if node not in elsewhere}
    collection = Collection({**own, **{node: [one] for node, one in elsewhere.items()}})
    try:
        yield collection
    except BaseException:
        # Why the node failed matters more than incomplete evidence; but threads must end.
        with suppress(BenchctlError):
            _close(collection, scenes, kept)
        raise
    _close(collection, scenes, kept)


def _close(collection: Collection, scenes: Mapping[str, Scene], kept: Path) -> None:
    try:
        collection.end()
    finally:
        for node, scene in scenes.items():
            # What another host never sent is told by its collector.
            if scene.folder.exists():
                keep_evidence(scene.folder, kept / node)


def keep_evidence(folder: Path, target: Path) -> None:
    """Move evidence to where it stays, replacing the target; long logs are compressed to `.zst`.

    The target may be on another file system.

    Raises:
        BenchctlError: the disk is full or cannot be written.
    """
    with disk_errors(f"keep evidence in {target}"):
        for log in sorted(folder.rglob("*.log")):
            # A node may leave anything there, such as a link to somebody else's file.
            if not log.is_symlink() and log.lstat().st_size >= _PACKED_FROM_BYTES:
                _pack(log)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        try:
            shutil.move(folder, target)
        except shutil.Error as err:
            raise OSError(None, f"not all of {folder} can be copied: {str(err)[:300]}") from err


def _pack(log: Path) -> None:
    # With these, readers detect corruption and truncation.
    packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, write_content_size=True)
    packed = log.with_name(f"{log.name}.zst")
    with open_regular(log, follow=False) as source, packed.open("xb") as target:
        packer.copy_stream(source, target, size=os.fstat(source.fileno()).st_size)
    log.unlink()
