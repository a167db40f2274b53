"""Preparations that may take hours: what is put by of them on the way, and going on from there."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.engine.filling import Intervals, PartialIndex, Progress, Sent
from benchctl.engine.prepared_index import IndexKey
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.load.ingest import Checkpoints, Ingested
from benchctl.run.observer import Observer


@dataclass(frozen=True)
class Keeping:
    """When an ingest is put by.

    Attributes:
        after_s: one that is interrupted earlier begins anew: Ctrl-C on a small corpus leaves nothing behind.
        every_bytes: of bulk requests, between two checkpoints. What is lost when benchctl or its node is
            killed takes about a minute to send again; a checkpoint costs a second or two, and writes segments
            that are smaller than they would have been. Corpora below that are indexed as if there were none.
    """

    after_s: float = 20.0
    every_bytes: int = 4 * 2**30


USUAL = Keeping()


class OutdatedError(Exception):
    """What was put by is not what its manifest says; it is discarded by now."""


class Resumption:
    """What is put by of one index, before and while it is built.

    Args:
        home: where it is kept.
        key: of the index.
        keeping: when it is put by.
        title: how progress calls the index.
        observer: told what happens.

    Attributes:
        before: how far earlier goes came.

    Raises:
        BenchctlError: what is there is damaged.
    """

    def __init__(
        self, home: Home, key: IndexKey, keeping: Keeping, *, title: str, observer: Observer
    ) -> None:
        self._partial = PartialIndex.of(home, key.folder_name, key.digest)
        self._key = key
        self._keeping = keeping
        self._title = title
        self._observer = observer
        self._warned = False
        self.before = self._partial.progress() or Progress()

    @property
    def bytes_put_by(self) -> int:
        """On disk already, of what the index will take."""
        return self._partial.size_bytes() if self.before.documents else 0

    def note_others(self) -> None:
        """Say what is put by of other indices: nobody else would, and it may be of no use any more."""
        for root, size in self._partial.others():
            self._observer.note(
                f"{root} holds {size / 1e6:,.0f} MB of another index whose preparation was interrupted; "
                "the command that began it goes on from there, and it may be deleted"
            )

    def take_up(self, data: Path) -> None:
        """Put what earlier goes left into an empty data folder, before its node is started.

        Raises:
            BenchctlError: the disk refuses.
        """
        if self.before.documents:
            data.rmdir()
            self._partial.take_up(data)

    def intervals(self, client: SearchClient) -> Intervals | None:
        """Check that a node which was started on what earlier goes left has exactly that.

        Returns:
            The indices' declared refresh intervals; None when there is nothing, and all has to be made.

        Raises:
            OutdatedError: it has more or fewer documents.
        """
        if not self.before.documents:
            return None
        target = self._key.places.target
        client.refresh(target)
        held = client.count(target)
        if held != self.before.documents:
            self.discard()
            raise OutdatedError(
                f"the half-built index holds {held:,} documents instead of {self.before.documents:,}: it is "
                "built from its beginning"
            )
        self._observer.note(
            f"{self._title}: going on with {self.before.documents:,} of {self._key.corpus.documents:,} "
            "documents that an earlier preparation had sent"
        )
        return self.before.intervals

    def checkpoints(self, client: SearchClient, data: Path, intervals: Intervals) -> Checkpoints | None:
        """For an ingest into a running node.

        None where lines of the corpus replace or delete documents, so that their number does not tell what
        has arrived: such an ingest begins anew.

        Args:
            client: of the node.
            data: its data folder.
            intervals: the indices' declared refresh intervals.
        """
        if any(file.has_actions for file in self._key.corpus.files):
            return None
        now = Progress(intervals=dict(intervals))

        def save(done: Ingested) -> None:
            sent = msgspec.structs.replace(
                now,
                ranges=done.ranges,
                body_bytes=done.body_bytes,
                seconds=done.seconds,
                checkpoint_s=done.checkpoint_s,
            )
            try:
                self._partial.save(client, self._key.places.target, data, self.before, sent)
            except NodeRequestError:
                # The node is gone or about to; whoever sends to it will say so.
                return
            except BenchctlError as err:
                self._warn(err)

        return Checkpoints(
            save,
            missing=self.before.missing(self._key.corpus.documents),
            every_bytes=self._keeping.every_bytes,
            after_s=max(0.0, self._keeping.after_s - self.before.seconds),
        )

    def whole(self, sent: Sent) -> Sent:
        """What was sent over all goes."""
        before = self.before
        return Sent(
            before.documents + sent.documents,
            before.body_bytes + sent.body_bytes,
            before.seconds + sent.seconds,
            before.checkpoint_s + sent.checkpoint_s,
            before.goes,
            before.clocks,
        )

    def discard(self) -> None:
        """The index is finished, or has to be begun anew: remove what is put by of it."""
        self._partial.discard()

    @contextmanager
    def said(self) -> Iterator[None]:
        """Say of an interruption or a failure inside the block what is put by, if anything is.

        Raises:
            BenchctlError: for an interrupt, too, where something is put by.
        """
        try:
            yield
        except KeyboardInterrupt as err:
            kept = self._kept()
            if not kept:
                raise
            raise BenchctlError(
                f"interrupted; {kept}", hint=self._hint, exit_code=ExitCode.INTERRUPTED
            ) from err
        except BenchctlError as err:
            kept = self._kept()
            if not kept:
                raise
            hint = f"{err.hint}; {self._hint}" if err.hint else self._hint
            raise BenchctlError(f"{err.message}; {kept}", hint=hint, exit_code=err.exit_code) from err

    def _kept(self) -> str:
        progress = self._partial.progress()
        if progress is None:
            return ""
        return (
            f"{progress.documents:,} of {self._key.corpus.documents:,} documents of {self._title}'s index "
            f"are kept in {self._partial.root} ({self._partial.size_bytes() / 1e6:,.0f} MB)"
        )

    @property
    def _hint(self) -> str:
        return (
            "the same command goes on from there; to begin anew instead: "
            f"rm -r {shlex.quote(str(self._partial.root))}"
        )

    def _warn(self, err: BenchctlError) -> None:
        if not self._warned:
            self._observer.note(f"{self._title}: an interruption would lose what was sent: {err.message}")
        self._warned = True
