"""What is said of how a run was measured: `golden/facts.txt` has it scene by scene."""

import difflib
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import golden
from benchctl.report.facts import fact_sections
from benchctl.results.answers import AnswerSample
from benchctl.results.model import (
    AnswerCheck,
    AnswerFinding,
    EngineFacts,
    OtherLoad,
    RunRecord,
    SegmentFacts,
)
from benchctl.results.plan import CorpusFile, CorpusSpec, PinSpec, PluginSpec
from benchctl.track.model import Challenge, Task
from builders import make_record
from report.conftest import complete_record, fact_lines

GOLDEN = Path(__file__).parent / "golden" / "facts.txt"
PLAIN = complete_record()
FILE = CorpusFile(path="/f", documents=300, held=1_000, raw_bytes=1, sha256="s", index="a")
OWN = ("-Xms4g", "-Xmx4g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=50", "-Da=2", "-Db", "-ea")
OVERRULED = ("-Xms1g", "-Xmx1g", "-Xss1m", "-XX:-UseG1GC", "-XX:MaxGCPauseMillis=9", "-Da=1", "-Db=x")
REPEATED = ("-XX:CompileCommand=quiet", "-XX:CompileCommand=exclude,a.b", "--add-opens", "x", "--add-opens")


def replaced(**changes: Any) -> RunRecord:
    return msgspec.structs.replace(PLAIN, **changes)


def planned(**changes: Any) -> RunRecord:
    return replaced(plan=msgspec.structs.replace(PLAIN.plan, **changes))


def engines(*changes: dict[str, Any]) -> RunRecord:
    pairs = itertools.zip_longest(PLAIN.engines, changes, fillvalue={})
    found: list[EngineFacts] = [msgspec.structs.replace(facts, **changes) for facts, changes in pairs]
    return replaced(engines=tuple(found))


def compound() -> RunRecord:
    """An index of three segments, of which one is a compound file."""
    parts = tuple(SegmentFacts(1000, 2**20, "9.8.0", flag) for flag in (False, True, False))
    facts = msgspec.structs.replace(PLAIN.indices["es"], segments=parts)
    return replaced(indices={**PLAIN.indices, "es": facts})


def flags(first: Sequence[str], second: Sequence[str]) -> RunRecord:
    same = {"version": "1", "lucene": "9"}
    return engines({**same, "jvm_flags": tuple(first)}, {**same, "jvm_flags": tuple(second)})


def forks(*changes: dict[str, Any]) -> RunRecord:
    pairs = zip(PLAIN.forks, changes, strict=False)
    first = tuple(msgspec.structs.replace(fork, **change) for fork, change in pairs)
    return replaced(forks=(*first, *PLAIN.forks[len(first) :]))


def built_twice() -> RunRecord:
    first = PLAIN.indices["es"]
    second = msgspec.structs.replace(first, store_bytes=first.store_bytes + 2**20)
    record = planned(index_builds=2)
    answers = AnswerCheck(("range",), {}, ())
    return msgspec.structs.replace(record, builds={"es": (first, second)}, answers=answers)


def stray() -> RunRecord:
    boot = msgspec.structs.replace(PLAIN.forks[0].boots[0], searches_counted=901)
    return forks({"boots": (boot,)}, {"status": "failed", "reason": "the node died"})


def found(kind: str, detail: str, operation: str = "a") -> RunRecord:
    finding = AnswerFinding(operation, "os", "es", kind, detail)  # type: ignore[arg-type]
    return replaced(answers=AnswerCheck((operation,), {}, (finding,)))


def sampled(changed: int) -> RunRecord:
    (summary, *_) = PLAIN.forks[0].summaries
    sample = AnswerSample(1064, 1063, changed, "ids of the hits" if changed else "", None)
    return forks({"summaries": (msgspec.structs.replace(summary, answers=sample),)})


SCENES: dict[str, Callable[[], RunRecord]] = {
    "several builds of an index, whose first is asked": built_twice,
    "a share of a file": lambda: planned(corpus=CorpusSpec(0, 300, 0, "abc", (FILE,))),
    "whatever is not ordinary": lambda: planned(
        origin="empty",
        pin=PinSpec((0, 1, 2), (3,)),
        plugin=PluginSpec("/tracks/books/track.py", "ab" * 32),
    ),
    "engines with changes": lambda: engines(
        {
            "jars": {"lucene-core-9.8.0.jar": "1" * 64},
            "plugins": {"icu": "2"},
            "switched_off": {"xpack.ml.enabled": False, "cluster.metadata.perf_analyzer.state": 0},
        },
        {"verified_by": "sha512"},
    ),
    "one of three is compound": compound,
    "flags that later ones supersede": lambda: flags(OWN, (*OVERRULED, *OWN)),
    "flags that may be given several times": lambda: flags((), REPEATED),
    "variants that never started": lambda: complete_record(variants=("es", "noinline"), engines=()),
    "others worked beside a fork, or nobody knows": lambda: forks(
        {"others": OtherLoad(2, 0.96, {"python3": 0.9})}, {"others": None}
    ),
    "stray searches, a failed fork": stray,
    "answers were not compared": lambda: replaced(answers=None),
    "no answer could be compared": lambda: replaced(answers=AnswerCheck((), {}, ())),
    "a variant cannot do it": lambda: found("unsupported", "no such query"),
    "a node refuses a search of the pollution": lambda: msgspec.structs.replace(
        planned(warmup_challenges=(Challenge("polluted", (Task("polluted:a"),)),)),
        answers=found("failed", "fielddata", "polluted:a").answers,
    ),
    "measured answers were compared": lambda: sampled(changed=0),
    "measured answers changed": lambda: sampled(changed=9),
    "answers differ": lambda: found("different", "total hits 7 against 6"),
    "forks were added": lambda: msgspec.structs.replace(make_record().with_blocks([4, 5], None), looks=2),
}


def said(record: RunRecord) -> list[str]:
    return [f"{one.heading} | {line}\n" for one in fact_sections(record) for line in one.lines]


def test_every_scene_is_told_as_before(request: pytest.FixtureRequest):
    plain = said(PLAIN)
    scenes = [f"# plain\n{''.join(plain)}"]
    for name, scene in SCENES.items():
        lines = difflib.ndiff(plain, said(scene()))
        scenes.append(f"# {name}\n{''.join(line for line in lines if line[0] in '+-')}")
    golden.agree(request.config, GOLDEN, "\n".join(scenes))


def test_a_run_that_has_not_begun_has_facts_too():
    record = complete_record(forks=0, engines=(), indices={}, answers=None, timings={})
    assert fact_lines(record)[0] == "Run"
