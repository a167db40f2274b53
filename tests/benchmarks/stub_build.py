"""The stub server of the benchmarks: compiled once with the `ziglang` wheel, run as a process of its own."""

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchctl.errors import BenchctlError

SOURCE = Path(__file__).parent / "stub" / "stub.c"
_FLAGS = ("-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
_STOP_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class StubOptions:
    """How the stub behaves; the options of the same names in `stub.c` say what they do exactly.

    Attributes:
        body_bytes: length of a search answer.
        delay_ns: service time of a search.
        slow_first: so many first searches take `slow_ns` instead.
        slow_ns: service time of those.
        stall_at_ns: from the first search to the stall; only with `stall_ns`.
        stall_ns: how long everything stops; 0 for never.
        spin_ns: for how long before an answer is due the stub polls instead of sleeping.
    """

    body_bytes: int = 1500
    delay_ns: int = 0
    slow_first: int = 0
    slow_ns: int = 0
    stall_at_ns: int = 0
    stall_ns: int = 0
    spin_ns: int = 100_000

    def arguments(self) -> list[str]:
        """The command line of the compiled stub."""
        return [
            text for name, value in vars(self).items() for text in (f"--{name.replace('_', '-')}", str(value))
        ]


@dataclass(frozen=True)
class Truth:
    """What the stub knows; nanoseconds of the monotonic clock.

    Attributes:
        arrived_ns: when each search or bulk request was complete, shape (n,), in order of arrival.
        sent_ns: when its answer was about to be sent, shape (n,); 0 for one that was never sent.
        stall_ns: begin and end of the stall; (0, 0) without one.
    """

    arrived_ns: npt.NDArray[np.int64]
    sent_ns: npt.NDArray[np.int64]
    stall_ns: tuple[int, int]


@dataclass
class Stub:
    """A running stub.

    Attributes:
        url: where it listens.
        record: what it will have seen; filled when it has stopped.
    """

    url: str
    record: list[Truth] = field(default_factory=list)

    @property
    def truth(self) -> Truth:
        """What it saw, once it has stopped."""
        return self.record[0]


def build_stub() -> Path:
    """Compile the stub unless this very source has been compiled before; returns the program.

    Raises:
        BenchctlError: the compiler is not installed or refuses the source.
    """
    source = SOURCE.read_bytes()
    digest = hashlib.sha256(source + " ".join(_FLAGS).encode()).hexdigest()[:16]
    # Named by its user as well: what lies under a name that others could have used is not run.
    folder = Path(tempfile.gettempdir()) / f"benchctl-stub-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise BenchctlError(f"{folder} belongs to somebody else", hint="set TMPDIR to a folder of your own")
    program = folder / f"stub-{digest}"
    if not program.exists():
        partial = folder / f"{program.name}.{os.getpid()}"
        _compile(SOURCE, partial)
        partial.replace(program)
    return program


def _compile(source: Path, target: Path) -> None:
    if importlib.util.find_spec("ziglang") is None:
        raise BenchctlError("the stub needs a C compiler", hint="pip install -e '.[bench]' brings one")
    command = [sys.executable, "-m", "ziglang", "cc", *_FLAGS, "-o", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchctlError(f"the stub does not compile:\n{done.stderr.strip()}")


@contextmanager
def running_stub(options: StubOptions, *, cpu: int | None = None) -> Iterator[Stub]:
    """Run a stub on a free port of the loopback; its record can be read when the block has ended.

    Args:
        options: how it behaves.
        cpu: the only CPU that it may use; any when None.

    Raises:
        BenchctlError: it cannot be compiled, or did not end as it should.
    """
    with tempfile.TemporaryDirectory(prefix="bench-stub-") as folder:
        record = Path(folder) / "record"
        command = [str(build_stub()), *options.arguments(), "--record", str(record)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                if cpu is not None:
                    os.sched_setaffinity(process.pid, {cpu})
                port = process.stdout.readline().strip() if process.stdout else ""
                stub = Stub(f"http://127.0.0.1:{port}")
                yield stub
            finally:
                process.terminate()
                process.wait(_STOP_TIMEOUT_S)
        if process.returncode:
            raise BenchctlError(f"the stub ended with {process.returncode}")
        pairs = np.fromfile(record, np.int64).reshape(-1, 2)
        stub.record.append(Truth(pairs[1:, 0], pairs[1:, 1], (int(pairs[0, 0]), int(pairs[0, 1]))))


def true_latency_ns(due_ns: npt.NDArray[np.int64], service_ns: int, truth: Truth) -> npt.NDArray[np.int64]:
    """What one connection's latencies had to be, from the schedule and the server's one stall.

    Args:
        due_ns: when requests were due, shape (n,), ascending.
        service_ns: what the server takes for each.
        truth: has the stall.

    Returns:
        Nanoseconds from due to done, shape (n,).
    """
    begin, end = truth.stall_ns
    free, done_ns = 0, []
    for due in due_ns.tolist():
        start = max(due, free)
        if begin <= start < end:
            start = end
        free = start + service_ns
        if begin <= free < end:
            free = end
        done_ns.append(free)
    return np.array(done_ns, np.int64) - due_ns
