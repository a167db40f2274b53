"""Runs as four Parquet files, one a view, for other tools."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from benchctl.errors import BenchctlError
from benchctl.results.duck import DuckError, database, quoted
from benchctl.results.samples import CHUNK_ROWS
from benchctl.results.views import VIEWS, StoredRun, ViewName, create_samples, create_tables

_FORMAT = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {CHUNK_ROWS}"


def export_parquet(runs: Sequence[StoredRun], folder: Path) -> dict[Path, int]:
    """Write runs.parquet, forks.parquet, tasks.parquet and samples.parquet, all or none of them.

    Samples are passed on row group by row group, so that memory does not grow with their number. Files of
    these names are replaced; until all four are complete, nothing is.

    Args:
        runs: what to write, in this order.
        folder: where; made if it is not there.

    Returns:
        path -> rows.

    Raises:
        BenchctlError: samples cannot be read, or the files not be written.
    """
    partial = {view: folder / f".{view}.parquet.{os.getpid()}.partial" for view in VIEWS}
    with contextlib.ExitStack() as rubbish:
        try:
            folder.mkdir(parents=True, exist_ok=True)
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
