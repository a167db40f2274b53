"""A profile as it is kept: every sample of one node start, with each frame and stack written once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchctl.errors import BenchctlError
from benchctl.results.versioned import read_versioned

PROFILE_NAME = "profile.json"
PROFILE_VERSION = 1

Stack = tuple[str, ...]
"""Frames from the thread's first method to the one that ran: `Class.method:line`, or without a line."""


@dataclass(frozen=True)
class Sample:
    """A thread as it was found once.

    Attributes:
        uptime_ns: when, since the JVM started; known to a millisecond.
        thread: its name.
        stack: empty where the JVM could not walk it.
        native: it was in native code, where it may as well have waited; else it ran Java.
        cut: the stack goes on towards the thread's first method.
    """

    uptime_ns: int
    thread: str
    stack: Stack
    native: bool = False
    cut: bool = False


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """All samples of one node start, column by column, in order of time.

    Attributes:
        profile_version: of this form.
        frames: every frame once.
        threads: every thread's name once.
        stacks: every stack once, as positions in frames.
        uptime_ns, native, cut: of each sample, as of `Sample`.
        thread: of each sample, as position in threads.
        stack: of each sample, as position in stacks.
        unread: lines of the recording that were not understood.
    """

    profile_version: int
    frames: tuple[str, ...]
    threads: tuple[str, ...]
    stacks: tuple[tuple[int, ...], ...]
    uptime_ns: tuple[int, ...]
    native: tuple[bool, ...]
    cut: tuple[bool, ...]
    thread: tuple[int, ...]
    stack: tuple[int, ...]
    unread: int = 0

    def samples(self) -> Iterator[Sample]:
        """All of them, in order of time."""
        stacks = [tuple(self.frames[place] for place in stack) for stack in self.stacks]
        columns = zip(self.uptime_ns, self.native, self.thread, self.stack, self.cut, strict=True)
        for uptime_ns, native, thread, stack, cut in columns:
            yield Sample(uptime_ns, self.threads[thread], stacks[stack], native=native, cut=cut)


def profile_of(samples: Iterable[Sample], unread: int = 0) -> Profile:
    """Put samples, in any order, into the form in which they are kept.

    Args:
        samples: of one node start.
        unread: lines that were not understood.
    """
    frames: dict[str, int] = {}
    threads: dict[str, int] = {}
    stacks: dict[tuple[int, ...], int] = {}
    rows = [
        (
            sample.uptime_ns,
            sample.native,
            sample.cut,
            threads.setdefault(sample.thread, len(threads)),
            stacks.setdefault(
                tuple(frames.setdefault(frame, len(frames)) for frame in sample.stack), len(stacks)
            ),
        )
        for sample in samples
    ]
    rows.sort(key=lambda row: row[0])
    columns = tuple(zip(*rows, strict=True)) or ((),) * 5
    uptime_ns, native, cut, thread, stack = columns
    return Profile(
        profile_version=PROFILE_VERSION,
        frames=tuple(frames),
        threads=tuple(threads),
        stacks=tuple(stacks),
        uptime_ns=uptime_ns,
        native=native,
        cut=cut,
        thread=thread,
        stack=stack,
        unread=unread,
    )


def read_profile(folder: Path) -> Profile | None:
    """The profile that is kept in a folder of evidence; None when there is none.

    Raises:
        BenchctlError: it cannot be read, is damaged, or of another version.
    """
    path = folder / PROFILE_NAME
    found = read_versioned(path, Profile, "profile", PROFILE_VERSION)
    if found is not None and not _holds_together(found):
        raise BenchctlError(f"{path} is damaged: its columns do not belong together")
    return found


def _holds_together(profile: Profile) -> bool:
    """Whether there is everything that its samples point to."""
    columns = (profile.native, profile.cut, profile.thread, profile.stack)
    pointers = (
        (profile.thread, profile.threads),
        (profile.stack, profile.stacks),
        *((stack, profile.frames) for stack in profile.stacks),
    )
    return all(len(column) == len(profile.uptime_ns) for column in columns) and all(
        not places or (min(places) >= 0 and max(places) < len(known)) for places, known in pointers
    )
