"""Options about what is measured, as the command line gives them."""

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchctl.cli.run_options import SubjectOptions, subject_options
from benchctl.errors import UsageError

ALLOWED = sorted(os.sched_getaffinity(0))


def options(*arguments: str) -> SubjectOptions:
    """What a command gets of these arguments."""
    seen: list[SubjectOptions] = []

    @click.command()
    @subject_options
    def command(subject_options: SubjectOptions) -> None:
        seen.append(subject_options)

    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_ordinarily_there_is_no_pin():
    assert (options().pin, options().pin_spec(1)) == (None, None)


@pytest.mark.parametrize("arguments", [("--pin",), ("--pin", "--paired"), ("--seed", "3", "--pin")])
def test_pin_alone_is_left_to_benchctl(arguments: tuple[str, ...]):
    assert options(*arguments).pin == "auto"


@pytest.mark.skipif(len(ALLOWED) < 2, reason="one CPU cannot be divided")
def test_cpus_are_those_of_this_process():
    chosen = options("--pin").pin_spec(1)
    assert chosen is not None
    assert sorted((*chosen.node, *chosen.driver)) == ALLOWED
    first, second = ALLOWED[:2]
    named = options("--pin", f"node={second},driver={first}").pin_spec(1)
    assert named is not None
    assert (named.node, named.driver) == ((second,), (first,))
    with pytest.raises(UsageError, match="cannot be had"):
        options(f"--pin=node={first},driver=4095").pin_spec(1)


def test_of_a_file_all_variants_run_unless_some_are_picked(tmp_path: Path):
    file = tmp_path / "v.yml"
    file.write_text("b: {extends: a, jdk: 17}\na: {extends: es, heap: 1g}\n", encoding="utf-8")

    def names(*arguments: str) -> list[str]:
        return [spec.name for spec in options(*arguments).specs()]

    assert names() == ["es", "os"]
    assert names("--variants", str(file)) == ["b", "a"]
    assert names("--variants", str(file), "--variant", "os", "--variant", "c=b,jvm:-Xint") == ["os", "c"]
    (picked,) = options("--variants", str(file), "--variant", "b", "--jdk", "21").specs()
    assert (picked.jdk, picked.heap_mb) == ("17", 1024)
    with pytest.raises(UsageError, match="no variant 'd'"):
        names("--variants", str(file), "--variant", "d")
