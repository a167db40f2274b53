"""Real tracks with something wrong in them: whatever it is, it is named, and nothing else happens."""

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchctl.errors import ExitCode, UsageError
from benchctl.track.library import shipped
from benchctl.track.load import load_challenge, load_track
from foreign_tracks import BOOKS, SHOP, write_files

BIG5 = {
    f"big5/{path.relative_to(shipped('tracks') / 'big5')}": path.read_text(encoding="utf-8")
    for path in sorted((shipped("tracks") / "big5").rglob("*.json"))
}
TRACKS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("big5", BIG5),
    ("books", {f"books/{name}": text for name, text in BOOKS.items()}),
    ("shop", SHOP),
)
MOST_CPU_S = 6.0  # with the tests' own tracing; a template alone may take 2
MOST_CHARACTERS = 4000  # of a message: the lines around an error are up to 160 wide

JUNK = (
    b"{{", b"}}", b"{%", b"%}", b"{#", b'"', b",", b"{", b"}", b"[", b"]", b":", b"null", b"true", b"-1",
    b"1e999", b"NaN", b"-Infinity", b"9" * 40, b"\xff", b"\xe9", b"\xef\xbb\xbf", b"\r\n", b"\x00",
    b'{{ rally.collect(parts="*") }}', b'{{ benchmark.collect(parts="../*/*.json") }}',
    b'{% include "track.json" %}', b"{% for i in range(10**9) %}", b"{% endfor %}", b"| int", b"{{ x() }}",
    b"\\ud800", b'"${', b"[]", b'""', b'"iterations": 3, "time-period": 3,', b'"operation": "x",',
    "\ue0007\ue001".encode(), b"(" * 300, b"[" * 3000, b'{"a":' * 600,
)  # fmt: skip


@st.composite
def spliced(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """A change of bytes: something left out, twice there, put in, put in its place, or cut off."""
    first, second, width = draw(st.floats(0, 1)), draw(st.floats(0, 1)), draw(st.integers(1, 60))
    kind = draw(st.sampled_from(["drop", "double", "insert", "replace", "cut", "move"]))
    junk = draw(st.sampled_from(JUNK) | st.binary(max_size=6))

    def change(text: bytes) -> bytes:
        start = int(first * len(text))
        end = min(len(text), start + width)
        other = int(second * len(text))
        return {
            "drop": text[:start] + text[end:],
            "double": text[:end] + text[start:end] + text[end:],
            "insert": text[:start] + junk + text[start:],
            "replace": text[:start] + junk + text[end:],
            "cut": text[:start],
            "move": text[:start] + text[other : other + width] + text[end:],
        }[kind]

    return change


@st.composite
def revalued(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """Another value, key or type where one stands."""
    place = draw(st.floats(0, 1, exclude_max=True))
    value = draw(
        st.sampled_from(
            [
                "null",
                "true",
                "-1",
                "0",
                "1.5",
                "1e400",
                "18446744073709551616",
                '""',
                "[]",
                "{}",
                '"x"',
                "[[]]",
            ]
        )
        | st.text(max_size=5).map(json.dumps)
        | st.just('{"a":' * 300 + "1" + "}" * 300)
        | st.just(json.dumps("long" * 3000))
    )

    def change(text: bytes) -> bytes:
        words = list(re.finditer(rb'"[^"\n]*"|-?\d+(\.\d+)?|true|false|null', text))
        if not words:
            return text
        word = words[int(place * len(words))]
        return text[: word.start()] + value.encode() + text[word.end() :]

    return change


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, dict[str, bytes]]:
    """A track's folder and files, a few of them changed."""
    name, texts = draw(st.sampled_from(TRACKS))
    files = {path: text.encode() for path, text in texts.items()}
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(files)))
        files[path] = draw(spliced() | revalued())(files[path])
    if draw(st.integers(0, 9)) == 0:
        files.pop(draw(st.sampled_from(sorted(files))))
    return name, files


