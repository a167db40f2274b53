"""HotSpot's words, sorted."""

import pytest

from benchctl.evidence.inlining_tree import HOT_REFUSALS, Fate, fate_of


@pytest.mark.parametrize(
    ("words", "fate", "outcome"),
    [
        ("inline (hot)", Fate.HOT, "inlined"),
        ("inline (hot)   inline (hot)", Fate.HOT, "inlined"),
        ("inline", Fate.PLAIN, "inlined"),
        ("force inline by annotation", Fate.FORCED, "inlined"),
        ("accessor", Fate.ACCESSOR, "inlined"),
        ("(intrinsic, virtual)", Fate.INTRINSIC, "inlined"),
        ("intrinsic", Fate.INTRINSIC, "inlined"),
        ("virtual call", Fate.VIRTUAL, "virtual"),
        ("failed to inline: virtual call", Fate.VIRTUAL, "virtual"),
        ("no static binding", Fate.NO_STATIC_BINDING, "virtual"),
        ("too big", Fate.TOO_BIG, "refused"),
        ("hot method too big", Fate.HOT_TOO_BIG, "refused"),
        ("already compiled into a big method", Fate.IN_BIG, "refused"),
        ("failed to inline: already compiled into a medium method", Fate.IN_MEDIUM, "refused"),
        ("callee is too large", Fate.CALLEE_TOO_LARGE, "refused"),
        ("low call site frequency", Fate.RARE, "refused"),
        ("call site not reached", Fate.NOT_REACHED, "refused"),
        ("executed < MinInliningThreshold times", Fate.FEW_EXECUTIONS, "refused"),
        ("recursive inlining is too deep", Fate.RECURSIVE_TOO_DEEP, "refused"),
        ("inlining too deep", Fate.TOO_DEEP, "refused"),
        ("size > DesiredMethodLimit", Fate.DESIRED_LIMIT, "refused"),
        ("NodeCountInliningCutoff", Fate.NODE_COUNT, "refused"),
        ("native method", Fate.NATIVE, "refused"),
        ("not inlineable", Fate.NOT_INLINEABLE, "refused"),
        ("unloaded signature classes", Fate.UNLOADED_SIGNATURE, "refused"),
        ("exception method", Fate.EXCEPTION, "refused"),
        ("don't inline Throwable constructors", Fate.THROWABLE, "refused"),
        ("something of a later JDK", Fate.OTHER, "unknown"),
        ("inlined perhaps", Fate.OTHER, "unknown"),
        ("", Fate.OTHER, "unknown"),
    ],
)
def test_words_have_a_fate_and_an_outcome(words: str, fate: Fate, outcome: str):
    assert fate_of(words) is fate
    assert fate.outcome == outcome


def test_refusals_of_hot_calls_are_refusals():
    assert {fate.outcome for fate in HOT_REFUSALS} == {"refused"}
