import shlex
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import pytest

from benchctl.engine.variant import parse_variant
from benchctl.report.command_line import command
from benchctl.results.plan import (
    CorpusFile,
    CorpusSpec,
    PinSpec,
    Plan,
    StopSpec,
    TargetSpec,
    VariantSpec,
)
from benchctl.track.model import Challenge
from benchctl.track.parameters import parse_params
from builders import make_plan


def test_command_repeats_the_plan_with_other_sizes(replan: Callable[..., Plan]):
    plan = replan()
    assert command(plan, forks=10, corpus_documents=4_000_000, iterations=None) == (
        "benchctl run --challenge big5rangedebug --docs 4m --unpaired --heap 1024m --param iterations=300 "
        "--forks 10"
    )


def test_command_names_whatever_is_not_ordinary(replan: Callable[..., Plan]):
    plan = msgspec.structs.replace(
        replan(),
        variants=(
            VariantSpec("es@8.19.0", "elasticsearch", "8.19.0"),
            VariantSpec(
                "tuned",
                "opensearch",
                "2.11.0",
                "/d/os.zip",
                "17",
                ("-XX:-Inline",),
                {"a.b": True, "c": "x y"},
            ),
        ),
        warmup_challenges=(Challenge("warmup", ()),),
        restart="never",
        segments=4,
        paired=True,
        params={"query": "a b"},
    )
    words = shlex.split(command(plan, forks=5, corpus_documents=1, iterations=100))
    assert words == [
        *("benchctl", "run", "--challenge", "big5rangedebug", "--variant", "es@8.19.0"),
        *(
            "--variant",
            "tuned=os@2.11.0,distribution:/d/os.zip,jvm:-XX:-Inline,setting:a.b=true,setting:c=x y",
        ),
        *("--warmup-challenge", "warmup", "--docs", "1"),
        *("--restart", "never"),
        *("--jdk", "tuned=17", "--heap", "1024m", "--segments", "4"),
        *("--param", "query=a b", "--param", "iterations=100", "--forks", "5"),
    ]


def test_command_says_all_that_a_variant_adds(replan: Callable[..., Plan]):
    spec = VariantSpec(
        "own",
        "elasticsearch",
        "8.11.0",
        jvm_flags=("-Xlog:gc,safepoint",),
        settings={"a.b": "1"},
        heap_mb=2048,
        environment={"A": "b c"},
        index_settings={"index.sort.field": ["x", "y"]},
        jars=("org.apache.lucene:lucene-core:9.8.0", "patched:bulk-visit"),
        plugins=("g:icu:1",),
        warmups=("warmup",),
    )
    plan = msgspec.structs.replace(replan(), variants=(spec,))
    words = shlex.split(command(plan, forks=5, corpus_documents=1, iterations=100))
    again = parse_variant(words[words.index("--variant") + 1])
    assert msgspec.structs.replace(again, index_settings=spec.index_settings) == spec
    assert again.index_settings == {"index.sort.field": "x,y"}


def test_command_makes_the_load_in_the_same_way(replan: Callable[..., Plan]):
    plan = msgspec.structs.replace(replan(), workers=2, on_error="abort", assertions=True)
    text = command(plan, forks=5, corpus_documents=1, iterations=None)
    assert "--workers 2 --on-error abort --enable-assertions" in text


def test_command_builds_as_often_and_pins_to_the_same_cpus(replan: Callable[..., Plan]):
    plan = msgspec.structs.replace(replan(), index_builds=3, pin=PinSpec((0, 1, 2, 5), (3,)))
    text = command(plan, forks=5, corpus_documents=1, iterations=None)
    assert "--index-builds 3" in text
    assert "--heap 1024m --pin node=0-2,5,driver=3" in text
    assert command(plan, forks=2, corpus_documents=1, iterations=None).endswith("--forks 3")


@pytest.mark.parametrize(
    ("writes", "words"),
    [(None, []), ("removed", ["--allow-writes"]), ("kept", ["--allow-writes", "--keep"])],
)
def test_what_a_cluster_lets_be_written_is_repeated(
    replan: Callable[..., Plan], writes: Literal["removed", "kept"] | None, words: list[str]
):
    target = TargetSpec(("http://127.0.0.1:9200",), writes=writes)
    variants = (VariantSpec("prod", "elasticsearch", "8.11.0", target=target),)
    plan = msgspec.structs.replace(replan(), variants=variants)
    said = shlex.split(command(plan, forks=5, corpus_documents=1, iterations=None))
    assert [word for word in said if word in {"--allow-writes", "--keep"}] == words


