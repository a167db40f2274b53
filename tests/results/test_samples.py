"""Packed rows become columns, and small pieces become chunks."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.results.samples import (
    ROW_DTYPE,
    ROW_FIELDS,
    SAMPLE_DTYPES,
    Columns,
    Place,
    columns_of,
    concatenate,
    empty_columns,
    gathered,
    select,
)


def piece(*takes: int) -> Columns:
    made = empty_columns(len(takes))
    made["took_ms"][:] = takes
    return made


def test_columns_join_and_select():
    first, second = empty_columns(2), empty_columns(1)
    second["task"][:] = 4
    both = concatenate([first, second])
    assert both["task"].tolist() == [0, 0, 4]
    assert select(both, both["task"] == 4)["task"].tolist() == [4]
    assert concatenate([])["task"].shape == (0,)


def test_a_row_and_its_place_are_all_of_a_sample():
    assert {*ROW_FIELDS, "schedule", "task", "boot", "client"} == SAMPLE_DTYPES.keys()


def test_clocks_count_from_the_origin_and_durations_do_not():
    rows = np.zeros(2, ROW_DTYPE)
    for name in ROW_FIELDS:
        rows[name] = 1
    rows["start_ns"] = [1_005, 1_007]
    found = columns_of(rows, Place(origin_ns=1_000, schedule=-1, task=2, boot=3, client=4))
    assert {name: values.dtype for name, values in found.items()} == dict(SAMPLE_DTYPES)
    assert found["start_ns"].tolist() == [5, 7]
    assert (found["end_ns"] + 999 == 0).all()
    assert (found["processing_ns"] == 1).all()
    assert [found[name][1] for name in ("schedule", "task", "boot", "client")] == [-1, 2, 3, 4]


@pytest.mark.parametrize("field", ["client", "end_ns", "took_ms"])
def test_columns_are_no_view_of_the_rows(field: str):
    rows = np.zeros(1, ROW_DTYPE)
    found = columns_of(rows, Place(0, 0, 0, 0, 0))
    rows["end_ns"], rows["took_ms"] = 9, 9
    assert found[field].tolist() == [0]
    assert found[field].flags.c_contiguous


@given(sizes=st.lists(st.integers(0, 10)), most=st.integers(10, 30))
def test_pieces_are_joined_in_order_and_no_chunk_is_too_large_or_empty(sizes: list[int], most: int):
    pieces = [piece(*range(number, number + size)) for number, size in enumerate(sizes)]
    chunks = list(gathered(pieces, most))
    counts = [chunk["took_ms"].size for chunk in chunks]
    assert all(0 < count <= most for count in counts)
    assert all(left + right > most for left, right in pairwise(counts))
    assert concatenate(chunks)["took_ms"].tolist() == concatenate(pieces)["took_ms"].tolist()
