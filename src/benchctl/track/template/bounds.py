"""Bounds on what rendering a template may take: somebody else's may loop for ever, or fill the memory."""

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import jinja2.runtime
from jinja2.sandbox import SandboxedEnvironment

MOST_CHARACTERS = 2**26
"""Of a template with its parts, and of what it renders to: 64 million."""

MOST_CPU_S = 2.0
MOST_BYTES = 2**30
_MOST_BITS = 2**16  # of a whole number
_AGAIN_S = 0.1


class OutOfTimeError(Exception):
    """A template takes longer than it may."""


class BoundedEnvironment(SandboxedEnvironment):
    """Jinja2's sandbox without the operations that take for ever or any memory in a single step."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401 - whatever a template holds
        """Multiply or raise to a power.

        Raises:
            OverflowError: the result would be too large.
        """
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
            if bits > _MOST_BITS:
                raise OverflowError("a number has too many digits")
        for sequence, times in ((left, right), (right, left)):
            if isinstance(sequence, str | bytes | list | tuple) and isinstance(times, int):
                _check_size(len(sequence) * times)
        return super().call_binop(context, operator, left, right)


def _check_size(size: int) -> None:
    if size > MOST_CHARACTERS:
        raise OverflowError(f"a text or list would have {size:,} elements")


@contextmanager
def bounded(cpu_s: float = MOST_CPU_S, more_bytes: int = MOST_BYTES) -> Iterator[None]:
    """Bound the block's CPU time, in the main thread, and the memory that it adds.

    Args:
        cpu_s: seconds of CPU, not of the clock: a busy machine makes no difference.
        more_bytes: of address space.

    Raises:
        OutOfTimeError: it takes longer. A single step of an extension in C is not interrupted.
        MemoryError: it takes more.
    """
    with _cpu_bound(cpu_s), _memory_bound(more_bytes):
        yield


@contextmanager
def _cpu_bound(cpu_s: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        # Signals reach the main thread only, and that is where tracks are loaded.
        yield
        return
    inside = True

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if inside:
            raise OutOfTimeError

    before = signal.signal(signal.SIGVTALRM, stop)
    # Again and again: what is raised while Jinja2 tries a constant is lost.
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s, _AGAIN_S)
    try:
        try:
            yield
        finally:
            inside = False
    finally:
        # Of its own: the signal may come in the very moment in which the block ends.
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if before is None else before)


@contextmanager
def _memory_bound(more_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = _address_space_bytes() + more_bytes
    for limit in (soft, hard):
        bound = bound if limit == resource.RLIM_INFINITY else min(bound, limit)
    resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()
