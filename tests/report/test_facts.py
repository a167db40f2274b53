from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from benchctl.report.blocks import markdown
from benchctl.report.facts import fact_sections
from benchctl.results.foreign import read_race, record_of
from benchctl.results.model import (
    AnswerCheck,
    AnswerFinding,
    HostProbe,
    OtherLoad,
    Pilot,
    PilotFork,
    RunRecord,
    SegmentFacts,
)
from benchctl.results.plan import CorpusFile, CorpusSpec, PinSpec, Plan, PluginSpec
from builders import ES, make_record
from races import race, write
from report.conftest import fact_lines


def section(record: RunRecord, heading: str):
    return next((one.lines for one in fact_sections(record) if one.heading == heading), ())


def test_an_ingest_in_several_goes_is_told(record: RunRecord):
    indices = {
        name: msgspec.structs.replace(
            facts, ingest=msgspec.structs.replace(facts.ingest, checkpoint_s=2.25, resumed=1)
        )
        for name, facts in record.indices.items()
    }
    changed = msgspec.structs.replace(record, indices=indices)
    assert "  put by on the way in 2.2 s, interrupted 1 x" in section(changed, "Indices")
    assert not any("put by" in line for line in section(record, "Indices"))


def test_ingest_shows_both_clocks(record: RunRecord):
    lines = section(record, "Indices")
    assert "  ingest: 50,000 docs/s, 46.5 MB/s with 1 sender, 20.0 s" in lines
    assert any("engine's own indexing clock: 31.0 s" in line for line in lines)


def test_every_build_of_an_index_is_shown(record: RunRecord):
    first = record.indices["es"]
    second = msgspec.structs.replace(first, store_bytes=first.store_bytes + 2**20)
    plan = msgspec.structs.replace(record.plan, index_builds=2)
    several = msgspec.structs.replace(record, plan=plan, builds={"es": (first, second)})
    heads = [line.partition(":")[0] for line in section(several, "Indices") if not line.startswith("  ")]
    assert heads == ["es, build 1 of 2", "es, build 2 of 2", "os"]
    check = AnswerCheck(("range",), {}, ())
    asked = msgspec.structs.replace(several, answers=check)
    assert section(asked, "Answers") == ("alike on the one operation, asked of the first of 2 index builds",)


def test_an_index_is_told_by_field_or_why_not(record: RunRecord):
    facts = record.indices["es"]

    def told(**changes: object) -> list[str]:
        indices = {"es": msgspec.structs.replace(facts, store_bytes=10_000_000, **changes)}
        lines = section(msgspec.structs.replace(record, indices=indices), "Indices")
        return [line for line in lines if line.startswith("  fields: ")]

    (kept,) = told()
    assert kept.startswith("  fields: not kept by the version that built it; delete indices/*-")
    unknown = told(fields_unknown="no handler found")
    assert unknown == ["  fields: the engine does not tell: no handler found"]
    fields = {"message": 8 * 2**20, "host": 2**20, "tag": 2**16, "_id": 2**15}
    assert told(fields=fields) == ["  fields: message 8.4 MB, host 1.0 MB, 2 more 0.1 MB"]


def test_pinned_cpus_are_shown(record: RunRecord):
    plan = msgspec.structs.replace(record.plan, pin=PinSpec((0, 1, 2), (3,)))
    lines = section(msgspec.structs.replace(record, plan=plan), "Run")
    assert "pinned: nodes to CPUs 0-2, driver to CPUs 3" in lines
    assert not any("pinned" in line for line in section(record, "Run"))


def test_documents_of_files_are_counted_by_file(record: RunRecord):
    def of(plan: Plan) -> str:
        return "\n".join(fact_lines(msgspec.structs.replace(record, plan=plan)))

    file = CorpusFile(path="/f", documents=300, held=1_000, raw_bytes=1, sha256="s", index="a")
    share = msgspec.structs.replace(record.plan, corpus=CorpusSpec(0, 300, 0, "abc", (file,)))
    assert "corpus: 300 documents, an even share of 1,000, of 1 file, digest abc" in of(share)
    whole = msgspec.structs.replace(file, documents=1_000)
    both = msgspec.structs.replace(share, corpus=CorpusSpec(0, 2_000, 0, "abc", (whole, whole)))
    assert "corpus: 2,000 documents, of 2 files, digest abc" in of(both)


