"""Options as the command line gives them, files of `--config`, and help in two lengths."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner

from benchctl.cli import root
from benchctl.cli.options import AmountType, ParamOptions, SectionedCommand, param_options, under
from benchctl.cli.run_options import config_option, form_options, specs_of, test_mode_option
from benchctl.errors import UsageError
from benchctl.quantities import SIZE
from benchctl.spec import EvidenceEntry, RunForm
from foreign_tracks import write_files
from golden import Cases

test_mode_option.__test__ = False  # type: ignore[attr-defined]


def given(*arguments: str) -> tuple[RunForm, dict[str, Any]]:
    """The form and the parameters that a command gets of these arguments."""
    seen: list[tuple[RunForm, dict[str, Any]]] = []

    @click.command()
    @config_option
    @param_options
    @form_options()
    @test_mode_option
    def command(form: RunForm, param_options: ParamOptions, *, test_mode: bool) -> None:
        assert test_mode == ("--test-mode" in arguments)
        seen.append((form, param_options.read()))

    result = CliRunner().invoke(command, arguments)
    if isinstance(result.exception, UsageError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return seen[0]


def form_of(*arguments: str) -> RunForm:
    return given(*arguments)[0]


def test_an_amount_is_its_value_and_a_wrong_one_names_the_option():
    heap = click.Option(["--heap"])
    assert AmountType(SIZE).convert("4g", heap, None) == AmountType(SIZE).convert(4096, heap, None) == 4096
    assert AmountType(SIZE, written=True).convert(" 4g", heap, None) == "4g"
    with pytest.raises(UsageError, match=r"^--heap: invalid size '4' "):
        AmountType(SIZE).convert("4", heap, None)


def test_what_is_not_given_has_its_default():
    assert given() == (RunForm(), {})


def test_tags_are_words_or_keys_with_values():
    tags = ("nightly", "8.19.0", "before_upgrade-2", "env:laptop")
    assert form_of("--tag", ",".join(tags), "--user-tag", "nightly,x").tags == (*tags, "x")
    for text in (
        "",
        "a b",
        "a:",
        ":b",
        "a:b:c",
        "a,,b",
        "-x",
        "a/b",
        "../a",
        "a\n",
        "a\x1b",
        "x" * 65,
        "\u00fc",
        "a:b,a:c",
    ):
        done = CliRunner().invoke(root, ["run", f"--tag={text}"])
        assert done.exit_code == 2
        assert "is not a tag" in done.output or "duplicate key 'a'" in done.output


@pytest.mark.parametrize("name", ["--track-params", "--workload-params"])
def test_what_is_said_on_the_command_line_goes_before_files(tmp_path: Path, name: str):
    folder = write_files(tmp_path, {"a.json": '{"a": 1, "b": 1, "c": 1}', "b.yml": "b: 2\nc: 2\nd: 2"})
    files = ["--param", f"@{folder / 'a.json'}", "--param", f"@{folder / 'b.yml'}"]
    assert given(*files, name, "c:3,d:3", "--param", "d=4")[1] == {"a": 1, "b": 2, "c": 3, "d": 4}


@pytest.mark.parametrize(
    ("arguments", "docs", "forks"),
    [
        ([], None, None),
        (["--test-mode"], 100_000, 1),
        (["--forks", "2", "--test-mode"], 100_000, 2),
        (["--test-mode", "--docs", "200k"], "200k", 1),
    ],
)
def test_the_test_mode_changes_defaults_only(arguments: list[str], docs: object, forks: int | None):
    form = form_of(*arguments)
    assert (form.docs, form.forks) == (docs, forks)


@pytest.mark.parametrize("arguments", [("--pin",), ("--seed", "3", "--pin")])
def test_pin_alone_is_left_to_benchctl(arguments: tuple[str, ...]):
    assert form_of(*arguments).pin == "auto"


def test_of_a_file_all_variants_run_unless_some_are_picked(tmp_path: Path):
    file = tmp_path / "v.yml"
    file.write_text("b: {extends: a, jdk: 17}\na: {extends: es, heap: 1g}\n", encoding="utf-8")

    def names(*arguments: str) -> list[str]:
        return [spec.name for spec in specs_of(form_of(*arguments))]

    assert names() == ["es", "os"]
    assert names("--variants", str(file)) == ["b", "a"]
    assert names("--variants", str(file), "--variant", "os", "--variant", "c=b,jvm:-Xint") == ["os", "c"]
    (picked,) = specs_of(form_of("--variants", str(file), "--variant", "b", "--jdk", "21"))
    assert (picked.jdk, picked.heap_mb) == ("17", 1024)
    with pytest.raises(UsageError, match="unknown variant 'd'"):
        names("--variants", str(file), "--variant", "d")


@pytest.mark.parametrize(
    ("arguments", "evidence"),
    [
        ((), None),
        (("--evidence", "profile"), EvidenceEntry(("profile",))),
        (
            ("--evidence", "profile, profile", "--evidence", "profile", "--evidence-forks", "3"),
            EvidenceEntry(("profile",), 3),
        ),
        (
            ("--evidence", "inlining, profile", "--evidence-forks", "all"),
            EvidenceEntry(("inlining", "profile"), "all"),
        ),
    ],
)
def test_kinds_of_evidence_are_named_together_or_one_by_one(
    arguments: tuple[str, ...], evidence: EvidenceEntry | None
):
    assert form_of(*arguments).evidence == evidence


def test_what_cannot_be_meant_is_refused(cases: Cases):
    cases("options", lambda words: form_of(*json.loads(words)))


@pytest.mark.parametrize(
    "words",
    [("--evidence-forks", "0"), ("--evidence-forks", "some"), ("--workers", "0"), ("--workers", "1.5")],
)
def test_a_number_or_a_word_is_nothing_else(words: tuple[str, ...]):
    done = CliRunner().invoke(root, ["run", *words])
    assert done.exit_code == 2
    assert "is neither a number from 1 nor '" in done.output


def test_options_take_precedence_over_the_file(tmp_path: Path):
    file = tmp_path / "run.yml"
    file.write_text(
        "variants: [os]\ndocs: 2m\nheap: 2g\nseed: 7\nevidence: {kinds: [inlining], forks: all}\n"
    )
    whole = form_of("--config", str(file))
    assert (whole.variants, whole.docs, whole.heap, whole.seed) == (("os",), "2m", "2g", 7)
    mixed = form_of("--config", str(file), "--docs", "5k", "--variant", "es", "--evidence", "profile")
    assert (mixed.variants, mixed.docs, mixed.heap) == (("es",), "5k", "2g")
    assert mixed.evidence == EvidenceEntry(("profile",), "all")
    assert form_of("--config", str(file), "--evidence-forks", "2").evidence == EvidenceEntry(("inlining",), 2)


@click.command(cls=SectionedCommand, first=("often", "first"), examples=("x --often 1",))
@under("Load", click.option("--first"))
@under("Load", click.option("--often"))
@under("Load", click.option("--seldom"))
@click.option("--never", is_flag=True)
def _command(**_values: object) -> None:
    pass


def test_rare_options_are_in_the_help_of_everything_only_and_are_taken_all_the_same():
    def help_of(option: str) -> Callable[[str], bool]:
        done = CliRunner().invoke(_command, [option], prog_name="x")
        assert done.exit_code == 0
        return done.stdout.__contains__

    first, everything = help_of("--help"), help_of("--help-all")
    names = ("--often", "\n\n  x --often 1\n", "--seldom", "--never", "All options: x --help-all")
    assert [first(name) for name in names] == [1, 1, 0, 0, 1]
    assert [everything(name) for name in names] == [1, 1, 1, 1, 0]
    assert first("  --often TEXT\n  --first TEXT\n")
    assert CliRunner().invoke(_command, ["--seldom", "1", "--never"]).exit_code == 0


def test_a_variant_that_is_named_again_is_another_of_it():
    specs = specs_of(form_of(*(word for name in ("es", "es", "os", "es") for word in ("--variant", name))))
    assert [spec.name for spec in specs] == ["es", "es-2", "os", "es-3"]
    assert [msgspec.structs.replace(spec, name="es") for spec in (specs[1], specs[3])] == [specs[0]] * 2
    # Two things of one name are still a mistake, which the plan refuses.
    others = specs_of(form_of("--variant", "x=es,jdk:17", "--variant", "x=es,jdk:21"))
    assert [spec.name for spec in others] == ["x", "x"]
