"""What the generator says about its documents, against the documents themselves."""

import datetime as dt
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.corpus.big5 import KEYWORDS, NUMBERS, Slice, blocks, counts, keyword_texts, knows_word
from benchctl.corpus.tables import NOUNS
from plain_search import Document, documents

SIZE = 30_000


@pytest.fixture(scope="module")
def corpus() -> list[Document]:
    return documents(SIZE, seed=5)


slices = (
    st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(sorted).map(lambda cut: Slice(5, SIZE, *cut))
)


@settings(deadline=None, max_examples=25)
@given(part=slices, field=st.sampled_from(KEYWORDS))
def test_counts_of_a_slice_are_those_of_its_documents(corpus: list[Document], part: Slice, field: str):
    assert counts(part, field) == Counter(document[field] for document in corpus[part.start : part.stop])


@pytest.mark.parametrize("field", NUMBERS)
def test_numbers_are_those_of_the_documents(corpus: list[Document], field: str):
    found = [value for block in blocks(Slice(5, SIZE, 0, SIZE)) for value in block.numbers(field).tolist()]
    values = [document[field] for document in corpus]
    if field == "@timestamp":
        values = [round(dt.datetime.fromisoformat(value).timestamp() * 1000) for value in values]
    assert found == values


@pytest.mark.parametrize("field", KEYWORDS)
def test_keywords_are_those_of_the_documents(corpus: list[Document], field: str):
    texts = keyword_texts(field)
    places = [place for block in blocks(Slice(5, SIZE, 0, SIZE)) for place in block.keywords(field).tolist()]
    assert [texts[place] for place in places] == [document[field] for document in corpus]


@pytest.mark.parametrize("words", [("monkey", "jackal", "bear"), ("zephyr",)])
def test_messages_with_a_word_are_those_of_the_documents(corpus: list[Document], words: tuple[str, ...]):
    assert all(map(knows_word, words))
    found = [flag for block in blocks(Slice(5, SIZE, 0, SIZE)) for flag in block.with_words(words).tolist()]
    assert found == [bool(set(words) & document["message.words"]) for document in corpus]


def test_a_word_that_names_or_processes_hold_is_not_known():
    assert "kernel" in NOUNS
    assert not knows_word("kernel")  # every message of a process of this name holds it
    assert not knows_word("garnet")  # names begin with it
    assert not knows_word("unheardof")


def test_what_is_no_column_is_a_key_error():
    (block, *_) = blocks(Slice(1, 100, 0, 100))
    for ask in (block.numbers, block.keywords, keyword_texts):
        with pytest.raises(KeyError, match=r"event\.id"):
            ask("event.id")


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (4, 3), (0, 11)])
def test_slices_outside_of_the_corpus_are_refused(start: int, stop: int):
    with pytest.raises(ValueError, match="not a slice"):
        list(blocks(Slice(1, 10, start, stop)))
