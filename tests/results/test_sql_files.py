"""Files of forks are known by their size and digest: what is gone, damaged or foreign is told by name."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from benchctl.errors import BenchctlError
from benchctl.evidence.files import JIT_DTYPES, write_evidence
from benchctl.results.model import StoredFile
from benchctl.results.reading import UnknownTimesError, fork_sources, task_windows
from benchctl.results.samples import GC_DTYPES, SERIES_DTYPES, empty_telemetry
from benchctl.results.sql import StoredRun, answered
from stored import ROWS, described

SAMPLES = "forks/000-es.parquet"


def remove(path: Path) -> None:
    path.unlink()


def put_another(path: Path) -> None:
    shutil.copyfile(path.with_name("001-os.parquet"), path)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    return described(tmp_path, "r1")


def samples_of(run: StoredRun) -> list[tuple[object, ...]]:
    with answered("SELECT count(*) FROM samples", [run]) as found:
        return list(found.rows)


def test_a_record_knows_what_its_files_are_like(run: StoredRun):
    fork = run.record.forks[0]
    known = run.folder.load().forks[0].files
    assert known == fork.files
    assert known.keys() == {SAMPLES}
    assert (known[SAMPLES].rows, known[SAMPLES].size_bytes) == (
        ROWS,
        (run.folder.path / SAMPLES).stat().st_size,
    )
    run.folder.require_files(run.record)
    assert samples_of(run) == [(4 * ROWS,)]


def test_telemetry_and_evidence_are_known_too(run: StoredRun):
    fork = run.record.forks[0]
    empty = empty_telemetry(SERIES_DTYPES), empty_telemetry(GC_DTYPES)
    telemetry = run.folder.write_telemetry(*empty, fork.variant, fork.block)
    boot = run.folder.evidence_folder(fork.variant, fork.block, 0)
    boot.mkdir(parents=True)
    write_evidence(empty_telemetry(JIT_DTYPES), JIT_DTYPES, boot / "jit.parquet")
    (boot / "inlining.log").write_bytes(b"12345")
    files = run.folder.described(msgspec.structs.replace(fork, telemetry=telemetry)).files
    log = "evidence/000-es/boot-0/inlining.log"
    assert {path: one.rows for path, one in files.items()} == {
        SAMPLES: ROWS,
        telemetry: 0,
        log: None,
        "evidence/000-es/boot-0/jit.parquet": 0,
    }
    digest = "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5"
    assert files[log] == StoredFile(5, digest)


@pytest.mark.parametrize("harm", [remove, put_another, flip, cut_off])
def test_no_query_chart_or_quantile_is_answered_from_other_samples(
    run: StoredRun, harm: Callable[[Path], None]
):
    harm(run.folder.path / SAMPLES)
    with pytest.raises(BenchctlError, match=SAMPLES) as caught:
        samples_of(run)
    assert caught.value.exit_code == 1
    first = next(one for one in fork_sources(run.folder, run.record.forks) if one.block == 0)
    assert first.samples is None
    assert SAMPLES in first.absent
    with pytest.raises(UnknownTimesError, match=SAMPLES):
        task_windows(run.folder, run.record.forks[0])


@pytest.mark.parametrize(
    ("harm", "said"), [(remove, "is gone"), (cut_off, "bytes, and had"), (put_another, "bytes, and had")]
)
def test_what_is_gone_or_of_another_size_is_told_without_reading(
    run: StoredRun, harm: Callable[[Path], None], said: str
):
    (run.folder.path / "forks" / "001-os.parquet").write_bytes(b"another one")
    harm(run.folder.path / SAMPLES)
    with pytest.raises(BenchctlError, match=f"{SAMPLES} .*{said}"):
        run.folder.require_files(run.record)


@pytest.mark.parametrize("harm", [remove, put_another, flip, cut_off])
def test_a_damaged_file_takes_the_samples_of_its_run_only(
    run: StoredRun, tmp_path: Path, harm: Callable[[Path], None]
):
    other = described(tmp_path, "r2")
    harm(other.folder.path / SAMPLES)
    told: list[str] = []
    query = "SELECT run, count(*) FROM samples GROUP BY run"
    with answered(query, [other, run], damaged=told.append) as found:
        assert list(found.rows) == [("r1", 4 * ROWS)]
    assert [str(other.folder.path) in text and SAMPLES in text for text in told] == [True]
    with (
        pytest.raises(BenchctlError, match=SAMPLES),
        answered(query, [other], damaged=told.append),
    ):
        pass


def test_samples_of_forks_that_do_not_count_are_marked(run: StoredRun):
    first, *others = run.record.forks
    failed = msgspec.structs.replace(
        run.record, forks=(msgspec.structs.replace(first, status="failed"), *others)
    )
    query = "SELECT compared, count(*) FROM samples GROUP BY ALL ORDER BY ALL"
    with answered(query, [StoredRun(run.folder, failed)]) as found:
        assert list(found.rows) == [(False, ROWS), (True, 3 * ROWS)]
