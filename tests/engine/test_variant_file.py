"""Files of variants: what they mean, what they share with the command line, and what is said of mistakes."""

import string
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.variant import (
    LATEST,
    VariantEntry,
    check_spec,
    load_variants,
    parse_variant,
    resolve_variants_mapping,
    with_newest,
)
from benchctl.errors import BenchctlError, UsageError
from benchctl.results.plan import EngineName, VariantSpec
from benchctl.yaml_file import Document
from builders import ES, OS
from golden import Cases

WORDS = st.text(string.ascii_letters + string.digits + "_.-", min_size=1, max_size=10)
KEYS = st.from_regex(r"[a-z]{1,6}(\.[a-z_]{1,6}){1,2}", fullmatch=True)
SETTINGS = st.dictionaries(KEYS, WORDS, max_size=3)
VARIABLES = st.dictionaries(st.from_regex(r"X[A-Z_]{0,8}", fullmatch=True), WORDS, max_size=3)
COORDINATES = st.tuples(WORDS, WORDS, WORDS).map(":".join)
ENTRIES = st.fixed_dictionaries(
    {"extends": st.sampled_from(["es", "os", "es@8.19.0"])},
    optional={
        "jdk": st.integers(8, 30),
        "heap": st.sampled_from(["512m", "1g", "4G"]),
        "jvm": st.lists(WORDS.map(lambda tail: f"-XX:{tail}"), max_size=3),
        "settings": SETTINGS,
        "index-settings": SETTINGS,
        "environment": VARIABLES,
        "jars": st.lists(COORDINATES, max_size=2),
        "plugins": st.lists(COORDINATES, max_size=2),
        "warmups": st.lists(st.sampled_from(["warmup", "range-only"]), max_size=2),
        "distribution": st.just("https://example.org/es.tar.gz"),
    },
)
OPTIONS = {
    "jvm": "jvm", "settings": "setting", "index-settings": "index", "environment": "env", "jars": "jar",
    "plugins": "plugin", "warmups": "warmup",
}  # fmt: skip


def load(folder: Path, text: str) -> dict[str, VariantSpec]:
    path = folder / "variants.yml"
    path.write_text(text, encoding="utf-8")
    return load_variants(path)


def test_mappings_and_bodies_of_a_file_are_those_of_the_command_line(tmp_path: Path):
    (tmp_path / "b.json").write_text('{"size": 0}', encoding="utf-8")
    (tmp_path / "broken.json").write_text("[]", encoding="utf-8")
    specs = load(
        tmp_path,
        """
a:
  extends: os
  mappings: {properties: {message: {type: match_only_text, norms: null}}}
  operations: {range: b.json}
b: {extends: a, mappings: {message: {type: text}, log.path.index: false}}
""",
    )
    assert specs["a"].mappings == {"message.type": "match_only_text", "message.norms": None}
    assert specs["b"].mappings == {"message.type": "text", "message.norms": None, "log.path.index": False}
    assert specs["a"].operations == specs["b"].operations == {"range": {"size": 0}}
    with pytest.raises(UsageError, match=r"variants\.yml:1:\d+: .*is not the body of a search"):
        load(tmp_path, "a: {extends: os, operations: {range: broken.json}}")


def resolved(entries: dict[str, object]) -> dict[str, VariantSpec]:
    typed = msgspec.convert(entries, dict[str, VariantEntry])
    return resolve_variants_mapping(typed, Document("", "f.yml"), (), Path("/folder"))


def as_flags(name: str, entry: dict[str, object]) -> str:
    """The same on the command line."""
    words = [f"{name}={entry['extends']}"]
    for key, value in entry.items():
        if isinstance(value, dict):
            words += [f"{OPTIONS[key]}:{inner}={text}" for inner, text in value.items()]
        elif isinstance(value, list):
            words += [f"{OPTIONS[key]}:{text}" for text in value]
        elif key != "extends":
            words.append(f"{key}:{value}")
    return ",".join(words)


@given(ENTRIES)
def test_a_file_says_the_same_as_the_command_line(entry: dict[str, object]):
    flags = parse_variant(as_flags("mine", entry))
    assert resolved({"mine": entry})["mine"] == flags


