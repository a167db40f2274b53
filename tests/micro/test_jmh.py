"""What JMH prints and writes, in benchctl's own terms; no JVM is started."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.micro.jmh import (
    Benchmark,
    check_arguments,
    named_params,
    parse_listing,
    read_source,
    sources_of,
    tasks_of,
)

LISTING = """Benchmarks:
demo.Sum.copy
  param "size" = {100, 1000}
demo.Sum.sum
  param "size" = {100, 1000}
demo.Other.none
"""
NAMES = st.from_regex(r"[a-z]{1,6}(\.[a-z]{1,6}){1,3}\.[A-Z][a-z]{0,5}\.[a-z]{1,8}", fullmatch=True)
WORDS = st.from_regex(r"[a-zA-Z0-9_.-]{1,8}", fullmatch=True)


def test_a_listing_has_benchmarks_with_their_parameters():
    sizes = {"size": ("100", "1000")}
    assert parse_listing(LISTING) == [
        Benchmark("demo.Sum.copy", sizes),
        Benchmark("demo.Sum.sum", sizes),
        Benchmark("demo.Other.none", {}),
    ]


@given(st.dictionaries(NAMES, st.dictionaries(WORDS, st.lists(WORDS, min_size=1, max_size=3), max_size=3)))
def test_whatever_is_listed_is_read(found: dict[str, dict[str, list[str]]]):
    lines = ["Benchmarks: "]
    for name, params in found.items():
        lines += [name, *(f'  param "{param}" = {{{", ".join(values)}}}' for param, values in params.items())]
    assert parse_listing("\n".join(lines)) == [
        Benchmark(name, {param: tuple(values) for param, values in params.items()})
        for name, params in found.items()
    ]


def test_there_is_a_task_for_every_value_and_number_of_threads():
    found = parse_listing(LISTING)
    tasks = tasks_of(found, {"size": ("7",)}, (1, 2))
    assert [task.label for task in tasks] == [
        "Sum.copy:size=7,threads=1",
        "Sum.copy:size=7,threads=2",
        "Sum.sum:size=7,threads=1",
        "Sum.sum:size=7,threads=2",
        "Other.none:threads=1",
        "Other.none:threads=2",
    ]
    assert tasks[1].meta == {"benchmark": "demo.Sum.copy", "params": {"size": "7"}, "threads": 2}
    assert [task.clients for task in tasks[:2]] == [1, 2]
    # Of one class, the method says all; its own number of threads needs no mark.
    assert [task.label for task in tasks_of(found[:2], {}, (0,))][:2] == ["copy:size=100", "copy:size=1000"]
    with pytest.raises(UsageError, match="no benchmark has such a parameter") as caught:
        tasks_of(found, {"sise": ("7",)}, (1,))
    assert caught.value.hint == "known: size"


def test_a_source_names_what_it_stands_on(tmp_path: Path):
    source = tmp_path / "Sum.java"
    source.write_text("//DEPS a.b:c:1 d:e:2\n  // DEPS a.b:c:1\nclass Sum {}\n")
    (tmp_path / "Sum.yml").write_text("{dependencies: ['f:g:3'], apart: {old: 'f:g:2'}}")
    found = read_source(source)
    assert (found.dependencies, found.apart) == (("a.b:c:1", "d:e:2", "f:g:3"), {"old": "f:g:2"})
    folder = read_source(tmp_path)
    assert (folder.dependencies, sources_of(tmp_path)) == (("a.b:c:1", "d:e:2"), [source])
    source.write_text("//DEPS a.b:c:1 d:e:2\nclass Sum { }\n")
    assert read_source(source).digest != found.digest


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("Sum.java", "//DEPS a.b:c", "'a.b:c' is not a Maven coordinate"),
        ("Sum.txt", "", "neither Java nor a jar"),
        ("Sum.java", None, "no such file.*Sum.java"),
    ],
)
def test_what_is_no_source_is_refused(tmp_path: Path, name: str, text: str | None, said: str):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=said):
        read_source(tmp_path / name)


def test_jmh_is_told_some_things_by_benchctl_alone():
    check_arguments(("-wi", "5", "-bm", "sample", "-prof", "gc"))
    for word, hint in (
        ("-f", "--forks"),
        ("-t", "--threads"),
        ("-jvmArgsAppend", "jvm:FLAG"),
        ("-rff", "remove"),
    ):
        with pytest.raises(UsageError, match=f"--jmh {word}: benchctl sets that itself") as caught:
            check_arguments((word, "1"))
        assert hint in caught.value.hint


def test_parameters_have_names_and_values():
    assert dict(named_params(["size=10,100", "kind=a"])) == {"size": ("10", "100"), "kind": ("a",)}
    for text in ("size", "=1", "size="):
        with pytest.raises(UsageError, match="it is not NAME=VALUE"):
            list(named_params([text]))
