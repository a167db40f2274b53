"""Samples -> how often each stack was seen, of those that are asked for."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchctl.jvm.profile.model import Sample, Stack

Window = tuple[int, int]
"""From when to when, nanoseconds since the JVM started; both belong to it."""

# In native code a thread looks busy to the JVM while the kernel has it wait: for requests, for the most part,
# and Elasticsearch's for its standard input.
WAITS = frozenset({
    "io.netty.channel.epoll.Native.epollWait",
    "io.netty.channel.epoll.Native.epollWait0",
    "java.io.FileInputStream.readBytes",
    "java.lang.ProcessHandleImpl.waitForProcessExit0",
    "jdk.internal.misc.Unsafe.park",
    "sun.nio.ch.EPoll.wait",
    "sun.nio.ch.KQueue.poll",
    "sun.nio.ch.Net.accept",
    "sun.nio.ch.Net.poll",
    "sun.nio.fs.LinuxWatchService.poll",
})  # fmt: skip

UNKNOWN = "(unknown)"
"""Stands for a stack that the JVM could not walk."""

_ENGINE = re.compile(r"\borg\.(?:elasticsearch|opensearch)\.")
_POOL = re.compile(r"\[(?P<pool>[^\[\]]+)\]+(?:\[T#\d+\])?$")
# Takes the orders to begin and to end the recording.
_OWN_THREAD = "Attach Listener"
_NUMBER = re.compile(r"[-#\s]*\d+$")


@dataclass(frozen=True)
class Choice:
    """Which samples are counted.

    Attributes:
        native: those in native code that did not wait there; else those that ran Java.
        thread: that the name of their thread matches somewhere; None for all.
        windows: that were taken in one of them; None for any time.
    """

    native: bool = False
    thread: re.Pattern[str] | None = None
    windows: tuple[Window, ...] | None = None

    def takes(self, sample: Sample) -> bool:
        """Whether a sample is one of them."""
        if sample.native != self.native or (self.native and _waits(sample)) or sample.thread == _OWN_THREAD:
            return False
        if self.thread is not None and self.thread.search(sample.thread) is None:
            return False
        return self.windows is None or any(first <= sample.uptime_ns <= last for first, last in self.windows)


@dataclass(frozen=True)
class Counted:
    """The samples of one node start or of several.

    Attributes:
        stacks: stack -> samples.
        total: samples that were recorded, counted or not.
        cut: of those counted, how many have stacks that go on.
    """

    stacks: Mapping[Stack, int]
    total: int
    cut: int

    @property
    def samples(self) -> int:
        """Those counted."""
        return sum(self.stacks.values())


def count_stacks(samples: Iterable[Sample], choice: Choice, *, pools: bool = False) -> Counted:
    """Count stacks.

    Args:
        samples: to choose from.
        choice: which of them count.
        pools: begin each stack with the name of its thread pool in brackets.
    """
    stacks: Counter[Stack] = Counter()
    total = cut = 0
    for sample in samples:
        total += 1
        if choice.takes(sample):
            root = (f"[{pool_of(sample.thread)}]",) if pools else ()
            stacks[root + (sample.stack or (UNKNOWN,))] += 1
            cut += sample.cut
    return Counted(dict(stacks), total, cut)


def pool_of(thread: str) -> str:
    """What threads of one pool have in common: `search` of `elasticsearch[node][search][T#3]`."""
    found = _POOL.search(thread)
    name = found["pool"] if found else _NUMBER.sub("", thread)
    return (name or thread).replace(";", ",")


def merged(counted: Iterable[Counted]) -> Counted:
    """The samples of several node starts together."""
    stacks: Counter[Stack] = Counter()
    total = cut = 0
    for one in counted:
        stacks.update(one.stacks)
        total += one.total
        cut += one.cut
    return Counted(dict(stacks), total, cut)


def engine_neutral(counted: Counted) -> Counted:
    """With `org.elasticsearch` and `org.opensearch` written alike: most of both is the same code."""
    stacks: Counter[Stack] = Counter()
    for stack, count in counted.stacks.items():
        stacks[tuple(_ENGINE.sub("org.<engine>.", frame) for frame in stack)] += count
    return Counted(dict(stacks), counted.total, counted.cut)


def without_lines(counted: Counted) -> Counted:
    """With methods in place of lines."""
    stacks: Counter[Stack] = Counter()
    for stack, count in counted.stacks.items():
        stacks[tuple(map(method_of, stack))] += count
    return Counted(dict(stacks), counted.total, counted.cut)


def method_of(frame: str) -> str:
    """A frame without its line."""
    method, colon, line = frame.rpartition(":")
    return method if colon and line.isdecimal() else frame


def _waits(sample: Sample) -> bool:
    return bool(sample.stack) and method_of(sample.stack[-1]) in WAITS
