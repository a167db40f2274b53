"""The driver's floor on this machine, for a run's record or for its own sake."""

import threading

from benchctl.load.floor import floor_stub, measure_floor
from benchctl.results.figures import Calibration
from benchctl.run.observer import Observer


def calibrate(observer: Observer, stop: threading.Event) -> Calibration:
    """Start the built-in server, measure the driver against it, and stop it; about three seconds.

    Nothing else may be measuring on this host meanwhile: call it with the host lock held.

    Args:
        observer: told what happens.
        stop: ends it with an error.

    Raises:
        BenchctlError: the server did not start, a request failed, or it was stopped.
    """
    observer.stage("calibration: what the driver itself costs")
    with floor_stub() as base_url:
        return measure_floor(base_url, stop=stop)
