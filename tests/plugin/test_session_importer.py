"""Plug-ins import their own modules, and what benchctl stands in for, and leave nothing behind."""

import os
import py_compile
import re
import sys
import tomllib
from pathlib import Path

import pytest

from benchctl.plugin.code import read_code
from benchctl.plugin.session import BROUGHT_BY_RALLY, Loaded, PluginError
from golden import Cases
from plugins import load_in, write_track

REGISTER = "\ndef register(registry):\n    registry.register_param_source('x', value)\n"


def value_of(loaded: Loaded) -> object:
    return loaded.registry.param_sources["x"]


@pytest.mark.parametrize(
    "statement",
    [
        "from .helper import value",
        "from . import helper; value = helper.value",
        "from books.helper import value",
        "import books.helper; value = books.helper.value",
        "import books.helper as h; value = h.value",
        "from books import helper; value = helper.value",
        "from .inner.deep import value",
        "from books.inner import deep; value = deep.value",
        "from shared.things import value",
        "import shared.things as t; value = t.value",
        "from .helper import *",
    ],
)
def test_its_own_modules_are_found_by_every_kind_of_import(tmp_path: Path, statement: str):
    write_track(tmp_path / "shared", {"things.py": "value = 7"})
    files = {
        "track.py": statement + REGISTER,
        "helper.py": "value = 7",
        "inner/deep.py": "from ..helper import value",
    }
    assert value_of(load_in(tmp_path / "books", files)) == 7


def test_imports_within_functions_work_when_these_are_called(tmp_path: Path):
    files = {
        "track.py": "def value():\n    from .helper import value\n    from esrally import exceptions\n"
        "    return value, exceptions.DataError" + REGISTER,
        "helper.py": "value = 7",
    }
    found = value_of(load_in(tmp_path / "books", files))
    assert callable(found)
    number, error = found()
    assert (number, error.__name__) == (7, "DataError")


def test_what_was_read_is_executed_and_not_what_lies_there_now(tmp_path: Path):
    folder = write_track(tmp_path / "books", {"track.py": "value = 1" + REGISTER})
    code = read_code(folder)
    assert code is not None
    (folder / "track.py").write_text("value = 2" + REGISTER, encoding="utf-8")
    assert value_of(Loaded(code, "test")) == 1


def test_a_compiled_file_beside_it_is_not_executed(tmp_path: Path):
    folder = write_track(
        tmp_path / "books", {"track.py": "from .a import value" + REGISTER, "a.py": "value = 2"}
    )
    py_compile.compile(str(folder / "a.py"), doraise=True)
    stamp = (folder / "a.py").stat()
    (folder / "a.py").write_text("value = 1", encoding="utf-8")
    os.utime(folder / "a.py", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert value_of(load_in(tmp_path / "books", {})) == 1


def test_public_names_stay_out_of_the_modules_of_python(tmp_path: Path):
    write_track(tmp_path / "shared", {"things.py": "value = 7"})
    before = set(sys.modules)
    plugin = "import esrally\nfrom shared.things import value" + REGISTER
    loaded = load_in(tmp_path / "books", {"track.py": plugin})
    new = set(sys.modules) - before
    assert new
    assert all(name.startswith("benchctl_plugin_") for name in new)
    loaded.close()
    assert set(sys.modules) == before


def test_a_plug_in_that_failed_leaves_no_module_behind(tmp_path: Path):
    before = set(sys.modules)
    with pytest.raises(PluginError):
        load_in(tmp_path / "books", {"track.py": "from .a import x\n1 / 0", "a.py": "x = 1"})
    assert set(sys.modules) == before


def test_a_dataclass_with_annotations_as_text_finds_its_module(tmp_path: Path):
    plugin = """
        from __future__ import annotations
        from dataclasses import dataclass
        from typing import ClassVar

        @dataclass
        class Spec:
            kind: ClassVar[str] = "x"
            number: int = 7

        value = Spec().number
    """
    folder = write_track(tmp_path / "books", {"track.py": plugin})
    with (folder / "track.py").open("a", encoding="utf-8") as file:
        file.write(REGISTER)
    assert value_of(load_in(tmp_path / "books", {})) == 7


def test_what_is_wrong_is_one_line_with_its_place(cases: Cases, tmp_path: Path):
    cases(
        "plugin",
        lambda plugin: load_in(tmp_path / "books", {"track.py": plugin, "a.py": "\n{}['lost']"}),
        tmp_path,
    )


def test_what_it_prints_stays_out_of_the_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    plugin = "import sys\nprint('a', 'b', sep='-')\nprint('c', file=sys.stdout)\ndef register(r): pass"
    load_in(tmp_path / "books", {"track.py": plugin})
    assert capsys.readouterr() == ("c\n", "a-b\n")


def test_a_missing_package_is_named_with_what_to_do(tmp_path: Path):
    with pytest.raises(PluginError) as caught:
        load_in(tmp_path / "books", {"track.py": "import nowhere_to_be_found.x"})
    assert (
        "track.py:1: loading track.py failed: No module named 'nowhere_to_be_found'" in caught.value.message
    )
    assert caught.value.hint == "install the package with 'nowhere_to_be_found' in benchctl's environment"


def test_a_missing_package_that_rally_brings_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    brought = {re.split(r"\W", text)[0] for text in project["optional-dependencies"]["tracks"]}
    assert brought == BROUGHT_BY_RALLY
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(PluginError) as caught:
        load_in(tmp_path / "books", {"track.py": "from aiohttp import web"})
    assert "benchctl[tracks]" in caught.value.hint
