"""Parameters from files and from the command line, as values that templates can write as JSON."""

from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.track.template import parse_params, parse_rally_params, read_parameter_files
from foreign_tracks import write_files
from golden import Cases


def test_params_are_json_where_they_can_be():
    assert parse_params(["a=1", "b=1.5", "c=true", "d=x=y", "e="]) == {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": "x=y",
        "e": "",
    }
    for bad in (["a"], ["=1"], ["a=1", "a=2"]):
        with pytest.raises(UsageError):
            parse_params(bad)


def test_json_and_yaml_files_are_read_and_later_ones_win(tmp_path: Path):
    write_files(
        tmp_path,
        {
            "a.json": '{\n\t"bulk_size": 5e2, "codec": "x", "deep": {"n": [1]}}',
            "b.yml": "codec: y\nfrom: '2023-01-02'\nonly: false\n",
            "empty.yml": "",
        },
    )
    found = read_parameter_files(tmp_path / name for name in ("a.json", "b.yml", "empty.yml"))
    assert found == {
        "bulk_size": 500,
        "codec": "y",
        "deep": {"n": [1]},
        "from": "2023-01-02",
        "only": False,
    }


def test_other_files_are_refused_by_name(cases: Cases, tmp_path: Path):
    def read(text: str) -> object:
        return read_parameter_files([write_files(tmp_path, {"p.yml": text}) / "p.yml"])

    cases("parameter_files", read, tmp_path)
    with pytest.raises(UsageError, match="cannot read"):
        read_parameter_files([tmp_path / "none.yml"])


def test_rallys_spelling_has_rallys_types():
    assert parse_rally_params("a:1, b:2.5,c:true,d:No,e:'3',f:x:y,g:") == {
        "a": 1,
        "b": 2.5,
        "c": True,
        "d": False,
        "e": "3",
        "f": "x:y",
        "g": "",
    }
    assert parse_rally_params(' {"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}


def test_rallys_parameters_may_be_a_file(tmp_path: Path):
    path = write_files(tmp_path, {"p.json": '{"clients": 3}'}) / "p.json"
    assert parse_rally_params(str(path)) == {"clients": 3}
    with pytest.raises(UsageError, match="cannot read"):
        parse_rally_params("none.json")
    strange = write_files(tmp_path, {"a:b.json": '{"clients": 4}'}) / "a:b.json"
    assert parse_rally_params(str(strange)) == {"clients": 4}
    assert parse_rally_params("shards:3,body:indices/large.json") == {
        "shards": 3,
        "body": "indices/large.json",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clients=3", "clients=3: expected NAME:VALUE"),
        (":3", "expected NAME:VALUE"),
        ("{", "--track-params.*not YAML"),
        ("a:1, b:2, a:3", "--track-params a is duplicated"),
    ],
)
def test_what_is_no_parameter_of_rallys_is_refused(text: str, words: str):
    with pytest.raises(UsageError, match=words):
        parse_rally_params(text)
