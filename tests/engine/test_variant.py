"""Variants as the command line writes them."""

import re
import string
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.variant import (
    LATEST,
    canonical_engine,
    check_spec,
    load_variants,
    parse_variant,
    placed_variant,
    with_option,
)
from benchctl.errors import UsageError
from benchctl.results.plan import EngineName, VariantSpec
from golden import Cases

LABELS = st.from_regex(r"x[a-z0-9._@-]{0,20}", fullmatch=True)
FLAGS = st.text(string.ascii_letters + string.digits + "+-=_/.*", min_size=1).map(lambda tail: f"-XX:{tail}")
KEYS = st.from_regex(r"[a-z]{1,8}(\.[a-z_]{1,8}){0,3}", fullmatch=True)
VALUES = st.text(string.ascii_letters + string.digits + "%.-=", max_size=12)


def parse(text: str, jdk: str = "") -> VariantSpec:
    return parse_variant(text, jdk=jdk)


@pytest.mark.parametrize(
    ("text", "name", "engine", "version"),
    [
        ("es", "es", "elasticsearch", "8.11.0"),
        ("os", "os", "opensearch", "2.11.0"),
        ("elasticsearch", "es", "elasticsearch", "8.11.0"),
        ("es@8.19.0", "es@8.19.0", "elasticsearch", "8.19.0"),
        ("opensearch@3.0.0-beta1", "os@3.0.0-beta1", "opensearch", "3.0.0-beta1"),
        ("os@latest", "os@latest", "opensearch", LATEST),
        ("next=os@3.3.0", "next", "opensearch", "3.3.0"),
    ],
)
def test_a_name_gives_engine_and_version(text: str, name: str, engine: EngineName, version: str):
    assert parse(text) == VariantSpec(name=name, engine=engine, version=version)


def test_mappings_are_typed_and_bodies_are_read(tmp_path: Path):
    (tmp_path / "b.json").write_text('{"query": {"match_all": {}}}', encoding="utf-8")
    spec = parse(
        "x=os,mapping:message.type=match_only_text,mapping:log.path.index=false,mapping:properties.a.dims=3,"
        f"mapping:b.fields=null,operation:range={tmp_path}/b.json"
    )
    assert spec.mappings == {
        "message.type": "match_only_text",
        "log.path.index": False,
        "a.dims": 3,
        "b.fields": None,
    }
    assert spec.operations == {"range": {"query": {"match_all": {}}}}
    assert (
        placed_variant("x=os,operation:range=b.json", tmp_path) == f"x=os,operation:range={tmp_path}/b.json"
    )


@pytest.mark.parametrize("text", ["message.type=", "properties=text", "a\nb.type=text"])
def test_mappings_without_a_field_or_a_value_are_refused(text: str):
    with pytest.raises(UsageError):
        parse(f"x=os,mapping:{text}")


def test_options_follow_the_label():
    spec = parse("es-noinline=es,jvm:-XX:-Inline,setting:indices.queries.cache.size=5%,jdk:17,jvm:-Xint")
    assert spec == VariantSpec(
        name="es-noinline",
        engine="elasticsearch",
        version="8.11.0",
        jdk="17",
        jvm_flags=("-XX:-Inline", "-Xint"),
        settings={"indices.queries.cache.size": "5%"},
    )


@pytest.mark.parametrize("name", ["es", "es@8.19.0"])
def test_an_engine_from_elsewhere_or_started_otherwise_keeps_its_plain_name(name: str):
    spec = parse(f"{name},distribution:es.zip,start:script,jdk:17")
    assert (spec.name, spec.distribution) == (name, str(Path("es.zip").absolute()))
    assert (spec.start, spec.jdk) == ("script", "17")
    assert parse(f"{name}={name},distribution:es.zip").name == name
    with pytest.raises(UsageError, match="no label"):
        parse(f"{name},distribution:es.zip,jvm:-Xint")
    with pytest.raises(UsageError, match="plain engine"):
        parse(f"{name}={name},distribution:es.zip,jvm:-Xint")


def test_a_distribution_of_the_makers_brings_its_runtime_and_follows_the_version():
    spec = parse("es,distribution:official")
    assert (spec.name, spec.distribution, spec.place, spec.jdk, spec.java) == (
        "es",
        "official",
        None,
        None,
        "bundled",
    )
    assert parse("os,distribution:min,jdk:21").java == "21"
    assert parse("os,distribution:min", "17").java == "17"
    assert parse("es").java is None
    assert with_option(spec, "version", "8.19.0").distribution == "official"
    assert with_option(parse("es,distribution:es.zip"), "version", "8.19.0").distribution is None


@pytest.mark.parametrize(
    ("option", "placed"),
    [
        ("distribution:official", "distribution:official"),
        ("distribution:min", "distribution:min"),
        ("distribution:./official", "distribution:/here/official"),
        ("jdk:17", "jdk:17"),
        ("jdk:bundled", "jdk:bundled"),
        ("jdk:jdk-21", "jdk:/here/jdk-21"),
    ],
)
def test_names_of_distributions_and_jdks_are_no_paths(option: str, placed: str, tmp_path: Path):
    assert placed_variant(f"os,{option}", Path("/here")) == f"os,{placed}"
    key, _, value = option.partition(":")
    (tmp_path / "variants.yml").write_text(f"mine: {{extends: os, {key}: {value}}}\n", encoding="utf-8")
    spec = load_variants(tmp_path / "variants.yml")["mine"]
    assert f"{key}:{getattr(spec, key)}" == placed.replace("/here", str(tmp_path))


