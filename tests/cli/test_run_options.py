"""Options of what can be asked for, as the command line gives them, and files of `--config`."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchctl.cli import root
from benchctl.cli.run_options import config_option, form_options, specs_of
from benchctl.errors import UsageError
from benchctl.spec import EvidenceEntry, RunForm
from golden import Cases


def form_of(*arguments: str) -> RunForm:
    """What a command gets of these arguments."""
    seen: list[RunForm] = []

    @click.command()
    @config_option
    @form_options()
    def command(form: RunForm) -> None:
        seen.append(form)

    result = CliRunner().invoke(command, arguments)
    if isinstance(result.exception, UsageError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return seen[0]


def test_what_is_not_given_has_its_default():
    assert form_of() == RunForm()


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


# Files of `--config`.


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
