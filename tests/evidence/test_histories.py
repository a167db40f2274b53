"""Which call sites differ between what ran before a task, in one fork of a variant."""

from pathlib import Path

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.evidence.inlining_report import (
    CallSites,
    histories,
    history_table,
    history_tables,
    read_history_sites,
)
from benchctl.evidence.profile import PROFILE_NAME, Sample, profile_of
from benchctl.results.plan import Axis, SweepSpec, Swept
from benchctl.results.store import RunFolder
from benchctl.track.model import Challenge, Task
from evidence.made_histories import AFTER, BOOTS, FRESH, INLINED, PLAN, S, compiled, keep, logs, recorded
from jvm_logs import INLINED_VISIT, INTS, VIRTUAL_VISIT, head, in_file, thread


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def test_a_site_is_as_it_was_when_the_task_ended(folder: RunFolder):
    logs(folder)
    (found,) = read_history_sites(folder, recorded(folder, "es", "os"))
    assert (found.operation, found.variant, found.block, found.histories) == (
        "range",
        "os",
        0,
        (FRESH, AFTER),
    )
    assert found.sites == (CallSites(INTS, "visit", (INLINED, "virtual call"), (35, 50), 1000),)
    (table,) = history_tables(folder, recorded(folder, "os"))
    assert table.titles == ("Operation", "Variant", "Call", "Ran before", "Outcome")
    assert [line[2:] for line in table.texts] == [
        ("visit in DocIdsWriter::readInts24 x 2", FRESH, INLINED),
        ("", AFTER, "virtual call"),
    ]


def test_a_swept_history_is_compared_with_the_first_of_the_axis(folder: RunFolder):
    logs(folder)
    axis = Axis("history", ("fresh", "polluted"))
    at = tuple(Swept("debug", {"history": history}) for history in axis.values)
    alone = (Challenge("fresh", (Task("sort"), Task("range"))), Challenge("polluted", (Task("range"),)))
    swept = msgspec.structs.replace(PLAN, schedules=alone, swept=SweepSpec((axis,), PLAN.variants, {}, at))
    assert histories(swept) == [{"fresh": (0, 0), "polluted": (1, 0)}]
    record = msgspec.structs.replace(recorded(folder, "os"), plan=swept)
    # The first task of the first challenge ends before `visit` is compiled.
    (found,) = read_history_sites(folder, record)
    assert (found.histories, found.matched, found.sites) == (("fresh", "polluted"), 0, ())


def test_that_none_differs_is_said(folder: RunFolder):
    for boot in (0, 1):
        keep(folder, boot, "jvm.log", in_file(thread(1), *compiled(1, 4900, *INLINED_VISIT)))
    (found,) = read_history_sites(folder, recorded(folder, "os"))
    assert (found.matched, found.sites) == (1, ())
    (table,) = history_tables(folder, recorded(folder, "os"))
    assert table.texts == (("range", "os", "none of 1", f"{FRESH} / {AFTER}", ""),)


def test_a_profile_tells_which_sites_cost_time(folder: RunFolder):
    """`next` is called more often, and takes no time; of `visit`, what it calls counts as well.

    What is refused after one history is named with a profile only.
    """
    cheap = "org.apache.lucene.search.Cheap::lead"
    sites = {
        0: (
            VIRTUAL_VISIT,
            (
                "                              @ 9   a.D::big (99 bytes)   too big",
                "                              @ 3   a.B::next (0 bytes)   virtual call",
            ),
        ),
        1: (
            INLINED_VISIT,
            (
                "                              @ 9   a.D::big (99 bytes)   inline (hot)",
                "                              @ 3   a.C::next (9 bytes)   inline (hot)",
                "                               \\-> TypeProfile (9000/9000 counts) = a/C",
            ),
        ),
    }
    caller = INTS.replace("::", ".")
    big = (cheap.replace("::", "."), "a.D.big")
    within = ("x.Y.run:1", f"{caller}:7", "a.B.visit:3", "a.B.set")
    stacks = [*[within] * 3, *[big] * 6, *[(f"{caller}:9",)] * 5, ("x.Y.run:1",)]
    for boot, (visit, lead) in sites.items():
        lines = (*compiled(1, 4800, *visit), head(4900, 2, 4, cheap, 50), *lead)
        keep(folder, boot, "jvm.log", in_file(thread(1), *lines))
        # On the fresh node what is `within` was not sampled, on both something before the task began.
        sampled = [Sample(4 * S + at, ("[t]", *stack)) for at, stack in enumerate(stacks[3 * boot :], 1)]
        profile = profile_of([Sample(S, ("[t]", *stacks[0])), *sampled])
        keep(folder, boot, PROFILE_NAME, msgspec.json.encode(profile))
    (found,) = read_history_sites(folder, recorded(folder, "os", kinds=("inlining", "profile")))
    assert (found.samples, found.different) == ((12, 15), 3)
    assert [(site.name, site.samples) for site in found.sites] == [("visit", (5, 8)), ("big", (6, 6))]
    assert found.sites[1].outcomes == ("inlined: D", "not inlined: too big")
    assert history_table([found]).texts[0][-1] == "5 of 12"
    (found,) = read_history_sites(folder, recorded(folder, "os"))
    assert [site.name for site in found.sites] == ["next", "visit"]


def test_a_variant_and_a_fork_can_be_chosen(folder: RunFolder):
    for variant in ("es", "os"):
        logs(folder, variant)
    record = recorded(folder, "es", "os")
    assert [pair.variant for pair in read_history_sites(folder, record)] == ["es", "os"]
    assert [pair.variant for pair in read_history_sites(folder, record, "os", 0)] == ["os"]
    with pytest.raises(UsageError, match="no inlining log of that variant, block"):
        list(read_history_sites(folder, record, block=7))


def test_a_run_without_histories_or_logs_has_no_such_table(folder: RunFolder):
    assert history_tables(folder, recorded(folder, "os")) == []
    logs(folder)
    alone = msgspec.structs.replace(PLAN, schedules=(Challenge("alone", (Task("range"),)),))
    record = msgspec.structs.replace(recorded(folder, "os"), plan=alone)
    assert history_tables(folder, record) == []


def test_a_log_that_cannot_be_read_does_not_cost_the_report(folder: RunFolder):
    keep(folder, 0, "jvm.log.zst", b"no zstd")
    keep(folder, 1, "jvm.log.zst", b"no zstd")
    (table,) = history_tables(folder, recorded(folder, "os"))
    assert table.titles == ("Cannot be read",)


def test_many_logs_are_read_on_request_only(folder: RunFolder):
    logs(folder)
    record = recorded(folder, "os")
    (fork,) = record.forks
    for boot in range(2, 26):
        keep(folder, boot, "jvm.log", b"")
    fork = msgspec.structs.replace(fork, boots=(*BOOTS, *[BOOTS[1]] * 24))
    (table,) = history_tables(folder, msgspec.structs.replace(record, forks=(fork,)))
    assert table.texts == ((f"benchctl explain {folder.path} inlining",),)
