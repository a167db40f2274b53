"""What `--evidence` and `--evidence-forks` mean."""

import pytest
from click.testing import CliRunner

from benchctl.cli import root
from benchctl.cli.run_options import EvidenceOptions
from benchctl.errors import UsageError
from benchctl.results.plan import EvidenceSpec


@pytest.mark.parametrize(
    ("given", "forks", "expected"),
    [
        ((), None, None),
        (("jit",), None, EvidenceSpec(("jit",), 1)),
        (("os, jit", "jit"), 3, EvidenceSpec(("jit", "os"), 3)),
        (("all",), 0, EvidenceSpec(("gc", "inlining", "jit", "os", "profile"), 0)),
    ],
)
def test_kinds_are_named_together_or_one_by_one(
    given: tuple[str, ...], forks: int | None, expected: EvidenceSpec | None
):
    assert EvidenceOptions(given, forks).spec == expected


@pytest.mark.parametrize(
    ("given", "forks", "said", "hint"),
    [
        (("jitt",), None, "no kind of evidence 'jitt'", "did you mean 'jit'?"),
        (("jit,",), None, "no kind of evidence ''", "known: inlining, profile, jit, gc, os, all"),
        ((), 1, "none is wanted", "--evidence jit,gc"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: tuple[str, ...], forks: int | None, said: str, hint: str):
    with pytest.raises(UsageError, match=said) as caught:
        assert EvidenceOptions(given, forks).spec
    assert hint in caught.value.hint


@pytest.mark.parametrize("value", ["0", "-1", "some", "1.5"])
def test_forks_are_a_number_or_all(value: str):
    done = CliRunner().invoke(root, ["run", "--evidence-forks", value])
    assert done.exit_code == 2
    assert "is neither a number from 1 nor 'all'" in done.output
