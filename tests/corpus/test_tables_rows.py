import numpy as np

from benchctl.corpus.big5 import RowLayout


def test_gaps_are_filled_and_padding_goes():
    layout = RowLayout("a<x>b<y><x>\n")
    columns = {"x": np.array([b"1", b"22", b""]), "y": np.array([b"", b"-", b"--"])}
    assert layout.lines(3, columns) == b"a1b1\na22b-22\nab--\n"


def test_a_smaller_block_after_a_larger_one_leaves_no_traces():
    layout = RowLayout("<x>.")
    assert layout.lines(3, {"x": np.array([b"aaa", b"bbb", b"ccc"])}) == b"aaa.bbb.ccc."
    assert layout.lines(1, {"x": np.array([b"d"], "S3")}) == b"d."
    assert layout.lines(4, {"x": np.array([b"", b"1", b"22", b"333"])}) == b".1.22.333."