def test_data_that_forks_made_themselves_is_said(record: RunRecord):
    plan = msgspec.structs.replace(record.plan, origin="empty")
    text = "\n".join(fact_lines(msgspec.structs.replace(record, plan=plan)))
    assert "every fork began without data" in text
    assert "every fork began without data" not in "\n".join(fact_lines(record))


def test_a_plug_in_that_was_executed_is_named(record: RunRecord):
    plan = msgspec.structs.replace(record.plan, plugin=PluginSpec("/tracks/books/track.py", "ab" * 32))
    lines = section(msgspec.structs.replace(record, plan=plan), "Run")
    assert "executed the track's plug-in /tracks/books/track.py, digest abababababab" in lines


def test_what_a_variant_has_of_its_own_is_shown(record: RunRecord):
    first, *others = record.engines
    first = msgspec.structs.replace(first, jars={"lucene-core-9.8.0.jar": "1" * 64}, plugins={"icu": "2"})
    plan = msgspec.structs.replace(record.plan, variant_warmups={"os": record.plan.schedules[:1]})
    changed = msgspec.structs.replace(record, engines=(first, *others), plan=plan)
    lines = section(changed, "Engines")
    assert lines[1:3] == ("  lib/lucene-core-9.8.0.jar replaced, SHA-256 111111111111", "  plug-in icu 2")
    assert f"warm-up of os before that: {plan.schedules[0].name}" in section(changed, "Run")


def test_what_a_pilot_chose_is_shown(record: RunRecord):
    forks = (PilotFork("es", 1, 9.0, ()), PilotFork("os", 1, 9.0, ()))
    found = Pilot(forks, {"c.warmup_iterations": 130})
    lines = section(msgspec.structs.replace(record, pilot=found), "Run")
    assert "2 pilot forks chose c.warmup_iterations=130" in lines
    unsettled = Pilot(forks, {}, ("c: range of os",))
    lines = section(msgspec.structs.replace(record, pilot=unsettled), "Run")
    assert "2 pilot forks chose nothing; not settled in them: c: range of os" in lines


def test_differences_between_variants_are_those_that_the_nodes_report(record: RunRecord):
    assert section(record, "Differences between variants") == (
        "version: es 8.11.0, os 2.11.0",
        "lucene: es 9.8.0, os 9.7.0",
        "JVM flags of es only: -Des",
        "JVM flags of os only: -Dos",
    )


def test_how_nodes_started_is_a_difference(record: RunRecord):
    starts = {"es": "direct, classes archived", "os": "direct"}
    engines = tuple(msgspec.structs.replace(one, start=starts[one.variant]) for one in record.engines)
    changed = msgspec.structs.replace(record, engines=engines)
    assert "start: es direct, classes archived, os direct" in section(changed, "Differences between variants")


@pytest.mark.parametrize(
    ("verified_by", "said"),
    [
        ("sha512", "Java Temurin 21.0.8, checksum sha512"),
        ("none", "Java Temurin 21.0.8, no published checksum"),
        ("", "Java Temurin 21.0.8"),
    ],
)
def test_how_an_archive_was_checked_stands_with_its_engine(record: RunRecord, verified_by: str, said: str):
    first, *others = record.engines
    changed = msgspec.structs.replace(first, verified_by=verified_by)
    lines = section(msgspec.structs.replace(record, engines=(changed, *others)), "Engines")
    assert lines[0] == f"es: version 8.11.0, build d9ec3fa628c7, Lucene 9.8.0, {said}"


