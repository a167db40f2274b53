"""Steps of a preparation side by side: their results and progress, a failure, Ctrl-C."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable

import pytest

from benchctl.errors import BenchctlError, ExitCode
from benchctl.run import bench
from benchctl.run.bench import SharedObserver, side_by_side
from observed import Told
from waiting import DEADLINE_S, eventually


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def observer(told: Told) -> SharedObserver:
    return SharedObserver(told)


def reporting(observer: SharedObserver, begun: threading.Event) -> Callable[[], None]:
    """A step that works, and reports, until it is interrupted."""

    def step() -> None:
        begun.set()
        observer.stage("working")
        eventually(lambda: observer.progress("documents", 1, 0))

    return step


@pytest.mark.parametrize("steps", [1, 3])
def test_results_come_in_order_from_steps_at_the_same_time(observer: SharedObserver, steps: int):
    together = threading.Barrier(steps)

    def step(number: int) -> int:
        together.wait(DEADLINE_S)
        return number

    assert side_by_side([lambda n=n: step(n) for n in range(steps)], observer) == [*range(steps)]


def test_a_step_that_fails_ends_the_others(observer: SharedObserver):
    begun = threading.Event()

    def fail() -> None:
        begun.wait(DEADLINE_S)
        raise BenchctlError("no disk")

    with pytest.raises(BenchctlError, match="no disk"):
        side_by_side([fail, reporting(observer, begun)], observer)


@pytest.mark.parametrize("kept", [True, False])
def test_ctrl_c_ends_all_steps_and_says_what_they_kept(observer: SharedObserver, told: Told, *, kept: bool):
    begun = [threading.Event(), threading.Event()]

    def keeping(step: Callable[[], None]) -> Callable[[], None]:
        def keep() -> None:
            try:
                step()
            except KeyboardInterrupt as err:
                raise BenchctlError("kept", exit_code=ExitCode.INTERRUPTED) from err

        return keep if kept else step

    def press() -> None:
        eventually(lambda: len(told.steps) > 20)  # so long that both are waited for
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    with pytest.raises(BenchctlError if kept else KeyboardInterrupt):
        side_by_side([keeping(reporting(observer, one)) for one in begun], observer)
    pressing.join()
    assert told.notes == (["kept"] if kept else [])


def test_a_process_that_a_step_waits_for_is_ended(observer: SharedObserver, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bench, "_HALT_S", 0.05)
    begun, codes = threading.Event(), []

    def wait() -> None:
        with subprocess.Popen(["/bin/sleep", "60"]) as process:
            begun.set()
            codes.append(process.wait())

    def fail() -> None:
        begun.wait(DEADLINE_S)
        raise BenchctlError("no disk")

    with pytest.raises(BenchctlError, match="no disk"):
        side_by_side([wait, fail], observer)
    assert codes == [-signal.SIGTERM]


def test_a_second_ctrl_c_ends_the_processes_at_once(observer: SharedObserver):
    begun, codes = threading.Event(), []

    def wait() -> None:
        with subprocess.Popen(["/bin/sleep", "60"]) as process:
            begun.set()
            codes.append(process.wait())

    def press() -> None:
        for pressed in (begun, observer.halted):
            pressed.wait(DEADLINE_S)
            # Interrupts the wait for the steps, not the moment before it.
            time.sleep(0.2)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        side_by_side([wait, begun.wait], observer)
    pressing.join()
    assert codes == [-signal.SIGTERM]
    assert time.monotonic() - started < bench._HALT_S