def test_everything_that_a_variant_can_be(tmp_path: Path):
    (tmp_path / "lucene-core.jar").touch()
    (tmp_path / "icu.zip").touch()
    found = load(
        tmp_path,
        """
        mine:
          extends: os
          version: 2.19.0
          jdk: jdks/own
          heap: 2g
          jvm: [-XX:-Inline]
          settings: {indices: {queries.cache.size: 5%}, node.attr.rack: 3}
          index-settings: {codec: best_compression, index.sort.field: [a, b], sort: {missing: _last}}
          environment: {MALLOC_ARENA_MAX: 2, VERBOSE: true}
          jars: [lucene-core.jar, org.apache.lucene:lucene-misc:9.8.0, patched:bulk-visit]
          plugins: [icu.zip, https://example.org/x.zip]
          warmups: [warmup, mine.json]
        """,
    )
    assert found == {
        "mine": VariantSpec(
            name="mine",
            engine="opensearch",
            version="2.19.0",
            jdk=str(tmp_path / "jdks/own"),
            heap_mb=2048,
            jvm_flags=("-XX:-Inline",),
            settings={"indices.queries.cache.size": "5%", "node.attr.rack": "3"},
            index_settings={
                "index.codec": "best_compression",
                "index.sort.field": ["a", "b"],
                "index.sort.missing": "_last",
            },
            environment={"MALLOC_ARENA_MAX": "2", "VERBOSE": "true"},
            jars=(
                str(tmp_path / "lucene-core.jar"),
                "org.apache.lucene:lucene-misc:9.8.0",
                "patched:bulk-visit",
            ),
            plugins=(str(tmp_path / "icu.zip"), "https://example.org/x.zip"),
            warmups=("warmup", str(tmp_path / "mine.json")),
        )
    }


def test_lists_are_added_mappings_merged_and_all_else_replaced(tmp_path: Path):
    found = load(
        tmp_path,
        """
        child: {extends: parent, jvm: [-Xint], heap: 1g, settings: {a.b: 2, c.d: }, environment: {Y: z}}
        parent:
          {extends: es@8.19.0, jvm: [-Xbatch], heap: 512m, settings: {a: {b: 1}, c.d: 1}, environment: {X: y}}
        """,
    )
    assert list(found) == ["child", "parent"]
    assert found["child"] == VariantSpec(
        name="child",
        engine="elasticsearch",
        version="8.19.0",
        jvm_flags=("-Xbatch", "-Xint"),
        heap_mb=1024,
        settings={"a.b": "2"},
        environment={"X": "y", "Y": "z"},
    )


def test_a_version_takes_the_place_of_a_distribution(tmp_path: Path):
    text = "own: {extends: es, distribution: es.zip}\nnext: {extends: own, version: 8.19.0}\n"
    found = load(tmp_path, text)
    assert found["own"].distribution == str(tmp_path / "es.zip")
    assert (found["next"].distribution, found["next"].version) == (None, "8.19.0")


def test_a_mistake_is_told_with_its_place(cases: Cases, tmp_path: Path):
    cases("variant_file", lambda text: load(tmp_path, text), tmp_path)


def test_paths_that_no_file_can_have_are_told_and_not_stumbled_over(tmp_path: Path):
    with pytest.raises(UsageError, match=r"no such jar .*~nobody-of-this-name/x\.jar"):
        load(tmp_path, "v: {extends: es, jars: [~nobody-of-this-name/x.jar]}")
    with pytest.raises(BenchctlError, match="cannot look for the jar"):
        load(tmp_path, f"v: {{extends: es, jars: [{'x' * 5000}.jar]}}")


def test_variants_that_extend_each_other_in_a_long_row_are_refused(tmp_path: Path):
    lines = [f"v{number}: {{extends: v{number + 1}}}" for number in range(2000)]
    with pytest.raises(UsageError, match="extend each other in a row"):
        load(tmp_path, "\n".join(lines))


def test_a_mapping_within_a_file_is_told_with_its_place_there():
    text = "title: t\nvariants:\n  a:\n    extends: os\n    heap: much\n"
    document = Document(text, "e.yml")
    entries = {"a": VariantEntry(extends="os", heap="much")}
    with pytest.raises(UsageError, match=r"e\.yml:5:11: variants, a, heap: invalid size 'much'"):
        resolve_variants_mapping(entries, document, ("variants",), Path("/"))


def test_each_engine_is_asked_about_once_and_only_where_its_newest_is_wanted():
    asked: list[EngineName] = []

    def newest(engine: EngineName) -> str:
        asked.append(engine)
        return "9.9.9"

    moving = msgspec.structs.replace(ES, name="es@latest", version=LATEST)
    again = msgspec.structs.replace(moving, name="again", jvm_flags=("-Xint",))
    found = with_newest((OS, moving, again), newest)
    assert found == (
        OS,
        msgspec.structs.replace(moving, version="9.9.9"),
        msgspec.structs.replace(again, version="9.9.9"),
    )
    assert asked == ["elasticsearch"]
    assert with_newest((), newest) == ()


def test_what_no_node_can_be_given_is_refused():
    assert check_spec(ES) is ES
    with pytest.raises(UsageError, match="not a JVM flag"):
        check_spec(msgspec.structs.replace(ES, jvm_flags=("Xint",)))
    with pytest.raises(UsageError, match="open the node"):
        check_spec(msgspec.structs.replace(ES, jvm_flags=("-agentlib:jdwp=address=*:5005",)))