def with_segments(record: RunRecord, compound: Sequence[bool], mib: int) -> RunRecord:
    """The record with another index of its first variant: one segment for each of the flags."""
    segments = tuple(SegmentFacts(1000, 2**20, "9.8.0", flag) for flag in compound)
    changed = msgspec.structs.replace(record.indices["es"], segments=segments, store_bytes=mib * 2**20)
    return msgspec.structs.replace(record, indices={**record.indices, "es": changed})


@pytest.mark.parametrize(
    ("compound", "mib", "said"),
    [
        ([True], 150, "1 compound segment, 157.3 MB"),
        ([True, True], 150, "2 compound segments, 157.3 MB"),
        ([False, True, False], 150, "3 segments (1 compound), 157.3 MB"),
        ([False, False], 150, "2 segments, 157.3 MB"),
        ([False], 151, "1 segment, 158.3 MB"),
    ],
)
def test_indices_of_another_shape_are_a_difference(
    record: RunRecord, compound: Sequence[bool], mib: int, said: str
):
    lines = section(with_segments(record, compound, mib), "Differences between variants")
    assert lines[-1] == f"index: es {said}; os 1 segment, 157.3 MB"


def test_indices_of_one_shape_are_no_difference(record: RunRecord):
    lines = section(with_segments(record, [False], 150), "Differences between variants")
    assert not any(line.startswith("index") for line in lines)


def test_flags_that_later_ones_supersede_are_no_difference(record: RunRecord):
    own = ("-Xms4g", "-Xmx4g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=50", "-Da=2", "-Db", "-ea")
    overruled = ("-Xms1g", "-Xmx1g", "-Xss1m", "-XX:-UseG1GC", "-XX:MaxGCPauseMillis=9", "-Da=1", "-Db=x")
    first, second = (
        msgspec.structs.replace(facts, version="1", lucene="9", jvm_flags=flags)
        for facts, flags in zip(record.engines, (own, (*overruled, *own)), strict=True)
    )
    lines = section(msgspec.structs.replace(record, engines=(first, second)), "Differences between variants")
    assert lines == ("JVM flags of os only: -Xss1m",)


def test_flags_that_may_be_given_several_times_are_all_differences(record: RunRecord):
    adding = ("-XX:CompileCommand=quiet", "-XX:CompileCommand=exclude,a.b", "--add-opens", "x", "--add-opens")
    first, second = (
        msgspec.structs.replace(facts, version="1", lucene="9", jvm_flags=flags)
        for facts, flags in zip(record.engines, ((), adding), strict=True)
    )
    lines = section(msgspec.structs.replace(record, engines=(first, second)), "Differences between variants")
    assert lines == (f"JVM flags of os only: {' '.join(adding)}",)


def test_differences_of_variants_that_never_started_are_those_asked_for(build: Callable[..., RunRecord]):
    record = build(variants=("es", "noinline"), engines=())
    assert section(record, "Differences between variants") == ("JVM flags of noinline only: -XX:-Inline",)


def test_order_and_seed(record: RunRecord):
    assert "order seed 1" in section(record, "Run")[2]
    assert section(record, "Forks")[0] == "block 0: es, os"


def test_forks_beside_which_others_worked_stand_out_and_what_is_unknown_is_said(record: RunRecord):
    first, second, *rest = record.forks
    changed = (
        msgspec.structs.replace(first, others=OtherLoad(2, 0.96, {"python3": 0.9})),
        msgspec.structs.replace(second, others=None),
    )
    lines = section(msgspec.structs.replace(record, forks=(*changed, *rest)), "Forks")
    assert "fork 0 of es: other processes used 48% of the CPUs (python3 45%)" in lines
    assert "CPU of other processes: unknown for forks of os" in lines
    assert sum("other processes" in line for line in lines) == 2


