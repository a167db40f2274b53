from collections import Counter

from benchctl.corpus.tables import MODIFIERS, NOUNS, RARE_STREAMS


def test_every_name_is_made_in_one_way_only():
    counts = Counter(modifier + noun for modifier in MODIFIERS for noun in NOUNS)
    assert max(counts.values()) == 1
    assert not counts.keys() & set(RARE_STREAMS)