PARAMS = st.dictionaries(
    st.sampled_from(["bulk_size", "clients", "rate", "size", "index_settings", "distribution_version"]),
    st.sampled_from([None, True, False, [], 0, -1, 10**20, 0.5, "", "x", "é${"]),
    max_size=2,
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutated(), st.just({}) | PARAMS)
def test_a_mutation_loads_or_is_named_and_ends_soon(
    tmp_path_factory: pytest.TempPathFactory, track: tuple[str, dict[str, bytes]], params: dict[str, Any]
):
    name, files = track
    root = tmp_path_factory.mktemp("mutated")
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    before = time.process_time()
    try:
        _load_all(root / name, params)
    except UsageError as err:
        assert str(root) in err.message or params  # noqa: PT017 - either outcome is right, silence is not
        assert err.exit_code == ExitCode.USAGE  # noqa: PT017 - as above
        assert len(str(err)) < MOST_CHARACTERS  # noqa: PT017 - as above
    assert time.process_time() - before < MOST_CPU_S


def _load_all(folder: Path, params: Mapping[str, Any] | None = None) -> None:
    track, _ = load_track(str(folder), params or {})
    for name in track.challenges:
        challenge, _ = load_challenge(name, track, {"iterations": 3})
        track.lacking(challenge)


def refusal(folder: Path, files: Mapping[str, bytes | str]) -> str:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError) as caught:
        _load_all(folder)
    return str(caught.value)


def with_search(body: str) -> str:
    operation = f'{{"name": "s", "operation-type": "search",\n "body": {body}}}'
    return f'{{"operations": [\n{operation}],\n"schedule": [{{"operation": "s"}}]}}'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (with_search('{"size": NaN}'), ["invalid character, in line 3, column 19"]),
        (with_search('"\\ud800"'), ["track.json", "in line 3"]),
        (with_search('{"size": 1e999}'), ["track.json", "out of range"]),
        (with_search('{"size": 1' + "0" * 5000 + "}"), ["track.json", "out of range"]),
        (with_search('{"a":' * 5000 + "1" + "}" * 5000), ["nested too deeply"]),
        ('{"description": "é"}'.encode("latin-1"), ["is not UTF-8", "save it as UTF-8"]),
        ('{"description": 1}'.encode("utf-16"), ["is not UTF-8"]),
        ('{"operations' + "s" * 3 + '": 1}', ["unknown key 'operationssss'", "did you mean 'operations'"]),
        (" " * 300 + '{"version": 2,, "x": 1}', ["line 1, column 315", '"version": 2,,']),
        ("{\r\n\r\n\r\n1}", ["track.json", "in line 4"]),
    ],
)
def test_what_is_wrong_is_shown_where_it_is(tmp_path: Path, content: bytes | str, words: list[str]):
    text = refusal(tmp_path, {"track.json": content})
    for word in words:
        assert word in text
    assert len(text) < MOST_CHARACTERS


def test_a_byte_order_mark_and_other_line_ends_are_nothing_wrong(tmp_path: Path):
    (tmp_path / "track.json").write_bytes(b'\xef\xbb\xbf{\r\n"schedule": [\r\n{"operation": "refresh"}]}\r\n')
    _load_all(tmp_path)


def test_mutations_without_any_change_load(tmp_path: Path):
    for name, files in TRACKS:
        write_files(tmp_path / name, files)
        _load_all(tmp_path / name / name)


@pytest.mark.parametrize(
    "text",
    [
        '{%% import "%s" as x %%}{}',
        '{%% include "%s" %%}',
        '{{ rally.collect(parts="%s") }}',
        '{"indices": [{"name": "i", "body": "%s"}]}',
        '{"component-templates": [{"name": "i", "template": "%s"}]}',
    ],
)
def test_a_name_that_no_file_can_have_is_the_name_of_none(tmp_path: Path, text: str):
    found = refusal(tmp_path, {"track.json": text % ("long" * 3000)})
    assert "long" * 20 in found
    assert "characters)" in found
    assert len(found) < MOST_CHARACTERS
    (tmp_path / "track.json").unlink()
    assert "track.json" in refusal(tmp_path, {"track.json": text % "a\0b"})
