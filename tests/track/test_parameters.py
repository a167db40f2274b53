"""Parameters from files: JSON and YAML, later ones first, values that templates can write as JSON."""

from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.track.parameters import read_parameter_files
from foreign_tracks import write_files


def test_json_and_yaml_files_are_read_and_later_ones_win(tmp_path: Path):
    write_files(
        tmp_path,
        {
            "a.json": '{\n\t"bulk_size": 5e2, "codec": "x", "deep": {"n": [1]}}',
            "b.yml": "codec: y\nfrom: 2023-01-02\nonly: no\n",
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "neither JSON nor YAML"),
        ("[1]", "no object of parameter names"),
        ("3: 4", "no object of parameter names"),
        ("a: .inf", "not a finite number"),
        ('{"a": NaN}', "not a finite number"),
        ("a: !!python/object:os.system {}", "neither JSON nor YAML"),
        ("a: !!binary aGk=", "a bytes cannot be written in JSON"),
        ("a: &x [*x]", "nested in itself"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path: Path, text: str, words: str):
    path = write_files(tmp_path, {"p.yml": text}) / "p.yml"
    with pytest.raises(UsageError, match="p.yml.*" + words):
        read_parameter_files([path])
    with pytest.raises(UsageError, match="cannot read"):
        read_parameter_files([tmp_path / "none.yml"])
