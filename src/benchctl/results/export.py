"""Runs as four Parquet files, one a view, for other tools."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.duck import DuckError, database, quoted
from benchctl.results.samples import CHUNK_ROWS
from benchctl.results.views import VIEWS, StoredRun, ViewName, create_samples, create_tables

_MARK = "benchctl_export"
_FORMAT = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {CHUNK_ROWS}, KV_METADATA {{{_MARK}: '1'}}"

# A Parquet file ends with its metadata, their length in four bytes, and these.
_MAGIC = b"PAR1"
_TAIL_BYTES = 8


def export_parquet(runs: Sequence[StoredRun], folder: Path) -> dict[Path, int]:
    """Write runs.parquet, forks.parquet, tasks.parquet and samples.parquet, all or none of them.

    Samples are passed on row group by row group, so that memory does not grow with their number. Files of
    an earlier export are replaced; until all four are complete, nothing is.

    Args:
        runs: what to write, in this order.
        folder: where; made if it is not there.

    Returns:
        path -> rows.

    Raises:
        UsageError: there are files of these names that no export wrote.
        BenchctlError: samples cannot be read, or the files not be written.
    """
    partial = {view: folder / f".{view}.parquet.{os.getpid()}.partial" for view in VIEWS}
    with contextlib.ExitStack() as rubbish:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for view in VIEWS:
                _refuse_foreign(folder / f"{view}.parquet")
            for path in partial.values():
                rubbish.callback(path.unlink, missing_ok=True)
            rows = _write(runs, partial)
            for view, path in partial.items():
                path.replace(folder / f"{view}.parquet")
        except (OSError, DuckError) as err:
            reason = err.strerror if isinstance(err, OSError) else str(err)
            raise BenchctlError(
                f"cannot export to {folder}: {reason}", hint="free some space or name another folder"
            ) from err
    return {folder / f"{view}.parquet": rows[view] for view in VIEWS}


def _write(runs: Sequence[StoredRun], paths: dict[ViewName, Path]) -> dict[ViewName, int]:
    with database(threads=1) as connection:
        create_tables(connection, runs)
        create_samples(connection, runs)
        rows: dict[ViewName, int] = {}
        for view, path in paths.items():
            written = connection.execute(f"COPY {view} TO {quoted(path)} ({_FORMAT})").fetchone()
            rows[view] = int(written[0]) if written else 0
    return rows


def _refuse_foreign(path: Path) -> None:
    """Nobody's own file is lost because it is called `tasks.parquet`, too."""
    if path.exists() and not (path.is_file() and _is_export(path)):
        raise UsageError(f"{path} is there and was not written by benchctl", hint="name another folder")


def _is_export(path: Path) -> bool:
    """Whether its metadata have our mark; they are read as bytes, so that no damage is in the way."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
        length = int.from_bytes(tail[: -len(_MAGIC)], "little")
        if not tail.endswith(_MAGIC) or length + _TAIL_BYTES > size:
            return False
        file.seek(size - _TAIL_BYTES - length)
        return _MARK.encode() in file.read(length)
