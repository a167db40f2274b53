"""YAML into typed forms: every complaint names file, line, column and the way in words."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.yaml_file import Document, convert, read_typed
from golden import Cases

Wait = Annotated[str, msgspec.Meta(pattern="^[0-9]+m$", description="a time such as 30m")]


class Mail(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="mail"):
    host: str


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="command"):
    run: tuple[str, ...]
    timeout_s: int = msgspec.field(default=60, name="timeout-s")


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    max_load: float = 0.5
    governor: str | None = None

    def __post_init__(self) -> None:
        if self.max_load < 0:
            raise ValueError("a load is never negative")


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    name: str
    forks: Annotated[int, msgspec.Meta(ge=1)] = 5
    variants: tuple[str | Limits, ...] = ()
    wait: Wait = "5m"
    wait_or_number: Wait | int = 1
    policy: Literal["exit", "wait"] = "exit"
    quiet: bool = False
    host: Limits = Limits()
    margins: dict[str, dict[str, float]] = {}
    named: dict[str, Limits] = {}
    notify: tuple[Mail | Command, ...] = ()
    pair: tuple[int, Literal["a", "b"]] = (1, "a")
    keyed: dict[Annotated[str, msgspec.Meta(pattern="^[a-z]+$")], int] = {}
    anything: Any = None


def test_what_does_not_fit_is_said_with_its_place_and_in_words(cases: Cases):
    cases("yaml_typed", lambda text: convert(Document(text, "f.yml"), Shape))


def test_what_fits_is_typed():
    text = "name: a\nvariants: [es, {max-load: 1}]\nnotify: [{kind: mail, host: h}]\nanything: {on: [1, x]}\n"
    assert convert(Document(text, "f.yml"), Shape) == Shape(
        name="a", variants=("es", Limits(1.0)), notify=(Mail("h"),), anything={"on": [1, "x"]}
    )


def test_a_file_is_read_and_its_places_serve_further_checks(tmp_path: Path):
    path = tmp_path / "f.yml"
    path.write_text("name: ä\nvariants:\n  - one\n  - two\n", encoding="utf-8")
    typed = read_typed(path, Shape)
    assert typed.value.name == "ä"
    complaint = typed.document.refuse(("variants", 1), "there is no two", hint="take three")
    assert complaint.message == f"{path}:4:5: variants, entry 2: there is no two"
    assert complaint.hint == "take three"


def test_files_that_cannot_be_read_are_said_to_be(tmp_path: Path):
    with pytest.raises(UsageError, match=r"cannot read .*No such file"):
        read_typed(tmp_path / "none.yml", Shape)
    with pytest.raises(UsageError, match=r"cannot read .*Is a directory"):
        read_typed(tmp_path, Shape)
    (tmp_path / "f.yml").write_bytes(b"name: \xff\n")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_typed(tmp_path / "f.yml", Shape)


NUMBERS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=4),
    st.dictionaries(st.text("abcdef", min_size=1, max_size=4), st.integers(0, 9), min_size=1, max_size=4),
    min_size=1,
    max_size=5,
)


@given(NUMBERS, st.data())
def test_whatever_value_is_wrong_its_own_line_is_named(
    numbers: dict[str, dict[str, int]], data: st.DataObject
):
    outer = data.draw(st.sampled_from(sorted(numbers)))
    inner = data.draw(st.sampled_from(sorted(numbers[outer])))
    wrong: dict[str, dict[str, Any]] = {key: dict(values) for key, values in numbers.items()}
    wrong[outer][inner] = "wrong"
    text = yaml.safe_dump({"name": "a", "margins": wrong}, sort_keys=False)
    line = 1 + next(place for place, row in enumerate(text.splitlines()) if "wrong" in row)
    with pytest.raises(UsageError) as caught:
        convert(Document(text, "f.yml"), Shape)
    assert caught.value.message.startswith(f"f.yml:{line}:")
    assert f"margins, {outer}, {inner}: expected a number, found 'wrong'" in caught.value.message


@given(
    st.lists(st.sampled_from(["es", "os"]), max_size=8), st.lists(st.sampled_from(["es", "os"]), max_size=8)
)
def test_whatever_entry_is_wrong_its_own_line_is_named(before: list[str], behind: list[str]):
    entries = [*before, 17, *behind]
    text = yaml.safe_dump({"name": "a", "variants": entries}, sort_keys=False)
    with pytest.raises(UsageError) as caught:
        convert(Document(text, "f.yml"), Shape)
    line = 3 + len(before)
    assert caught.value.message.startswith(f"f.yml:{line}:3: variants, entry {1 + len(before)}: ")


def complaint_of(text: str) -> str | None:
    """What is said of a text; nothing where it fits."""
    try:
        convert(Document(text, "f.yml"), Shape)
    except UsageError as err:
        return err.message
    return None


PIECES = st.sampled_from(
    [
        "a", "name", "variants", "margins", "notify", "host", "kind", "mail", ": ", "- ", "\n", "\n  ", "[",
        "]", "{", "}", ",", "&x ", "*x", "<<: ", "!!str ", "!x ", "'", '"', "|", "? ", "#", "---\n", "no",
        "8.1", "~", "\t", "\\x", "%", "\u0085", "\ufeff", "é", "0x", "9" * 400, "2026-13-45", "-.inf",
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join))
def test_whatever_is_written_the_worst_is_a_complaint(text: str):
    complaint = complaint_of(text)
    if complaint is not None:
        assert complaint.startswith("f.yml:")
        assert "\n" not in complaint


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab ", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*Shape.__struct_encode_fields__, "kind", "max-load", "x"]), inner, max_size=4
        )
    ),
    max_leaves=10,
)


@given(JUNK)
def test_whatever_shape_it_has_the_complaint_names_a_place_in_the_file(value: Any):
    text = yaml.safe_dump(value)
    complaint = complaint_of(text)
    if complaint is not None:
        place = re.match(r"f\.yml:(\d+):(\d+): ", complaint)
        assert place is not None
        assert 1 <= int(place[1]) <= max(1, len(text.splitlines()))
        assert "`" not in complaint