def test_stray_searches_failed_and_disturbed_forks_stand_out(record: RunRecord):
    first, second, third, *rest = record.forks
    boot = msgspec.structs.replace(first.boots[0], searches_counted=901)
    slow = HostProbe(120_000_000, 100_000_000)
    changed = (
        msgspec.structs.replace(first, boots=(boot,)),
        msgspec.structs.replace(second, status="failed", reason="the node died"),
        msgspec.structs.replace(third, probes=(slow,)),
    )
    lines = section(msgspec.structs.replace(record, forks=(*changed, *rest)), "Forks")
    assert "fork 0 of es: the node counted 901 searches where 900 were sent" in lines
    assert "fork 0 of os failed: the node died" in lines
    assert (
        "noisy host around fork 1 of es: the host's cpu probe ran 20% slower than its median in this run"
        in lines
    )


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (None, "not compared: nothing says that the variants do the same work"),
        (AnswerCheck(("a", "b"), {}, ()), "alike on all 2 operations"),
        (
            AnswerCheck((), {}, ()),
            "none compared: the requests of these operations differ from one to the next, or search nothing",
        ),
        (
            AnswerCheck(("a",), {}, (AnswerFinding("a", "os", "es", "unsupported", "no such query"),)),
            "a: os cannot do it: no such query",
        ),
        (
            AnswerCheck(("a",), {}, (AnswerFinding("a", "os", "es", "different", "total hits 7 against 6"),)),
            "a: os differs from es: total hits 7 against 6",
        ),
    ],
)
def test_answers(build: Callable[..., RunRecord], check: AnswerCheck | None, expected: str):
    assert section(build(answers=check), "Answers") == (expected,)


def test_time_is_split(record: RunRecord):
    lines = section(record, "Time")
    assert lines[0].startswith(
        "es: node start 4.50 s, calming down 0.50 s, stop 1.00 s; a fork: requests 13.00 s"
    )
    assert lines[-1] == "prepare 61.50 s, forks 200.0 s"


def test_a_run_that_has_not_begun_has_facts_too(build: Callable[..., RunRecord]):
    lines = fact_lines(build(forks=0, engines=(), indices={}, answers=None, timings={}))
    assert lines[0] == "Run"


def test_lines_fit_a_width(record: RunRecord):
    assert max(len(line) for line in fact_lines(record, width=80)) <= 80
    assert " ".join(" ".join(fact_lines(record, width=60)).split()) == " ".join(
        " ".join(fact_lines(record)).split()
    )


def test_facts_as_markdown_are_headings_and_lists(record: RunRecord):
    text = markdown([fact_sections(record)])
    assert text.startswith("### Run\n\n- 20260101-000000-big5rangedebug-abcd, ")
    assert "\n\n### Host\n\n- lab1: Debian 12, Linux 6.1.0 (kvm)\n" in text
    # What belongs to an index is a list of its own below it, and underscores stay what they are.
    assert "\n  - ingest: 50,000 docs/s" in text
    assert "### Differences between variants\n\n- version: es 8.11.0, os 2.11.0" in text
    headings = [line.removeprefix("### ") for line in text.splitlines() if line.startswith("#")]
    assert headings == [section.heading for section in fact_sections(record)]


def test_of_imported_results_only_what_is_known_is_said(tmp_path: Path):
    path = write(tmp_path / "race.json", race())
    record = record_of([read_race(path)], ES, "r", tags=("before",))
    assert [one.heading for one in fact_sections(record)] == ["Run", "Engines"]
    assert section(record, "Run") == (
        "r, measured 2026-01-01T01:00:00+00:00",
        "tags: before",
        "measured by Rally 2.9.1, imported by benchctl 0.1.0, without samples",
        "environment 'local', nodes '4gheap': all that is known of host and heap",
        "track big5, challenge big5rangedebug; corpus, order and node restarts unknown",
        "parameters: iterations=300",
        f"fork 0: {path}",
    )
    assert section(record, "Engines") == ("es: version 8.11.0, build d9ec3fa6, Lucene unknown, Java unknown",)


def test_forks_that_were_added_to_some_variants_are_counted_with_the_look_before_them():
    record = msgspec.structs.replace(make_record().with_blocks([4, 5], None, {"es"}), looks=2)
    lines = [line for section in fact_sections(record) for line in section.lines]
    assert any(line.startswith("2 to 4 forks of every variant") for line in lines)
    assert "forks were added after its figures could be seen: look 2" in lines
