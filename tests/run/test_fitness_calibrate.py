"""A calibration starts its own server and leaves none behind; a record keeps what it found."""

import multiprocessing
import threading

import msgspec
import psutil
import pytest

from benchctl.errors import BenchctlError
from benchctl.results.figures import Calibration, PacedLag
from benchctl.results.model import RunRecord
from benchctl.run.fitness import calibrate
from builders import make_driver, make_fork, make_record, make_summary
from observed import Told


def test_a_calibration_that_is_stopped_leaves_no_server_behind():
    stop, told = threading.Event(), Told()
    stop.set()
    with pytest.raises(BenchctlError, match="was ended before"):
        calibrate(told, stop)
    assert told.stages == ["calibration: what the driver itself costs"]
    assert not multiprocessing.active_children()


def test_a_record_keeps_the_calibration_and_what_the_driver_did():
    paced = (PacedLag(100.0, 1, 2, 3),)
    calibration = Calibration(41_000, 95_000, 28_400, 14_800.5, 8, 30_120.0, paced, 2.9)
    fork = make_fork("es", 0, make_summary("range", 5.0, driver=make_driver(possible_per_s=100.0)))
    record = make_record(calibration=calibration, forks=(fork,))
    assert msgspec.json.decode(msgspec.json.encode(record), type=RunRecord) == record
