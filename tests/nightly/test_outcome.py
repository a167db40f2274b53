from benchctl.nightly.model import FindingStatus
from benchctl.nightly.screening import Screened
from benchctl.nightly.simulation import Delay, Process, Replayed, ReplayedFinding, outcome_of

SCREENED = Screened(("step",), "slower", 10.0, 5.0, 15.0, 9, 2.3, 0.095, 10, 9)


def finding(series: int, night: int, status: FindingStatus, *, real: bool = True) -> ReplayedFinding:
    return ReplayedFinding(series, night, SCREENED, status, 10 if status != "held" else 0, real)


def test_delays_count_from_the_night_of_the_change_and_the_first_that_shows_it_is_one():
    found = (
        finding(0, 10, "refuted"),
        finding(0, 12, "confirmed"),
        finding(1, 13, "confirmed"),
        finding(1, 14, "confirmed"),
        finding(2, 9, "confirmed"),
        finding(2, 11, "confirmed", real=False),
    )
    outcome = outcome_of(Replayed(4, 20, found, 1), Process(series=4, nights=20, step=0.1, step_night=10))
    assert outcome.until_screened == Delay(median=4, p90=None, seen=2, of=4)
    assert outcome.until_alarm == Delay(median=4, p90=None, seen=2, of=4)
    assert (outcome.alarms, outcome.false_alarms, outcome.recoveries) == (5, 1, 1)
    assert (outcome.confirmations, outcome.forks) == (6, 60)
    assert outcome.screened == {"refuted": 1, "confirmed": 5}


def test_without_a_change_there_are_no_delays():
    for process in (Process(), Process(nights=20, step=0.1, step_night=21)):
        outcome = outcome_of(Replayed(1, 20, (finding(0, 3, "held"),), 0), process)
        assert (outcome.until_screened, outcome.until_alarm, outcome.confirmations) == (None, None, 0)