def test_a_label_stands_on_what_a_file_defines():
    defined = {"slow": VariantSpec("slow", "elasticsearch", "8.19.0", jvm_flags=("-Xint",), jdk="17")}

    def read(text: str, jdk: str = "") -> VariantSpec:
        return parse_variant(text, jdk=jdk, defined=defined)

    assert read("slow", "21") == defined["slow"]
    assert read("x=slow,jvm:-Xbatch").jvm_flags == ("-Xint", "-Xbatch")
    assert read("es").version == "8.11.0"
    with pytest.raises(UsageError, match="already defines 'slow'"):
        read("slow=es,jvm:-Xint")
    with pytest.raises(UsageError, match="means the plain engine"):
        read("es=slow")
    with pytest.raises(UsageError, match="unknown variant 'slwo'") as caught:
        read("slwo")
    assert "did you mean 'slow'?" in caught.value.hint


def test_files_of_the_command_line_are_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    spec = parse("x=es,jar:a.jar,plugin:b.zip,warmup:c.json,warmup:warmup")
    assert spec.jars == (str(tmp_path / "a.jar"),)
    assert spec.plugins == (str(tmp_path / "b.zip"),)
    assert spec.warmups == (str(tmp_path / "c.json"), "warmup")


def test_a_comma_belongs_to_the_flag_before_it():
    spec = parse(
        "log=es,jvm:-Xlog:gc*,safepoint:file=gc.log,jvm:-XX:CompileCommand=inline,java/lang/String.*"
    )
    assert spec.jvm_flags == (
        "-Xlog:gc*,safepoint:file=gc.log",
        "-XX:CompileCommand=inline,java/lang/String.*",
    )


@given(LABELS, st.lists(FLAGS, max_size=4), st.dictionaries(KEYS, VALUES, max_size=4))
def test_what_is_written_is_what_is_read(label: str, flags: list[str], settings: dict[str, str]):
    options = [f"jvm:{flag}" for flag in flags]
    options += [f"setting:{key}={value}" for key, value in settings.items()]
    spec = parse(",".join([f"{label}=os", *options]))
    assert (spec.name, spec.jvm_flags, spec.settings) == (label, tuple(flags), settings)


@given(st.text(max_size=40))
def test_any_text_is_a_variant_or_a_usage_error(text: str):
    try:
        spec = parse(text)
    except UsageError:
        return
    assert re.fullmatch(r"[a-z0-9][a-z0-9._@-]*", spec.name)
    assert re.fullmatch(r"latest|\d+\.\d+\.\d+(-\S+)?", spec.version)


def test_a_mistake_is_told(cases: Cases):
    cases("variant", parse)


def test_a_variants_own_jdk_goes_before_that_of_all():
    assert [parse(text, "21").jdk for text in ("os", "es,jdk:17")] == ["21", "17"]
    assert parse("es", "jdks/own").jdk == str(Path("jdks/own").absolute())


def test_engines_have_two_names_each():
    assert canonical_engine("es") == canonical_engine("elasticsearch") == "elasticsearch"
    assert canonical_engine("os") == canonical_engine("opensearch") == "opensearch"
    with pytest.raises(UsageError, match="unknown engine 'opensaerch'"):
        canonical_engine("opensaerch")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x=es,index-from:es@8.11.0", ""),
        ("x=es,index-from:elasticsearch@7.17.29", ""),
        ("x=es@latest,index-from:es@7.17.29", ""),
        ("x=os@2.11.0,index-from:os@1.3.20", ""),
        ("x=es@8.11.0,index-from:es@8.12.0", "elasticsearch 8.11.0 does not read what elasticsearch 8.12.0"),
        ("x=es@8.11.0,index-from:es@6.8.23", "does not read"),
        ("x=os@2.11.0,index-from:es@7.10.2", "does not read what elasticsearch 7.10.2"),
    ],
)
def test_an_index_may_be_of_an_older_version_that_the_engine_reads(text: str, said: str):
    spec = parse(text)
    with pytest.raises(UsageError, match=said) if said else nullcontext():
        check_spec(spec)
        assert spec.index_from in {"es@8.11.0", "es@7.17.29", "os@1.3.20"}


@pytest.mark.parametrize("text", ["x=es,index-from:es", "x=es,index-from:es@latest", "x=es,index-from:mine"])
def test_who_fills_an_index_is_an_engine_with_a_version(text: str):
    with pytest.raises(UsageError, match=r"names no version|unknown variant"):
        parse(text)


def test_of_pairs_that_contradict_each_other_the_last_holds():
    spec = parse("x=es,heap:1g,jdk:17,setting:a=1,heap:2g,jdk:21,setting:a=2,jvm:-Xint,jvm:-Xmixed")
    assert (spec.heap_mb, spec.jdk, spec.settings) == (2048, "21", {"a": "2"})
    assert spec.jvm_flags == ("-Xint", "-Xmixed")
