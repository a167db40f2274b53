import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import golden
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
from benchctl.track.template import parse_params

FILE = CorpusFile(
    path="/data/people.json", documents=80, held=80, raw_bytes=1, sha256="s", corpus="people", index="a"
)
OWN = msgspec.structs.replace(FILE, corpus="")
TUNED = VariantSpec(
    "tuned", "opensearch", "2.11.0", "/d/os.zip", "17", ("-XX:-Inline",), {"a.b": True, "c": "x y"}
)
UNUSUAL: dict[str, Any] = {
    "variants": (VariantSpec("es@8.19.0", "elasticsearch", "8.19.0"), TUNED),
    "warmup_challenges": (Challenge("warmup", ()),),
    "restart": "never",
    "segments": 4,
    "params": {"query": "a b"},
}
PROD = TargetSpec(("https://a:1", "https://b:2"), file="/c/targets.yml")
LAB = VariantSpec("lab", "opensearch", "2.11.0", target=TargetSpec(("http://127.0.0.1:9200",)))
TARGETS = (VariantSpec("prod", "elasticsearch", "8.11.0", target=PROD), LAB)


def of_files(*files: CorpusFile) -> CorpusSpec:
    return CorpusSpec(0, sum(one.documents for one in files), 0, "d", files)


def written(*, writes: bool) -> dict[str, Any]:
    target = TargetSpec(("http://127.0.0.1:9200",), writes=writes)
    return {"variants": (VariantSpec("prod", "elasticsearch", "8.11.0", target=target),)}


SCENES: dict[str, dict[str, Any]] = {
    "nothing unusual": {},
    "whatever is not ordinary": UNUSUAL,
    "load made in another way": {"workers": 2, "on_error": "abort", "assertions": False},
    "builds and pinned CPUs": {"index_builds": 9, "pin": PinSpec((0, 1, 2, 5), (3,))},
    "a cluster that is only read": written(writes=False),
    "a cluster that is written to": written(writes=True),
    "clusters need no sizes": {"variants": TARGETS},
    "a cluster beside nodes": {"variants": (VariantSpec("es", "elasticsearch", "8.11.0"), LAB)},
    "a rule that ends a run": {"stop": StopSpec(decided=True, budget_s=5400.0)},
    "a budget of odd seconds": {"stop": StopSpec(budget_s=90.5)},
    "some tasks": {"include_tasks": "type:search,range", "exclude_tasks": "tag:slow"},
    "files of a track elsewhere": {"track": "/tracks/house", "corpus": of_files(FILE)},
    "files of a track in its folder": {"track": "/data", "corpus": of_files(FILE)},
    "files of a track beside its file": {"track": "/data/track.json", "corpus": of_files(FILE)},
    "a share of files": {"corpus": of_files(msgspec.structs.replace(FILE, documents=20))},
    "a file of one's own": {"corpus": of_files(OWN)},
    "without documents": {"corpus": CorpusSpec(0, 0, 0, ""), "origin": "empty"},
}


def test_every_plan_has_the_command_that_repeats_it(
    request: pytest.FixtureRequest, replan: Callable[..., Plan]
):
    texts = []
    for name, changes in SCENES.items():
        plan = msgspec.structs.replace(replan(), **changes)
        again = command(plan, forks=5, tags=("a", "b"))
        larger = command(plan, forks=10, iterations=100)
        texts.append(f"# {name}\n{again}\n{larger}\n")
    golden.agree(request.config, Path(__file__).parent / "golden" / "commands.txt", "\n".join(texts))


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
    words = shlex.split(command(plan, forks=5, iterations=100))
    again = parse_variant(words[words.index("--variant") + 1])
    assert msgspec.structs.replace(again, index_settings=spec.index_settings) == spec
    assert again.index_settings == {"index.sort.field": "x,y"}


def test_parameters_come_back_as_what_they_were(replan: Callable[..., Plan]):
    params = {"a": "7", "b": 7, "c": "NaN", "d": [1, {"e": None}], "f": "x y", "g": "true", "h": ""}
    plan = msgspec.structs.replace(replan(), params=params)
    words = shlex.split(command(plan, forks=5))
    given = [words[place + 1] for place, word in enumerate(words) if word == "--param"]
    assert parse_params(given) == params
