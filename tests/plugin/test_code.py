"""Which files a plug-in consists of; consent is to their very content, and can be taken back."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.plugin import code as module
from benchctl.plugin.code import Consent, read_code, refusal
from benchctl.track.operations.catalogue import find_plugin
from plugins import PLUGIN, code_in, executed, write_track


def test_reading_a_plug_in_executes_nothing(tmp_path: Path):
    code = code_in(tmp_path / "books")
    assert (code.package, code.main, code.path) == ("books", "track", tmp_path / "books" / "track.py")
    assert not executed(tmp_path / "books")


def test_a_track_without_one_has_none(tmp_path: Path):
    assert read_code(write_track(tmp_path / "books", {"helper.py": ""})) is None


def test_a_workload_py_is_one(tmp_path: Path):
    assert code_in(tmp_path / "books", {"workload.py": PLUGIN}).main == "workload"


def test_every_python_file_of_the_folder_belongs_to_it_and_nothing_hidden(tmp_path: Path):
    files = {
        "track.py": "",
        "a/b.py": "",
        "_tools/c.py": "",
        ".venv/d.py": "",
        "__pycache__/e.py": "",
        "terms.txt": "",
    }
    assert set(code_in(tmp_path / "books", files).files) == {
        "books/track.py",
        "books/a/b.py",
        "books/_tools/c.py",
    }


def test_packages_beside_the_track_belong_to_it_when_it_imports_them(tmp_path: Path):
    write_track(tmp_path / "shared", {"sources/__init__.py": "import further.deep", "unused.py": ""})
    write_track(tmp_path / "further", {"deep.py": ""})
    write_track(tmp_path / "other", {"never.py": ""})
    (tmp_path / "single.py").write_text("", encoding="utf-8")
    plugin = """
        def later():
            from shared.sources import x
            import single, json, esrally, numpy
    """
    code = code_in(tmp_path / "books", {"track.py": plugin})
    assert set(code.files) == {
        "books/track.py",
        "shared/sources/__init__.py",
        "shared/unused.py",
        "further/deep.py",
        "single.py",
    }
    assert code.names == {"books", "shared", "further", "single"}


def test_a_folder_beside_it_never_stands_for_a_module_of_pythons_own_or_of_rallys(tmp_path: Path):
    for name in ("random", "esrally"):
        write_track(tmp_path / name, {"__init__.py": ""})
    code = code_in(tmp_path / "books", {"track.py": "import random\nimport esrally"})
    assert set(code.files) == {"books/track.py"}


def test_a_changed_byte_anywhere_changes_the_digest(tmp_path: Path):
    before = code_in(tmp_path / "books", {"track.py": "from . import a", "a.py": "x = 1"}).digest
    assert code_in(tmp_path / "books", {"a.py": "x = 2"}).digest != before
    assert code_in(tmp_path / "books", {"a.py": "x = 1"}).digest == before
    assert code_in(tmp_path / "books", {"b.py": ""}).digest != before


def test_a_file_that_is_no_python_is_read_all_the_same(tmp_path: Path):
    assert code_in(tmp_path / "books", {"track.py": "def ("}).files == {"books/track.py": b"def ("}


def test_a_pipe_and_a_nesting_beyond_reason_hold_nothing_up(tmp_path: Path):
    folder = write_track(tmp_path / "books", {"track.py": f"x = {'-' * 200_000}1"})
    os.mkfifo(folder / "pipe.py")
    code = read_code(folder)
    assert code is not None
    assert set(code.files) == {"books/track.py"}
    assert find_plugin(folder) is not None


names = st.text("ab", min_size=1, max_size=3)
contents = st.binary(max_size=3)


@given(st.dictionaries(names, contents, max_size=3), st.dictionaries(names, contents, max_size=3))
def test_two_different_plug_ins_have_two_digests(one: dict[str, bytes], other: dict[str, bytes]):
    digests = [module._digest("track.py", files) for files in (one, other)]
    assert (digests[0] == digests[1]) == (one == other)


def test_more_files_than_a_plug_in_can_have_are_refused(tmp_path: Path):
    folder = write_track(tmp_path / "books", {"track.py": ""})
    for number in range(module._MOST_FILES):
        (folder / f"m{number}.py").touch()
    with pytest.raises(UsageError, match="more than 2,000 Python files"):
        read_code(folder)


def test_its_description_begins_with_the_main_file(tmp_path: Path):
    files = {"track.py": "", **{f"a{number}.py": "" for number in range(7)}}
    said = code_in(tmp_path / "books", files).describe()
    assert said == (
        f"8 files in {tmp_path}: books/track.py, books/a0.py, books/a1.py, books/a2.py, books/a3.py, "
        "books/a4.py and 2 more"
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_nobody_has_consented_at_first_and_consent_for_one_command_is_not_remembered(
    tmp_path: Path, home: Home
):
    code = code_in(tmp_path / "books")
    assert not Consent(home).covers(code)
    assert Consent(home, given=True).covers(code)
    assert not Consent(home).covers(code)


def test_a_remembered_consent_lasts_until_a_file_changes(tmp_path: Path, home: Home):
    code = code_in(tmp_path / "books", {"track.py": "x = 1"})
    Consent(home).remember(code)
    assert Consent(home).covers(code)
    changed = code_in(tmp_path / "books", {"track.py": "x = 2"})
    assert not Consent(home).covers(changed)
    assert Consent(home).covers(code_in(tmp_path / "books", {"track.py": "x = 1"}))


def test_taking_consent_back_covers_what_the_plug_in_was_before(tmp_path: Path, home: Home):
    before = code_in(tmp_path / "books", {"track.py": "x = 1"})
    other = code_in(tmp_path / "other", {"track.py": "y = 1"})
    Consent(home).remember(before)
    Consent(home).remember(other)
    now = code_in(tmp_path / "books", {"track.py": "x = 2"})
    assert Consent(home).forget(now) == 1
    assert not Consent(home).covers(before)
    assert Consent(home).covers(other)
    assert Consent(home).forget(now) == 0


def test_a_damaged_record_of_consent_is_no_hindrance(tmp_path: Path, home: Home):
    (home.trusted / "x.json").write_text("[", encoding="utf-8")
    (home.trusted / "y.json").write_text("[]", encoding="utf-8")
    assert Consent(home).forget(code_in(tmp_path / "books")) == 0


def test_a_refusal_names_the_files_and_both_ways_to_consent(tmp_path: Path):
    code = code_in(tmp_path / "books", {"track.py": "", "a.py": ""})
    said = str(refusal("something needs it", code))
    assert said.startswith("something needs it\n")
    assert "books/track.py, books/a.py" in said
    assert "--trust" in said
    assert f"benchctl track trust {tmp_path / 'books'}" in said
    assert refusal("something needs it", None).hint == ""
