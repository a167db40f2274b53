"""Evidence of one node start as Parquet: what its compilers, its collector and its process did, and when.

Times count from the start of the node's process: with the boot's `origin_ns` added they are on the clock of
the fork's samples.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchctl.errors import BenchctlError
from benchctl.results.model import ForkRecord
from benchctl.results.samples import Columns, DuckDiskError, DuckError, database, quoted, typed
from benchctl.results.store import RunFolder

EVIDENCE_VERSION = 1

Dtypes = Mapping[str, np.dtype[Any]]

_TEXT = np.dtype(np.object_)

JIT_FILE = "jit.parquet"
JIT_DTYPES: Dtypes = {
    "uptime_ns": np.dtype(np.int64),
    "what": _TEXT,  # compiled, failed, invalidated, removed, deoptimised or unread
    "compile_id": np.dtype(np.int32),  # -1 where there is none
    "level": np.dtype(np.int8),  # -1 unknown
    "osr": np.dtype(np.bool_),  # entered in the middle of a loop
    "method": _TEXT,  # package.Class::method
    "reason": _TEXT,  # of a deoptimisation, or of code that was given up; the text of an unread line
}

GC_FILE = "gc.parquet"
GC_DTYPES: Dtypes = {
    "uptime_ns": np.dtype(np.int64),  # when it began
    "what": _TEXT,  # pause or safepoint; most pauses are in a safepoint, too
    "cause": _TEXT,  # in the JVM's words
    "total_ns": np.dtype(np.int64),  # how long threads stood still or were being stopped
    "reach_ns": np.dtype(np.int64),  # of a safepoint: until the last thread had stopped; -1 of a pause
    "before_bytes": np.dtype(np.int64),  # of the heap in use before a pause; -1 unknown
    "after_bytes": np.dtype(np.int64),  # and after it
}

OS_FILE = "os.parquet"
OS_DTYPES: Dtypes = {
    "uptime_ns": np.dtype(np.int64),  # when it was read
    # Since the process started, and NaN where it cannot be read.
    "user_s": np.dtype(np.float64),
    "system_s": np.dtype(np.float64),
    "minor_faults": np.dtype(np.float64),
    "major_faults": np.dtype(np.float64),
    "read_bytes": np.dtype(np.float64),  # from storage
    "write_bytes": np.dtype(np.float64),  # to storage
    "voluntary_switches": np.dtype(np.float64),  # of its living threads
    "involuntary_switches": np.dtype(np.float64),
    # As of then.
    "threads": np.dtype(np.float64),
    "rss_bytes": np.dtype(np.float64),
}


def write_evidence(columns: Columns, dtypes: Dtypes, path: Path) -> None:
    """Write one kind of evidence: the columns of its `dtypes`, each of shape (n,).

    Raises:
        BenchctlError: If the file exists, or the disk is full or cannot be written.
    """
    # The folder is the node's, and benchctl may be root: a link would be written through.
    if path.is_symlink() or path.exists():
        raise BenchctlError(f"cannot write {path}: the path already exists")
    texts = ", ".join(f"{name}::VARCHAR AS {name}" for name, dtype in dtypes.items() if dtype == _TEXT)
    chosen = f"* REPLACE ({texts})" if texts else "*"
    try:
        with database(threads=1) as connection:
            connection.register("evidence", {name: columns[name].astype(d) for name, d in dtypes.items()})
            connection.execute(
                f"COPY (SELECT {chosen} FROM evidence) TO {quoted(path)} "  # noqa: S608 - names are ours
                f"(FORMAT parquet, COMPRESSION zstd, KV_METADATA {{evidence_version: {EVIDENCE_VERSION}}})"
            )
    except DuckDiskError as err:
        raise BenchctlError(f"cannot write {path}: {err}") from err


def read_evidence(path: Path, dtypes: Dtypes) -> Columns:
    """Read one kind of evidence back: the columns of `dtypes`, each of shape (n,), in order of time.

    Raises:
        BenchctlError: If the file is missing or no evidence of this benchctl.
    """
    try:
        with database(threads=1) as connection:
            found = connection.execute(
                "SELECT * FROM read_parquet(?) ORDER BY uptime_ns", [str(path)]
            ).fetchnumpy()
    except DuckError as err:
        raise BenchctlError(f"cannot read the evidence in {path}: {err}") from err
    return typed(found, dtypes, path)


def fork_evidence(
    folder: RunFolder, fork: ForkRecord, name: str, dtypes: Dtypes, node: str | None = None
) -> Columns | None:
    """Return one kind of evidence of all node starts of a fork, on the clock of its samples.

    `name` is that of the file in the folder of each start; `node` is one of several, None for all together.

    Returns:
        The columns of `dtypes`, except `t_ns` instead of `uptime_ns`, each of shape (n,) and in order of
        time; None when nothing was kept.

    Raises:
        BenchctlError: If a file is not evidence of this benchctl.
    """
    parts = []
    for number, boot in enumerate(fork.boots):
        for jvm in boot.jvms:
            path = folder.evidence_folder(fork.variant, fork.block, number, jvm.name) / name
            if node in {None, jvm.name} and jvm.origin_ns is not None and path.is_file():
                columns = read_evidence(path, dtypes)
                parts.append({"t_ns": columns.pop("uptime_ns") + jvm.origin_ns, **columns})
    if not parts:
        return None
    stacked = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    order = np.argsort(stacked["t_ns"], kind="stable")
    return {key: values[order] for key, values in stacked.items()}


def stacked_columns(rows: list[tuple[Any, ...]], dtypes: Dtypes) -> Columns:
    """Return rows, each with the values of `dtypes` in order, as columns of shape (n,).

    Raises:
        BenchctlError: If a number is larger than any that is measured: what it was read from is damaged.
    """
    turned = zip(*rows, strict=True) if rows else ((),) * len(dtypes)
    try:
        return {
            name: np.array(values, dtype)
            for (name, dtype), values in zip(dtypes.items(), turned, strict=True)
        }
    except OverflowError as err:
        raise BenchctlError(f"the log of the evidence is damaged: {err}") from err
