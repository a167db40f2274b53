"""One SQL query over stored runs, in a database that can read their samples and touch nothing else."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from benchctl.errors import UsageError
from benchctl.results.duck import connect, quoted
from benchctl.results.nightly.folder import SuiteFolder
from benchctl.results.views import StoredRun, create_nights, create_samples, create_tables, damage_named

_BATCH = 10_000
_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?$|FLOAT|DOUBLE|DECIMAL|NUMBER")
# DuckDB makes Python values of such times with a package that is not needed for anything else.
_ZONED = "WITH TIME ZONE"
_SAMPLES = re.compile(r"\bsamples\b", re.IGNORECASE)
_NIGHTS = re.compile(r"\bnights\b", re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """What a query gave.

    Attributes:
        columns: their names.
        numeric: which of them hold numbers.
        rows: values in the order of the columns; can be read once, while the query is open.
    """

    columns: tuple[str, ...]
    numeric: frozenset[int]
    rows: Iterator[tuple[object, ...]]


@contextmanager
def asked(query: str, runs: Sequence[StoredRun], suites: Sequence[SuiteFolder] = ()) -> Iterator[Answer]:
    """Answer a query on the views of `benchctl.results.views`.

    Args:
        query: one SELECT statement of DuckDB; also FROM, WITH, DESCRIBE and SUMMARIZE.
        runs: what it may see.
        suites: whose nights it may see.

    Raises:
        UsageError: it is something else, or DuckDB cannot do it.
    """
    with connect() as connection:
        try:
            text = _checked(connection, query)
            create_tables(connection, runs)
            # Opening thousands of files takes time: only for who asks for them.
            paths = create_samples(connection, runs) if _SAMPLES.search(query) else ()
            figures = create_nights(connection, suites) if _NIGHTS.search(query) else ()
            _lock(connection, (*paths, *figures))
            with damage_named((*paths, *figures)):
                result = _executed(connection, text)
                described = result.description or []
                numbers = (place for place, column in enumerate(described) if _NUMBER.match(str(column[1])))
                yield Answer(tuple(column[0] for column in described), frozenset(numbers), _batches(result))
        except duckdb.Error as err:
            raise UsageError(
                f"DuckDB: {_one_line(err)}", hint="tables and columns are listed by: benchctl sql --views"
            ) from err


def _checked(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """Only what reads: DuckDB's own lock would still let a query write over the files that it may read."""
    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError(
            "one query is wanted, and nothing that writes: SELECT, FROM, WITH, DESCRIBE or SUMMARIZE",
            hint='for example: benchctl sql "select variant, avg(p90_ms) from tasks group by all"',
        )
    return statements[0].query.strip().rstrip(";")


def _executed(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.DuckDBPyConnection:
    """The answer, with times that have a zone as text."""
    result = connection.execute(query)
    described = result.description or []
    if not any(_ZONED in str(column[1]) for column in described):
        return result
    # Its columns get names of ours within, where two of its own may be alike.
    chosen = ", ".join(
        f"c{place}{'::VARCHAR' if _ZONED in str(kind) else ''} AS {_identifier(name)}"
        for place, (name, kind, *_) in enumerate(described)
    )
    inner = ", ".join(f"c{place}" for place in range(len(described)))
    # The line break ends a comment that the query may end with.
    return connection.execute(f"SELECT {chosen} FROM ({query}\n) t({inner})")  # noqa: S608 - it was checked


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _lock(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> None:
    """From here on, no other file can be read, nothing be loaded, and nothing of this be undone."""
    listed = ", ".join(quoted(path) for path in paths)
    connection.execute(f"SET allowed_paths = [{listed}]")
    connection.execute("SET temp_directory = ''")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _batches(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[object, ...]]:
    while rows := result.fetchmany(_BATCH):
        yield from rows


def _one_line(err: duckdb.Error) -> str:
    """Without the excerpt of the query and the arrow below it."""
    return " ".join(str(err).split("\n\n", 1)[0].split())
