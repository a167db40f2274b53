"""The whole of big5 in test mode, on real nodes and a patched Lucene: what runs, lacks, and is found."""

import subprocess

import pytest

from benchctl.home import Home
from benchctl.results.model import RunRecord, stray_boots
from benchctl.results.store import RunStore
from benchctl.track.pollution import MOST_REQUESTS
from builders import exact_hits
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

# Classes that come from an archive do not say which jar they were in, and scripts start nodes without one.
PATCHED = "es-patched=es,jar:patched:bulk-visit,jvm:-Xlog:class+load,start:script"
VARIANTS = ("es", "os", "es-patched")

# The core build of Elasticsearch carries no module with these; that of OpenSearch does.
LACKING = {"multi_terms-keyword", "range-auto-date-histo", "range-auto-date-histo-with-metrics"}
WITHOUT_THEM = ("es", "es-patched")


@pytest.fixture(scope="module")
def trial(
    benchctl: Benchctl, store: RunStore, installations: object
) -> tuple[subprocess.CompletedProcess[str], RunRecord]:
    assert installations
    variants = [word for variant in ("es", "os", PATCHED) for word in ("--variant", variant)]
    # As many documents as it takes for leaves whose ids don't fit into 16 bits.
    polluted = ("--warmup-challenge", "polluted")
    done = benchctl("run", "--challenge", "big5", *polluted, "--test-mode", "--heap", "512m", *variants)
    return done, store.find("latest", finished=False).load()


def test_the_whole_schedule_runs(trial: tuple[subprocess.CompletedProcess[str], RunRecord], home: Home):
    done, record = trial
    assert done.returncode == 0, done.stderr
    assert (record.status, record.plan.corpus.documents, len(record.forks)) == ("complete", 100_000, 3)
    assert [len(challenge.schedule) for challenge in record.plan.schedules] == [37]
    assert "--test-mode" in done.stdout
    assert list(home.scratch.iterdir()) == []


def test_what_a_side_lacks_is_said_with_its_own_reason(
    trial: tuple[subprocess.CompletedProcess[str], RunRecord], benchctl: Benchctl
):
    done, record = trial
    for fork in record.forks:
        reasons = {one.label: one.unsupported for one in fork.summaries if one.unsupported is not None}
        assert set(reasons) == (LACKING if fork.variant in WITHOUT_THEM else set())
        assert all("multi_terms" in (text or "") or "auto_date" in (text or "") for text in reasons.values())
        assert not any(summary.failures for summary in fork.summaries)
        assert all(one.samples == 3 for one in fork.summaries if one.label not in reasons)
    assert done.returncode == 0, done.stderr
    assert "es cannot do this operation" in benchctl("show", record.id, "--notes").stdout


def test_no_node_got_another_search_than_it_was_sent(
    trial: tuple[subprocess.CompletedProcess[str], RunRecord],
):
    for fork in trial[1].forks:
        assert [boot.searches_counted is None for boot in fork.boots] == [False]
        assert stray_boots(fork) == ()


def test_every_operation_finds_something_and_nobody_contradicts_the_generator(
    trial: tuple[subprocess.CompletedProcess[str], RunRecord],
):
    answers, polluting = trial[1].answers, trial[1].plan.polluting
    assert answers is not None
    assert len(polluting) == MOST_REQUESTS
    assert len(answers.operations) == 37 + len(polluting)
    assert {(one.operation, one.variant, one.kind) for one in answers.findings} == {
        (name, variant, "unsupported") for name in LACKING for variant in WITHOUT_THEM
    }
    for name in answers.operations:
        hits = exact_hits(answers)[name]
        assert set(hits) == ({"os"} if name in LACKING else set(VARIANTS))
        assert min(hits.values()) >= (1 if name in polluting else 10)


def test_the_patched_lucene_is_what_the_node_loaded(
    trial: tuple[subprocess.CompletedProcess[str], RunRecord], store: RunStore
):
    (boot,) = store.find(trial[1].id).path.glob("boots/000-es-patched/boot-0")
    log = "\n".join(path.read_text(errors="replace") for path in boot.rglob("*") if path.is_file())
    loaded = [line for line in log.splitlines() if "bkd.DocIdsWriter$Block " in line]
    assert len(loaded) == 1
    assert "lucene-core-9.8.0.jar" in loaded[0]
