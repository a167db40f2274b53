"""Notes of a search before it starts."""

from benchctl.search.candidates import Candidates, candidates_of
from benchctl.search.minimize import start_forecast
from benchctl.search.record import Effect, MinimizeSpec
from benchctl.stats.history import History, collect_history
from benchctl.track.load import load_challenge, load_track
from builders import ES, make_environment, make_fork, make_plan, make_record, make_summary

SPEC = MinimizeSpec(
    effect=Effect("range", "slower", "es"),
    metric="throughput",
    by=None,
    most_forks=12,
    prefix_iterations=None,
    budget_s=None,
    alpha=0.05,
)
NOTHING = History(noises={}, fork_s={}, hidden=frozenset(), forks=0, runs=())


def candidates(name: str = "big5rangedebug") -> Candidates:
    track, _ = load_track("big5", {})
    challenge, _ = load_challenge(name, track, {})
    return candidates_of(challenge, "range", track.operations, None)


def test_questions_are_counted_before_anything_is_known() -> None:
    lines = list(start_forecast(SPEC, candidates(), make_plan(), NOTHING))
    assert len(lines) == 1
    assert lines[0].startswith(
        "2 steps before range: about 4 questions where two of them matter, at most 10;"
    )
    assert lines[0].endswith("from 3 to 12 pairs of forks")


def test_a_schedule_that_lasts_by_its_own_rates_says_how_long() -> None:
    lines = list(start_forecast(SPEC, candidates("big5"), make_plan(), NOTHING))
    assert "16 steps before range" in lines[0]
    # 17 tasks of 300 requests, two a second.
    assert "at least 42 min 30 s" in lines[1]


def test_earlier_forks_say_how_long_the_whole_schedule_takes_and_what_would_be_confirmed() -> None:
    found = candidates()
    plan = make_plan(variants=(ES,), schedules=(found.challenge,), restart="never")
    forks = [
        make_fork("es", block, make_summary("range", 10 + block % 3, task=2), wall_s=15.0)
        for block in range(6)
    ]
    run = make_record("a", plan=plan, forks=tuple(forks), environment=make_environment())
    lines = list(start_forecast(SPEC, found, plan, collect_history([run], plan, "f")))
    assert "forks of the whole schedule took 15 s here" in lines
    assert lines[2].startswith("forks of range had a CV of 8.2 % here: effects from 22.9 %")
