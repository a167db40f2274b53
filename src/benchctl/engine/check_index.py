"""Lucene's own check of the shards of a node, on a copy that the node does not use."""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from benchctl.disk import disk_errors, read_file
from benchctl.engine.node import Node
from benchctl.engine.prepared_index import entries, link
from benchctl.engine.process import Command, NodeProcess, describe_exit
from benchctl.engine.settings import hand_over
from benchctl.errors import BenchctlError
from benchctl.home import Owner

_HEAP: Final = "512m"
_POLL_S: Final = 0.1
_CLEAN: Final = "No problems were detected with this index."
# Between two commits, files go away while they are linked.
_MOST_COPIES: Final = 3


def check_shards(node: Node, lib: Path, halted: Callable[[], bool]) -> None:
    """Check all shards of a node of this host, one after the other, with the Lucene and Java that it runs.

    What was committed is checked. What the checks say is kept beside the node's logs.

    Args:
        node: up or down.
        lib: folder of the engine's jars.
        halted: asked now and then whether to give up.

    Raises:
        BenchctlError: If a shard is damaged, it cannot be checked, or it was given up.
    """
    with disk_errors(f"copy the index in {node.data}"):
        root = Path(tempfile.mkdtemp(prefix="check-", dir=node.data.parent))
        try:
            shards = _linked(node.data, root)
            if not shards:
                raise BenchctlError(f"there is no shard to check in {node.data}")
            hand_over(root, node.owner)
            for shard in shards:
                checked = ("-cp", f"{lib}/*", "org.apache.lucene.index.CheckIndex", str(shard))
                argv = (node.command[0], f"-Xmx{_HEAP}", *checked)
                _check(argv, shard, node.folders.logs, node.owner, halted)
        finally:
            shutil.rmtree(root, ignore_errors=True)


def _linked(data: Path, root: Path) -> list[Path]:
    for last in range(_MOST_COPIES):
        try:
            return list(_link_all(data, root / str(last)))
        except FileNotFoundError:
            if last == _MOST_COPIES - 1:
                raise
    return []


def _link_all(data: Path, root: Path) -> Iterator[Path]:
    found: dict[Path, Path] = {}
    for entry in entries(data, data):
        if entry.write_once and not entry.is_folder:
            shard = entry.source.parent
            if shard not in found:
                # INDEX/SHARD/index
                found[shard] = root / f"{shard.parent.parent.name}-{shard.parent.name}"
                found[shard].mkdir(parents=True)
                yield found[shard]
            link(entry.source, found[shard] / entry.source.name)


def _check(
    argv: tuple[str, ...], shard: Path, logs: Path, owner: Owner | None, halted: Callable[[], bool]
) -> None:
    said = next(path for n in itertools.count(1) if not (path := logs / f"check-{n}.txt").exists())
    command = Command(argv, {}, Path("/"), said, said, owner)
    with NodeProcess(command, grace_s=0.0) as process:
        while (status := process.wait(_POLL_S)) is None:
            if halted():
                raise BenchctlError("the check was given up")
    text = read_file(said, follow=False).decode(errors="replace")
    if status == 0 and _CLEAN in text:
        return
    lines = [line.strip() for line in text.splitlines()]
    signs = ("Exception", "FAILED", "ERROR")
    wrong = next((line for sign in signs for line in lines if sign in line), "")
    told = wrong or (lines[-1] if lines else f"nothing: it {describe_exit(status)}")
    raise BenchctlError(f"Lucene's check of shard {shard.name} says: {told} (all of it: {said})")
