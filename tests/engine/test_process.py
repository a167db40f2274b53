import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from benchctl.engine.process import (
    Command,
    NodeProcess,
    Patience,
    describe_exit,
    last_lines,
    node_timeout_s,
    started_ns,
)
from benchctl.errors import BenchctlError, UsageError
from waiting import DEADLINE_S, eventually


def gone(pid: int) -> bool:
    """Whether nothing of that process runs; an orphan that nobody collects stays as a zombie."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., Command]:
    """Make the command of a Python child that runs the given source in tmp_path."""

    def make(source: str, *extra: str) -> Command:
        argv = (sys.executable, "-I", "-S", "-c", source, *extra)
        return Command(argv, {"WHERE": str(tmp_path)}, tmp_path, tmp_path / "out.log", tmp_path / "err.log")

    return make


SLEEPER = "import signal; print('up', flush=True); signal.pause()"
STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('up', flush=True)
while True: signal.pause()
"""
# Each child writes its id when it is ready; the second leaves the group and the session.
FAMILY = """
import os, signal, time
for leave in (False, True):
    if os.fork() == 0:
        if leave:
            os.setsid()
        if os.fork():
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(os.getpid(), flush=True)
        while True: signal.pause()
print(os.getpid(), flush=True)
while True: signal.pause()
"""


def printed(command: Command, lines: int) -> list[str]:
    """Wait for that many complete lines of standard output."""
    assert eventually(lambda: command.stdout.exists() and command.stdout.read_text().count("\n") >= lines), (
        last_lines(command.stderr, 20)
    )
    return command.stdout.read_text().split()


@pytest.mark.parametrize("status", [0, 3])
def test_the_exit_status_is_reported(command: Callable[..., Command], status: int):
    with NodeProcess(command(f"raise SystemExit({status})")) as process:
        assert process.wait(DEADLINE_S) == status
        assert process.status == status
        assert not process.alive()


def test_a_killing_signal_is_reported_as_negative(command: Callable[..., Command]):
    spec = command(SLEEPER)
    with NodeProcess(spec) as process:
        assert process.wait(0.01) is None
        assert process.alive()
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(DEADLINE_S) == -signal.SIGKILL


def test_stopping_is_noticed_at_once(command: Callable[..., Command]):
    spec = command(SLEEPER)
    with NodeProcess(spec) as process:
        printed(spec, 1)
        pid = process.pid
        assert process.stop(DEADLINE_S) < DEADLINE_S / 2
        assert gone(pid)
        assert process.wait(0) == -signal.SIGTERM
        assert process.stop(DEADLINE_S) < DEADLINE_S / 2


def test_a_process_that_ignores_the_request_is_killed(command: Callable[..., Command]):
    spec = command(STUBBORN)
    with NodeProcess(spec) as process:
        printed(spec, 1)
        pid = process.pid
        assert process.stop(0.1) >= 0.1
        assert gone(pid)
        assert process.wait(0) == -signal.SIGKILL


def test_nothing_of_the_family_outlives_an_exception(command: Callable[..., Command]):
    spec = command(FAMILY)
    family: list[int] = []

    def use() -> None:
        with NodeProcess(spec, grace_s=0.2) as process:
            family.extend(int(pid) for pid in printed(spec, 3))
            assert process.group in family
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    assert len(family) == 3
    assert all(gone(pid) for pid in family)


def test_what_the_command_leaves_behind_ends_with_it(command: Callable[..., Command]):
    source = "import os, signal\nif os.fork() == 0:\n print(os.getpid(), flush=True)\n signal.pause()\n"
    spec = command(source)
    with NodeProcess(spec, grace_s=DEADLINE_S) as process:
        assert process.wait(DEADLINE_S) == 0
        left = int(printed(spec, 1)[0]) if spec.stdout.read_text() else 0
        assert not left or eventually(lambda: gone(left))


