"""HotSpot's words, sorted."""

from benchctl.evidence.inlining_tree import HOT_REFUSALS, fate_of
from golden import Cases


def test_words_have_a_fate_and_an_outcome(cases: Cases):
    cases("fates", lambda words: f"{fate_of(words).name}: {fate_of(words).outcome}")


def test_refusals_of_hot_calls_are_refusals():
    assert {fate.outcome for fate in HOT_REFUSALS} == {"refused"}