def test_clusters_that_run_already_are_named_and_need_no_sizes(replan: Callable[..., Plan]):
    target = TargetSpec(
        ("https://a:1", "https://b:2"),
        "/c/ca.pem",
        auth_file="/c/auth.yml",
        restart_command=("restart", "my node"),
    )
    plain = TargetSpec(("http://127.0.0.1:9200",), verify=False)
    variants = (
        VariantSpec("prod", "elasticsearch", "8.11.0", target=target),
        VariantSpec("lab", "opensearch", "2.11.0", target=plain),
    )
    plan = msgspec.structs.replace(replan(), variants=variants)
    assert shlex.split(command(plan, forks=5, corpus_documents=1, iterations=None)) == [
        *("benchctl", "run", "--challenge", "big5rangedebug", "--unpaired"),
        *("--target", "prod=https://a:1,https://b:2", "--target-ca", "prod=/c/ca.pem"),
        *("--target-auth", "prod=/c/auth.yml", "--restart-command", "prod=restart 'my node'"),
        *("--target", "lab=http://127.0.0.1:9200", "--insecure", "lab"),
        *("--param", "iterations=300", "--forks", "5"),
    ]
    mixed = msgspec.structs.replace(
        plan, variants=(VariantSpec("es", "elasticsearch", "8.11.0"), variants[1])
    )
    assert command(mixed, forks=5, corpus_documents=1000, iterations=None) == (
        "benchctl run --challenge big5rangedebug --variant es --docs 1k --unpaired --heap 1024m "
        "--target lab=http://127.0.0.1:9200 --insecure lab --param iterations=300 --forks 5"
    )


def test_command_repeats_the_rule_that_ends_a_run_and_its_tags(replan: Callable[..., Plan]):
    plan = msgspec.structs.replace(replan(), stop=StopSpec(precision=0.025, budget_s=5400.0))
    text = command(plan, forks=50, corpus_documents=1, iterations=None, tags=("nightly", "a"))
    assert "--precision 2.5% --budget 90m " in text
    assert text.endswith("--forks 50")
    assert "--tag nightly --tag a" in text
    seconds = msgspec.structs.replace(plan, stop=StopSpec(budget_s=90.5))
    assert "--budget 90.5s " in command(seconds, forks=50, corpus_documents=1, iterations=None)


def test_command_keeps_to_the_same_tasks(replan: Callable[..., Plan]):
    plan = msgspec.structs.replace(replan(), include_tasks="type:search,range", exclude_tasks="tag:slow")
    words = shlex.split(command(plan, forks=5, corpus_documents=1, iterations=None))
    assert words[words.index("--include-tasks") + 1] == "type:search,range"
    assert words[words.index("--exclude-tasks") + 1] == "tag:slow"


def test_parameters_come_back_as_what_they_were(replan: Callable[..., Plan]):
    params = {"a": "7", "b": 7, "c": "NaN", "d": [1, {"e": None}], "f": "x y", "g": "true", "h": ""}
    plan = msgspec.structs.replace(replan(), params=params)
    words = shlex.split(command(plan, forks=5, corpus_documents=1, iterations=None))
    given = [words[place + 1] for place, word in enumerate(words) if word == "--param"]
    assert parse_params(given) == params


def words_of(**changes: Any) -> str:
    plan = make_plan(**changes)
    return command(plan, forks=2, corpus_documents=plan.corpus.documents, iterations=None)


FILE = CorpusFile(
    path="/data/people.json", documents=80, held=80, raw_bytes=1, sha256="s", corpus="people", index="a"
)


def of_files(*files: CorpusFile) -> CorpusSpec:
    return CorpusSpec(0, sum(one.documents for one in files), 0, "d", files)


def test_files_of_a_track_are_looked_for_where_they_were_found():
    text = words_of(track="/tracks/house", corpus=of_files(FILE))
    assert "--corpus-dir /data " in text
    # All documents of files are what comes without being told.
    assert "--docs" not in text
    assert "--corpus-seed" not in text
    assert "--corpus-dir" not in words_of(track="/data", corpus=of_files(FILE))
    assert "--corpus-dir" not in words_of(track="/data/track.json", corpus=of_files(FILE))
    share = msgspec.structs.replace(FILE, documents=20)
    assert "--docs 20" in words_of(corpus=of_files(share))


def test_a_file_of_ones_own_is_named():
    own = msgspec.structs.replace(FILE, corpus="")
    assert "--corpus /data/people.json" in words_of(corpus=of_files(own))
    acting = msgspec.structs.replace(own, has_actions=True)
    assert "--corpus /data/people.json --corpus-has-actions" in words_of(corpus=of_files(acting))


def test_a_run_without_documents_says_nothing_of_them():
    assert "--docs" not in words_of(corpus=CorpusSpec(0, 0, 0, ""), origin="empty")