PARENT = """
import sys
from pathlib import Path
from benchctl.engine.process import Command, NodeProcess
folder = Path(sys.argv[1])
argv = (sys.executable, "-I", "-S", "-c", sys.argv[2])
spec = Command(argv, {}, folder, folder / "out.log", folder / "err.log")
with NodeProcess(spec, grace_s=0.2) as process:
    if len(sys.argv) > 3:
        import os, signal
        # A worker that inherits the pipes and outlives its parent.
        if os.fork() == 0:
            print(os.getpid(), flush=True)
            signal.pause()
    process.wait(600)
"""


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a separate program that keeps a family of processes; killed when the test ends."""
    started: list[subprocess.Popen[str]] = []

    def start(*extra: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", PARENT, str(tmp_path), FAMILY, *extra]
        started.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_parent_that_dies(
    tmp_path: Path, parent: Callable[..., subprocess.Popen[str]], number: int
):
    program = parent()
    log = Command((), {}, tmp_path, tmp_path / "out.log", tmp_path / "err.log")
    family = [int(pid) for pid in printed(log, 3)]
    keeper = psutil.Process(family[0]).parent()
    program.send_signal(number)
    program.wait(DEADLINE_S)
    assert eventually(lambda: all(gone(pid) for pid in family))
    assert keeper is None or eventually(lambda: gone(keeper.pid))


def test_nothing_outlives_a_parent_whose_worker_still_holds_the_pipes(
    tmp_path: Path, parent: Callable[..., subprocess.Popen[str]]
):
    program = parent("with a worker")
    assert program.stdout is not None
    worker = int(program.stdout.readline())
    log = Command((), {}, tmp_path, tmp_path / "out.log", tmp_path / "err.log")
    family = [int(pid) for pid in printed(log, 3)]
    try:
        program.kill()
        assert eventually(lambda: all(gone(pid) for pid in family))
        assert psutil.pid_exists(worker)
    finally:
        os.kill(worker, signal.SIGKILL)


def test_nothing_of_the_group_outlives_a_killed_keeper(command: Callable[..., Command]):
    child = "import os, signal\nif os.fork() == 0: signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    spec = command(child + "print(os.getpid(), flush=True)\nwhile True: signal.pause()")
    with NodeProcess(spec) as process:
        group = [int(pid) for pid in printed(spec, 2)]
        keeper = psutil.Process(process.group).parent()
        assert keeper is not None
        keeper.kill()
        assert eventually(lambda: not psutil.pid_exists(process.group))
        assert not process.alive()
    assert all(eventually(lambda pid=pid: gone(pid)) for pid in group)


def test_the_terminal_cannot_interrupt_it(command: Callable[..., Command]):
    with NodeProcess(command(SLEEPER)) as process:
        assert os.getsid(process.pid) != os.getsid(0)
        assert os.getpgid(process.pid) == process.group


def test_no_signal_is_ignored_from_the_start(command: Callable[..., Command]):
    spec = Command(
        ("/bin/cat", "/proc/self/status"), {}, *(getattr(command(""), k) for k in ("cwd", "stdout", "stderr"))
    )
    with NodeProcess(spec) as process:
        process.wait(DEADLINE_S)
    ignored = next(line for line in spec.stdout.read_text().splitlines() if line.startswith("SigIgn"))
    assert int(ignored.split()[1], 16) == 0


def test_the_server_is_found_behind_its_launcher(command: Callable[..., Command]):
    launcher = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-I', '-S', '-c', sys.argv[1], 'the.server.Main'])\n"
        "raise SystemExit(child.wait() + 200)"
    )
    spec = command(launcher, SLEEPER)
    with NodeProcess(spec, server="server.Main") as process:
        printed(spec, 1)
        assert process.pid != process.group
        assert os.getpgid(process.pid) == process.group
        process.stop(DEADLINE_S)
        assert process.wait(0) == 200 - signal.SIGTERM


def test_a_dead_server_is_noticed_before_its_launcher_says_so(command: Callable[..., Command]):
    launcher = (
        "import signal, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-I', '-S', '-c', sys.argv[1], 'the.server.Main'])\n"
        "signal.pause()"
    )
    spec = command(launcher, SLEEPER)
    with NodeProcess(spec, server="server.Main") as process:
        printed(spec, 1)
        os.kill(process.pid, signal.SIGKILL)
        assert eventually(lambda: not process.alive())
        assert process.status is None
        assert process.stop(DEADLINE_S) < DEADLINE_S / 2
        assert process.status == -signal.SIGTERM


def test_a_program_that_is_not_there_is_explained(tmp_path: Path):
    spec = Command((str(tmp_path / "absent"),), {}, tmp_path, tmp_path / "out.log", tmp_path / "err.log")
    with pytest.raises(BenchctlError, match=r"cannot start .*absent.*No such file"), NodeProcess(spec):
        pass


def test_the_environment_is_exactly_the_given_one(command: Callable[..., Command]):
    spec = command("import os; print(sorted(set(os.environ) - {'LC_CTYPE'}), flush=True)")
    with NodeProcess(spec) as process:
        process.wait(DEADLINE_S)
    assert spec.stdout.read_text().strip() == "['WHERE']"


def test_the_tail_has_both_outputs(command: Callable[..., Command]):
    spec = command("import sys; print('a\\nb\\nc'); print('d', file=sys.stderr)")
    with NodeProcess(spec) as process:
        process.wait(DEADLINE_S)
        assert process.tail(2) == ["b", "c", "d"]
    assert last_lines(spec.cwd / "absent", 3) == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (1, "exited with status 1"),
        (-9, "was killed by signal 9 (SIGKILL)"),
        (137, "was killed by signal 9 (SIGKILL)"),
        (255, "exited with status 255"),
        (0, "exited with status 0"),
    ],
)
def test_exit_statuses_are_put_in_words(status: int, words: str):
    assert describe_exit(status) == words


AFFINE = "import os, signal; print(sorted(os.sched_getaffinity(0)), flush=True); signal.pause()"


def test_a_command_starts_on_its_cpus_and_benchctl_stays_on_its_own(command: Callable[..., Command]):
    mine = os.sched_getaffinity(0)
    last = max(mine)
    run = replace(command(AFFINE), cpus=(last,))
    with NodeProcess(run) as process:
        assert printed(run, 1) == [f"[{last}]"]
        assert psutil.Process(process.pid).cpu_affinity() == [last]
    assert os.sched_getaffinity(0) == mine


def test_a_command_on_a_cpu_that_is_not_there_does_not_start(command: Callable[..., Command]):
    with (
        pytest.raises(BenchctlError, match="Invalid argument"),
        NodeProcess(replace(command(SLEEPER), cpus=(4095,))),
    ):
        pass


def test_the_start_of_a_process_lies_on_the_monotonic_clock(command: Callable[..., Command]):
    before = time.monotonic_ns()
    with NodeProcess(command(SLEEPER)) as process:
        tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
        assert before - 2 * tick_ns < started_ns(process.pid) < time.monotonic_ns() + tick_ns


class Host:
    """A host of two CPUs, and a process, whose clocks a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.own = 0.0
        self.busy = [0.0, 0.0]
        self.waiting = 0.0
        monkeypatch.setattr(psutil, "cpu_times", self._times)

    def _times(self, **_: bool) -> list[SimpleNamespace]:
        zero = dict.fromkeys(("nice", "system", "irq", "softirq", "steal"), 0.0)
        return [SimpleNamespace(user=busy, iowait=self.waiting, **zero) for busy in self.busy]

    def wait(self, limit_s: float, own: float, busy: Sequence[float], waiting: float = 0.0) -> float:
        """Return how long a limit lasts, with so much of a second used in each."""
        patience = Patience(limit_s, lambda: self.own, clock=lambda: self.now)
        while not patience.is_over():
            self.now, self.own, self.waiting = self.now + 1, self.own + own, self.waiting + waiting
            self.busy = [before + each for before, each in zip(self.busy, busy, strict=True)]
        assert patience.waited_s == self.now
        return self.now


