from collections import Counter

from benchctl.corpus import tables
from benchctl.corpus.tables import AGENT_IDS, MODIFIERS, NOUNS, PROCESSES, RARE_STREAMS, REGIONS


def test_words_are_distinct_and_plain():
    for words in (NOUNS, MODIFIERS):
        assert len(set(words)) == len(words)
        assert all(word.isascii() and word.isalpha() and word.islower() for word in words)


def test_every_name_is_made_in_one_way_only():
    counts = Counter(modifier + noun for modifier in MODIFIERS for noun in NOUNS)
    assert max(counts.values()) == 1
    assert not counts.keys() & set(RARE_STREAMS)


def test_words_of_the_operations_are_nouns():
    assert {"monkey", "jackal", "bear"} <= set(NOUNS)


def test_cardinalities():
    assert (len(PROCESSES), len(REGIONS), len(AGENT_IDS)) == (7, 25, 10)
    assert len(set(REGIONS)) == 25
    assert len(set(AGENT_IDS)) == 10


def test_tables_hold_what_they_say():
    pairs, names, closing = tables.noun_pairs(), tables.streams(), tables.closing_words()
    assert len(pairs) == 1 + len(NOUNS) ** 2
    assert pairs[0] == closing[0] == b""
    assert pairs[2] == f" {NOUNS[0]} {NOUNS[1]}".encode()
    assert names[len(NOUNS)] == f"{MODIFIERS[1]}{NOUNS[0]}".encode()
    assert names[-3:].tolist() == [name.encode() for name in RARE_STREAMS]
    assert closing[-1] == f" {MODIFIERS[-1]}{NOUNS[-1]}".encode()
    assert tables.clock()[[0, 86_399]].tolist() == [b"00:00:00", b"23:59:59"]
    assert tables.octet_pairs()[256] == b"1-0"
