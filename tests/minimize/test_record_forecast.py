"""What a search says before it starts, and once it knows its effect."""

import msgspec

from benchctl.minimize.candidates import Candidates, candidates_of
from benchctl.minimize.conduct import removal_forecast, start_forecast
from benchctl.minimize.record import Decision, Effect, MinimizeSpec, RemovalQuestion
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


def begun(*slower: float) -> Decision:
    return Decision(
        number=1,
        phase="whole",
        short=False,
        steps=(0, 1),
        tasks=("a", "b"),
        verdict="present",
        contender=tuple(100 * factor for factor in slower),
        reference=(100.0,) * len(slower),
        seconds=20.0 * len(slower),
    )


def removal(first: Decision, count: int) -> list[str]:
    question = RemovalQuestion(SPEC, [first], 2)
    return list(removal_forecast(first, question, count, needs_some=True))


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


def test_earlier_forks_say_what_would_be_seen() -> None:
    found = candidates()
    plan = make_plan(variants=(ES,), schedules=(found.challenge,), restart="never")
    forks = [
        make_fork("es", block, make_summary("range", 10 + block % 3, task=2), wall_s=15.0)
        for block in range(6)
    ]
    run = make_record("a", plan=plan, forks=tuple(forks), environment=make_environment())
    lines = list(start_forecast(SPEC, found, plan, collect_history([run], plan, "f")))
    assert "forks of the whole schedule took 15 s here" in lines
    assert "had a CV of 8.2 %" in lines[2]
    assert "would be confirmed" in lines[2]


def test_a_known_effect_says_how_long_the_rest_takes() -> None:
    lines = removal(begun(0.7, 0.71, 0.69, 0.7, 0.7), 2)
    assert len(lines) == 1
    assert lines[0].startswith(
        "about 2 questions more if two steps matter, each of about 3 pairs of forks: 2 min"
    )


def test_forks_that_differ_too_much_are_said_to() -> None:
    lines = removal(begun(0.5, 1.1, 0.6, 1.2, 0.5), 2)
    assert "each of about 12 pairs" in lines[0]
    assert "stay open" in lines[1]


def test_a_single_step_leaves_no_question() -> None:
    assert removal(msgspec.structs.replace(begun(0.7, 0.71, 0.69), steps=(0,)), 1) == []