@pytest.mark.parametrize(
    ("own", "busy", "waiting", "lasts"),
    [
        (0.0, (0.0, 0.0), 0.0, 30),  # it hangs
        (0.5, (0.5, 0.0), 0.0, 60),  # it does something, half of the time
        (2.0, (1.0, 1.0), 0.0, 300),  # it spins: a tenth always counts
        (0.0, (1.0, 0.0), 0.0, 60),  # others have one of the CPUs
        (0.1, (1.0, 1.0), 0.0, 300),  # others have nearly all
        (0.0, (0.0, 0.0), 0.5, 60),  # a disk keeps it waiting
    ],
)
def test_a_limit_counts_the_time_in_which_processes_could_have_run_and_did_not(
    monkeypatch: pytest.MonkeyPatch, own: float, busy: tuple[float, float], waiting: float, lasts: float
):
    assert Host(monkeypatch).wait(30.0, own, busy, waiting) == pytest.approx(lasts, abs=1)


def test_the_limit_of_waits_is_a_variable():
    assert node_timeout_s({}) == 120
    assert node_timeout_s({"BENCHCTL_NODE_TIMEOUT": "5m"}) == 300
    with pytest.raises(UsageError, match="BENCHCTL_NODE_TIMEOUT"):
        node_timeout_s({"BENCHCTL_NODE_TIMEOUT": "soon"})


WORKER = """
import os, signal, time
if os.fork() == 0:
    while time.process_time() < 0.3: pass
    os._exit(0)
os.wait()
print('worked', flush=True)
signal.pause()
"""


def test_what_ended_children_used_counts(command: Callable[..., Command]):
    worker = command(WORKER)
    with NodeProcess(worker) as process:
        printed(worker, 1)
        assert process.used_s() > 0.2
        process.stop(DEADLINE_S)
        assert not process.was_killed
