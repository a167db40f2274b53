from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.nightly.install import bound_log


def test_a_short_log_and_none_are_left_alone(tmp_path: Path):
    path = tmp_path / "nightly.log"
    assert not bound_log(path)
    path.write_text("night 1\n")
    assert not bound_log(path)
    assert path.read_text() == "night 1\n"


def test_a_log_that_cannot_be_cut_is_left_alone(tmp_path: Path):
    assert not bound_log(tmp_path)


@given(lines=st.lists(st.text("ab", max_size=30), min_size=20, max_size=200))
def test_the_newest_lines_of_a_long_log_are_kept_whole(
    lines: list[str], tmp_path_factory: pytest.TempPathFactory
):
    path = tmp_path_factory.mktemp("log") / "nightly.log"
    text = "".join(f"{line}\n" for line in lines)
    path.write_text(text)
    cut = bound_log(path, most=300, kept=100)
    assert cut == (len(text) > 300)
    if cut:
        first, _, rest = path.read_text().partition("\n")
        assert first == "[older lines were removed]"
        assert text.endswith(f"\n{rest}")
        assert len(rest) <= 100
        assert len(rest) > 100 - 32


def test_a_process_that_appends_goes_on_behind_what_was_kept(tmp_path: Path):
    path = tmp_path / "nightly.log"
    with path.open("ab", buffering=0) as appending:
        appending.write(b"old\n" * 100 + b"kept\n")
        assert bound_log(path, most=100, kept=6)
        appending.write(b"new\n")
    assert path.read_bytes() == b"[older lines were removed]\nkept\nnew\n"
