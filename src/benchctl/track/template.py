"""A track's files: sandboxed Jinja2 with what Rally and its kin add, and JSON with places for errors."""

import contextlib
import copy
import glob
import io
import json
import os
import posixpath
import re
import resource
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Annotated, Any, NoReturn, TypeVar, cast

import jinja2
import jinja2.nodes
import jinja2.runtime
import msgspec
from jinja2 import meta
from jinja2.sandbox import SandboxedEnvironment

from benchctl.disk import open_regular
from benchctl.errors import Mistakes, UsageError, nearest, suggestion
from benchctl.yaml_file import COMPLAINT_PLACE, find_place, steps_of
from benchctl.yaml_file import Document as YamlFile

T = TypeVar("T")

_LONGEST = 500


def cut(text: str) -> str:
    """Truncate a text to what a message can hold."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text):,} characters)"


def read_text(path: Path) -> str:
    """Read the text of a file, with newlines as Jinja2 counts them.

    Raises:
        UsageError: If it cannot be read, is not UTF-8, or is too large.
    """
    try:
        with open_regular(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig") as file:
            text = file.read(MOST_CHARACTERS + 1)
    except OSError as err:
        raise UsageError(f"cannot read {path}: {err.strerror}") from err
    except UnicodeDecodeError as err:
        raise UsageError(f"{path} is not UTF-8 text: {err}", hint="save it as UTF-8") from err
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"{path} has more than {MOST_CHARACTERS:,} characters")
    return text


# Limits on rendering: foreign templates may loop forever, or exhaust memory.

MOST_CHARACTERS = 2**26
"""Limit of a template with its parts, and of its output: 64 million."""

_MOST_CPU_S = 2.0
_MOST_BYTES = 2**30
_MOST_BITS = 2**16  # of an integer
_AGAIN_S = 0.1


class OutOfTimeError(Exception):
    """A template exceeds the time limit."""

    def __str__(self) -> str:
        return f"it takes more than {_MOST_CPU_S:g} s of CPU"


class _Sandbox(SandboxedEnvironment):
    """Jinja2's sandbox without the one kind of operation that no limit interrupts: sums of huge numbers.

    Checks of parameters get the parameter's name as their first argument.
    """

    intercepted_binops = frozenset({"*", "**"})

    def _parse(self, source: str, name: str | None, filename: str | None) -> jinja2.nodes.Template:
        tree = super()._parse(source, name, filename)
        for node in tree.find_all(jinja2.nodes.Filter):
            if node.name in CHECKS:
                value = node.node
                while isinstance(value, jinja2.nodes.Filter) and value.node is not None:
                    value = value.node
                of = value.name if isinstance(value, jinja2.nodes.Name) else ""
                node.args.insert(0, jinja2.nodes.Const(of, lineno=node.lineno))
        return tree

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
            if bits > _MOST_BITS:
                raise OverflowError("a number has too many digits")
        return super().call_binop(context, operator, left, right)


@contextmanager
def bounded(cpu_s: float = _MOST_CPU_S, more_bytes: int = _MOST_BYTES) -> Iterator[None]:
    """Limit the block's CPU time, in the main thread, and its additional memory.

    Args:
        cpu_s: seconds of CPU, not of the clock, which a busy machine would affect.
        more_bytes: of address space.

    Raises:
        OutOfTimeError: If the block takes longer. A single step of a C extension is not interrupted.
        MemoryError: If the block takes more.
    """
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    bounds = [pages * resource.getpagesize() + more_bytes, soft, hard]
    bound = min(bound for bound in bounds if bound != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    # Signals only reach the main thread, which loads tracks.
    is_main = threading.current_thread() is threading.main_thread()
    try:
        with _cpu_bound(cpu_s) if is_main else contextlib.nullcontext():
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def _cpu_bound(cpu_s: float) -> Iterator[None]:
    inside = True

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if inside:
            raise OutOfTimeError

    before = signal.signal(signal.SIGVTALRM, stop)
    # Repeatedly: Jinja2 swallows exceptions while folding constants.
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s, _AGAIN_S)
    try:
        try:
            yield
        finally:
            inside = False
    finally:
        # A separate block: the signal may come at the very end of the inner one.
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if before is None else before)


# Parts.
#
# Rally and OpenSearch Benchmark insert the parts' text before rendering: so a variable set in a track is
# known in its parts, and a part may be half an array.

_COLLECT = re.compile(
    r"""(?P<comment>\{\#(?:.*?\#\}|.*))
      | \{\{-?\s*\w+\.collect\(\s*parts\s*=\s*
        (?P<written>(?P<quote>["'])(?P<parts>(?:(?!(?P=quote)).)+)(?P=quote))\s*\)\s*-?\}\}""",
    re.DOTALL | re.VERBOSE,
)
_MOST_PARTS = 20_000  # against parts that keep collecting others
# Each `*/..` multiplies the folders to search.
_CLIMBS = re.compile(r"[*?\[].*/\.\.(/|$)", re.DOTALL)
_MISSING = "benchctl_missing_part"


@dataclass(frozen=True)
class Reach:
    """The limits of what a track may read: its own directory, and those next to it.

    Parts that several tracks of a repository share are beside their folders. Out of reach are files beside
    the track's folder, hidden folders there, and everything further up.
    """

    folder: Path  # of the track, resolved

    def allows(self, path: Path) -> bool:
        """Return whether a resolved path may be read."""
        if path.is_relative_to(self.folder):
            return True
        if not path.is_relative_to(self.folder.parent):
            return False
        inner = path.relative_to(self.folder.parent).parts
        return len(inner) > 1 and not inner[0].startswith(".")

    def holds(self, path: Path) -> bool:
        """Return whether a path is an existing file that may be read."""
        try:
            return self.allows(path.resolve()) and path.is_file()
        except (OSError, ValueError):  # an impossible name
            return False

    def find(self, base: Path, pattern: str, where: Path) -> list[Path]:
        """Find files that match a glob pattern, relative to `base`, sorted by path; `where` is for messages.

        Raises:
            UsageError: If the pattern points out of reach.
        """
        if _CLIMBS.search(pattern):
            raise UsageError(f"{where}: '{cut(pattern)}' goes up again after a wildcard")
        try:
            matches = sorted(glob.glob(os.path.join(glob.escape(str(base)), pattern)))  # noqa: PTH118, PTH207 - pathlib's own refuses some patterns
        except (ValueError, re.error) as err:
            raise UsageError(f"{where}: '{cut(pattern)}' is not a pattern of file names: {err}") from err
        paths = [Path(os.path.normpath(name)) for name in matches]
        for path in (Path(os.path.normpath(base.resolve() / pattern)), *(path.resolve() for path in paths)):
            if not self.allows(path):
                raise UsageError(f"{where}: '{cut(pattern)}' leads outside the track and its siblings")
        return [path for path in paths if path.is_file()]


class _Assembler:
    """Inserts the text of all parts of a file."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._parts = self._characters = 0

    def text(self, path: Path, around: tuple[Path, ...] = ()) -> str:
        """Return the text of a file with that of what it collects; `around` are those that collect it.

        A pattern without files becomes an error of the template, which only counts where the template gets
        there.

        Raises:
            UsageError: If a file cannot be read, is out of reach, or collects itself.
        """
        inside = (*around, path.resolve())
        if inside[-1] in around:
            way = " > ".join(os.path.relpath(step, self._reach.folder) for step in inside)
            raise UsageError(f"{around[-1]} collects itself: {way}")
        text = read_text(path)
        self._parts += 1
        self._characters += len(text)
        if self._characters > MOST_CHARACTERS or self._parts > _MOST_PARTS:
            raise UsageError(
                f"{inside[0]} collects more than {_MOST_PARTS:,} parts, or {MOST_CHARACTERS:,} characters"
            )

        def insert(match: re.Match[str]) -> str:
            if match["comment"]:
                return match[0]
            paths = self._reach.find(path.parent, match["parts"], path)
            parts = [self.text(part, inside) for part in paths]
            return ",\n".join(parts) if parts else f"{{{{ {_MISSING}({match['written']}) }}}}"

        return _COLLECT.sub(insert, text)


# What templates are given.

RESERVED = ("now", "glob")
"""Globals that parameters cannot override, as in Rally."""

GIVEN: Mapping[str, Any] = {"build_flavor": "default", "serverless_operator": False}
"""Default values of variables."""

_HELPERS = """
{%- macro collect(parts) -%}
  {%- for part in glob(parts) -%}
    {%- if not loop.first %},
{% endif -%}
    {%- include part -%}
  {%- endfor -%}
{%- endmacro -%}
{%- macro exists_set_param(setting_name, value, default_value=None, comma=True) -%}
  {%- if value is defined -%}
    {{ "," if comma }} "{{ setting_name }}": {{ value | tojson }}
  {%- elif default_value is not none -%}
    {{ "," if comma }} "{{ setting_name }}": {{ default_value | tojson }}
  {%- endif -%}
{%- endmacro -%}
"""

HELPER_TEMPLATES: Mapping[str, str] = {"rally.helpers": _HELPERS, "benchmark.helpers": _HELPERS}
"""Name of an import -> its template."""


def _moment(value: Any, date_format: str) -> datetime:
    """A moment from a datetime, seconds since 1970, or a text in a format; UTC unless it says otherwise."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, tz=UTC)
    moment = value if isinstance(value, datetime) else datetime.strptime(str(value), date_format)  # noqa: DTZ007 - the next line sees to that
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _days_ago(start: Any, end: Any, date_format: str = "%d-%m-%Y") -> int:
    return (_moment(end, date_format) - _moment(start, date_format)).days


def _start_date(moment: Any, date_format: str = "%Y-%m-%d") -> str:
    return _moment(moment, date_format).strftime(date_format)


def _end_date(start: Any, duration_days: int = 1, date_format: str = "%Y-%m-%d") -> str:
    return (_moment(start, date_format) + timedelta(days=duration_days)).strftime(date_format)


def _version_between(version: str, first: str, last: str) -> bool:
    low, actual, high = (tuple(map(int, text.split("."))) for text in (first, version, last))
    return low <= actual <= high


class _RefusedError(Exception):
    """A parameter has a value that its track does not allow."""


def _between(value: Any, name: str, low: float, high: float, unit: str = "") -> Any:
    whole = isinstance(low, int) and isinstance(high, int)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low <= value <= high or (whole and value != int(value)):
        number = "a whole number" if whole else "a number"
        raise _RefusedError(
            f"parameter {name}: {value!r} is not {number} from {low:,} to {high:,}{unit and f' {unit}'}"
        )
    return value


def _one_of(value: Any, name: str, *choices: Any) -> Any:
    if value not in choices:
        allowed = ", ".join(map(str, choices))
        raise _RefusedError(f"parameter {name}: {value!r} is none of {allowed}")
    return value


CHECKS: Mapping[str, Callable[..., Any]] = {
    "between": _between,  # a lowest and a highest value, and perhaps a unit for messages
    "one_of": _one_of,  # the values that are allowed
}
"""Filters that pass a parameter's value on, or refuse it by its name."""

FILTERS: Mapping[str, Callable[..., Any]] = {
    **CHECKS,
    "days_ago": _days_ago,  # whole days between two moments
    "get_start_date": _start_date,
    "get_end_date": _end_date,  # the date some days after a moment
    "version_between": _version_between,  # inclusive
}
"""In addition to Jinja2's own."""


@dataclass(frozen=True)
class Rendered:
    """A file's rendered text."""

    path: Path
    text: str
    undefined: tuple[str, ...]  # variables without a value that were printed as nothing


class Renderer:
    """A renderer of the files of one track directory, which collects the parameters they use.

    Args:
        folder: of the track: includes are relative to it, and it limits the reach of all its files.
        params: values for the templates' variables.
        lenient: print undefined variables as nothing, as Rally does; else they are errors.
        now_s: seconds since 1970 that templates see as `now`; by default the clock's.
    """

    def __init__(
        self, folder: Path, params: Mapping[str, Any], *, lenient: bool = False, now_s: float | None = None
    ) -> None:
        for name in RESERVED:
            if name in params:
                raise UsageError(f"--param {name}: templates already use '{name}' for something else")
        self.reach = Reach(folder.resolve())
        self.known: set[str] = set()
        self._folder = folder
        self._params = {**GIVEN, **params}
        self._undefined: dict[str, None] = {}
        self._environment = _Sandbox(
            loader=jinja2.ChoiceLoader(
                [jinja2.DictLoader(HELPER_TEMPLATES), jinja2.FunctionLoader(self._include)]
            ),
            undefined=_noting(self._undefined) if lenient else jinja2.StrictUndefined,
            autoescape=False,  # the output is JSON, not HTML
        )
        self._environment.filters.update(FILTERS)
        self._environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "default": _no_json}
        now = time.time() if now_s is None else now_s
        self._environment.globals.update({"now": now, "glob": self._glob, _MISSING: _missing})

    def render(self, path: Path) -> Rendered:
        """Render one file.

        Raises:
            UsageError: If a file cannot be read, or its template is broken or needs an unknown value. Lines
                in the message count those of the parts that were inserted before.
        """
        source = _Assembler(self.reach).text(path)
        self._undefined.clear()
        try:
            with bounded():
                text = self._rendered(path, source)
        except jinja2.TemplateSyntaxError as err:
            included = err.name not in (None, str(path), "<introspection>")
            file, text = (self._folder / str(err.name), "") if included else (path, source)
            place = _place(file, err.lineno, text)
            raise UsageError(f"{place}: {cut(str(err.message))}") from err
        except UsageError:
            raise
        except RecursionError as err:
            raise UsageError(f"{path} is nested too deeply, or includes itself") from err
        except Exception as err:
            raise _explained(err, _failed_at(path, source, err.__traceback__)) from err
        if len(text) > MOST_CHARACTERS:
            raise UsageError(f"{path} renders to more than {MOST_CHARACTERS:,} characters")
        return Rendered(path, text, tuple(self._undefined))

    def _rendered(self, path: Path, source: str) -> str:
        tree = self._environment.parse(source, name=str(path))
        self.known |= meta.find_undeclared_variables(tree)
        code = self._environment.compile(tree, name=str(path), filename=str(path))
        # Templates may modify values.
        values = self._environment.make_globals(copy.deepcopy(self._params))
        return jinja2.Template.from_code(self._environment, code, values).render()

    def _include(self, name: str) -> tuple[str, str, None] | None:
        """Text and path of an included file; None when there is none."""
        path = self._folder / name
        if posixpath.isabs(name) or not self.reach.holds(path):
            return None
        text = read_text(path)
        with contextlib.suppress(jinja2.TemplateError):  # including it will fail anyway
            self.known |= meta.find_undeclared_variables(self._environment.parse(text))
        return text, str(path), None

    def _glob(self, parts: object) -> list[str]:
        """The files of a `collect` without a literal pattern, relative to the track's folder."""
        names: list[str] = []
        for pattern in parts if isinstance(parts, list | tuple) else (parts,):
            paths = self.reach.find(self._folder, str(pattern), self._folder)
            names += [posixpath.relpath(path, self._folder) for path in paths] or _missing(str(pattern))
        return names


def _no_json(value: object) -> NoReturn:
    """Refuse what is not JSON; of a value that does not exist, in Jinja2's words for it."""
    if isinstance(value, jinja2.Undefined):
        value._fail_with_undefined_error()  # noqa: SLF001 - there is no other way to its message
    raise TypeError(f"{type(value).__name__} is not JSON")


def _missing(pattern: str) -> NoReturn:
    raise FileNotFoundError(f"collect(parts='{cut(pattern)}') finds no file")


def _noting(undefined: dict[str, None]) -> type[jinja2.Undefined]:
    """Jinja2's lenient undefined value, recording the printed names."""

    class Noted(jinja2.Undefined):
        def __str__(self) -> str:
            if self._undefined_name is not None:
                undefined[str(self._undefined_name)] = None
            return ""

    return Noted


def _place(path: Path, line: int, source: str = "") -> str:
    """A line of a template for messages, with its text: the parts before it shift its number."""
    row = "".join(source.split("\n")[line - 1 : line]).strip()
    return f"{path}, line {line}" + (f", {cut(row)}" if row else "")


def _failed_at(path: Path, source: str, trace: TracebackType | None) -> str:
    """The innermost line of a template in a traceback, where Jinja2 puts them."""
    for frame, line in reversed(list(traceback.walk_tb(trace))):
        file = Path(frame.f_globals.get("__file__", ""))
        if "__jinja_exception__" in frame.f_globals and file.is_file():
            return _place(file, line, source if file == path else "")
    return str(path)


def _explained(err: Exception, place: str) -> UsageError:
    """The error for an exception of a template, whose expressions may fail in any way."""
    if isinstance(err, jinja2.UndefinedError):
        return UsageError(
            f"{place}: {cut(str(err.message))}",
            hint="give it with --param NAME=VALUE, or a default in the file",
        )
    if isinstance(err, _RefusedError):
        return UsageError(f"{place}: {cut(str(err))}")
    if isinstance(err, jinja2.TemplateNotFound):
        return UsageError(f"{place}: includes '{cut(str(err.name))}', which is not in the track's directory")
    if isinstance(err, MemoryError):
        return UsageError(f"{place}: its template takes more than {_MOST_BYTES >> 30} GiB of memory")
    return UsageError(f"{place}: its template fails: {cut(str(err))}")


# JSON.

_BYTE = re.compile(r" \(byte (\d+)\)")
_LACKING = re.compile(r"Object missing required field `(.*)`")
_BOUND = re.compile(r"Expected `\w+`(?P<length> of length)? (?P<sign>[<>]=?) (?P<limit>-?\d+)(\.0)?")
_SIGNS = {">=": "at least", "<=": "at most", ">": "above", "<": "below"}
_FORM = re.compile(r"Expected `str` matching regex (?P<form>'.*')")
_ON_ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f]*\Z"
# https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-indices-create
_OF_AN_INDEX = r"^(?!\.{1,2}\Z)[^-_+A-Z\s\\/*?\"<>|,#:][^A-Z\s\\/*?\"<>|,#:]*\Z"
PATH_FORM = r"^/[^\x00-\x1f\x7f-\x9f]*\Z"
"""Pattern of the path of a request."""
_FORMS = {
    repr(PATH_FORM): "is not a path, which begins with / and has no control character",
    repr(_ON_ONE_LINE): "has a control character",
    repr(_OF_AN_INDEX): "is not an index name, which has no capitals, spaces, slashes, wildcards or commas",
}
Label = Annotated[str, msgspec.Meta(pattern=_ON_ONE_LINE)]
"""Text of tables, files and messages, which show it on one line."""
Name = Annotated[Label, msgspec.Meta(min_length=1)]
IndexName = Annotated[str, msgspec.Meta(pattern=_OF_AN_INDEX, max_length=255)]
"""A name that becomes part of an address."""
_COMMENT = re.compile(r"#.*|//.*|_?comments?", re.IGNORECASE)
_AROUND = 60  # characters shown before and after an error
LIKE = 0.8
"""More similar words, by difflib's measure, are typos."""
# OpenSearch Benchmark's, of other types or without effect here: similar to others, but no typos.
_NO_TYPOS = frozenset({"bulk_size", "retry-max-wait-period", "ramp-down-time-period"})


# Places of values, which are looked for when an error is told.

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def offset_of(text: str, where: str, key: str | None = None) -> int:
    """Return the offset of a value, or of the innermost value around it that exists.

    Args:
        text: Valid JSON.
        where: A path such as `$.schedule[3].operation`.
        key: A key of the object there, whose own offset is returned if it exists.
    """
    return find_place(partial(_members, text), _after_space(text, 0), steps_of(where), key)


def repeated_keys(text: str, at: int | None = None, where: str = "$") -> Iterator[tuple[str, str]]:
    """Find duplicate keys of objects in valid JSON; parsers silently take the last one.

    Yields:
        (JSON path of the object, key).
    """
    seen: set[str | int] = set()
    for name, _, value in _members(text, _after_space(text, 0) if at is None else at):
        if name in seen:
            yield where, str(name)
        seen.add(name)
        yield from repeated_keys(
            text, value, f"{where}[{name}]" if isinstance(name, int) else f"{where}.{name}"
        )


def _members(text: str, at: int) -> Iterator[tuple[str | int, int, int]]:
    """Yield the members of an object or array: key or position, offset of the member, offset of its value."""
    if text[at : at + 1] not in ("{", "["):
        return
    named = text[at] == "{"
    at = _after_space(text, at + 1)
    number = 0
    while text[at] not in "}]":
        start = at
        name: str | int = number
        if named:
            name, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        yield name, start, at
        _, at = _DECODER.raw_decode(text, at)
        at = _after_space(text, at)
        if text[at] == ",":
            at = _after_space(text, at + 1)
        number += 1


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


class Remark(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a track that counts for less than its author may think."""

    place: str  # file and JSON path
    message: str
    challenge: str = ""  # the only one that it bears on; empty for all
    operation: str = ""  # the only one of the track's that it bears on; empty for all

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class Document:
    """A JSON file of a track.

    Args:
        name: for messages.
        text: its rendered text; without it, errors have no line.
        lenient: whether misplaced keys are noted and ignored, as in Rally; typos are errors anyway.

    Attributes:
        remarks: what was ignored, or is probably not what was meant.
        challenge, operation: the only one that remarks bear on for now; empty for all.
    """

    def __init__(self, name: str, text: str = "", *, lenient: bool = False) -> None:
        self.name = name
        self.lenient = lenient
        self.remarks: list[Remark] = []
        self.challenge = self.operation = ""
        self._text = text

    def refuse(self, where: str, message: str, *, hint: str = "", key: str | None = None) -> UsageError:
        """Return an error about a value.

        Args:
            where: its JSON path.
            message: what is wrong, without a final full stop.
            hint: what to do.
            key: the key of the object there that is meant.
        """
        place = self.name
        if self._text:
            line = self._text.count("\n", 0, offset_of(self._text, where, key)) + 1
            place = f"{place}, line {line} of the rendered text"
        return UsageError(f"{place}: {cut(where)}: {cut(message)}", hint=cut(hint))

    def note(self, where: str, message: str) -> None:
        """Add a remark on a value."""
        place = f"{self.name}: {cut(where)}"
        self.remarks.append(Remark(place, cut(message), self.challenge, self.operation))

    def pass_over(self, where: str, key: str) -> None:
        """Add a remark on a key that has no effect."""
        self.note(where, f"'{key}' has no meaning here and is ignored")


def read_document(rendered: Rendered, *, lenient: bool = False) -> tuple[Document, Any]:
    """Parse the JSON of a rendered file; returns the document and its value.

    Raises:
        UsageError: If the file is not JSON; the message shows the rendered lines around the error. Or if an
            object has a duplicate key; in a lenient document that is noted, and the last one counts.
    """
    document = Document(str(rendered.path), rendered.text, lenient=lenient)
    repeated: list[bool] = []
    try:
        value = msgspec.json.decode(rendered.text)
        # Finding out where takes longer. Numbers stay strings, whatever their size.
        json.loads(
            rendered.text,
            object_pairs_hook=lambda pairs: repeated.append(len(dict(pairs)) < len(pairs)),
            parse_int=str,
            parse_float=str,
        )
        for where, key in repeated_keys(rendered.text) if any(repeated) else ():
            if not lenient:
                hint = "remove one of them: only the last would count"
                raise document.refuse(where, f"the key '{key}' is duplicated", hint=hint)
            document.note(where, f"the key '{key}' is duplicated, and the last one counts")
    except (msgspec.MsgspecError, UnicodeError) as err:
        raise _broken(rendered, str(err)) from err
    except RecursionError as err:
        raise UsageError(f"{rendered.path}: its JSON is nested too deeply") from err
    for name in rendered.undefined:
        message = (
            f"'{cut(name)}' has no value and came out as nothing: give it with --param, or a default in the "
            "file; braces of the request's own, such as Mustache's, go between {% raw %} and {% endraw %}"
        )
        document.remarks.append(Remark(str(rendered.path), message))
    return document, value


def _broken(rendered: Rendered, found: str) -> UsageError:
    """The error for invalid JSON, with its line where the parser gives the place."""
    byte = _BYTE.search(found)
    reason = _BYTE.sub("", found).removeprefix("JSON is malformed: ")
    if byte is not None or "truncated" in found:
        text = rendered.text
        at = (
            len(text.encode(errors="replace")[: int(byte[1])].decode(errors="replace")) if byte else len(text)
        )
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        shown = text[max(at - column + 1, at - _AROUND) : at + _AROUND].split("\n", 1)[0].strip()
        reason = f"{reason}, in line {line}, column {column}: {shown}"
    names = ", ".join(rendered.undefined)
    return UsageError(
        f"{rendered.path} is not JSON once its template is rendered: {reason}",
        hint=f"these have no value and came out as nothing: {names}; give them with --param" if names else "",
    )


# Values into typed forms.


def convert(raw: Any, kind: type[T], document: Document, where: str) -> T:
    """Convert JSON to a typed form; as in Rally, nulls in an object mean nothing.

    Raises:
        UsageError: If it does not fit; messages name file and JSON path.
    """
    mistakes = Mistakes()
    if isinstance(raw, Mapping):
        with mistakes.part():
            raw = known_keys(raw, encoded_names(cast("Any", kind)), document, where)
    try:
        # Templates write numbers as texts, and whole ones as fractions.
        value = msgspec.convert(raw, kind, strict=False)
    except msgspec.ValidationError as err:
        check_fields(raw, kind, document, where, mistakes)
        mistakes.settle()
        raise refused(err, document, where) from err
    mistakes.settle()
    return value


def check_fields(raw: Any, kind: Any, document: Document, where: str, mistakes: Mistakes) -> None:
    """Add what is wrong with each field of an object; msgspec complains of the first alone."""
    for field in (
        msgspec.structs.fields(kind)
        if isinstance(raw, Mapping) and msgspec.inspect.is_struct_type(kind)
        else ()
    ):
        if raw.get(field.encode_name) is None:
            if field.required:
                mistakes.add(document.refuse(where, f"'{field.encode_name}' is missing"))
            continue
        try:
            msgspec.convert(raw[field.encode_name], field.type, strict=False)
        except msgspec.ValidationError as err:
            mistakes.add(refused(err, document, f"{where}.{field.encode_name}"))


def refused(err: msgspec.ValidationError, document: Document, where: str) -> UsageError:
    """Return the error for a complaint of msgspec, with its place in the file."""
    match = COMPLAINT_PLACE.search(str(err))
    inner = match["path"].removeprefix("$") if match else ""
    return document.refuse(f"{where}{inner}", in_words(err))


def in_words(err: msgspec.ValidationError) -> str:
    """Return a complaint of msgspec without its place, bounds in words."""
    complaint = COMPLAINT_PLACE.sub("", str(err))
    if bound := _BOUND.fullmatch(complaint):
        return "is empty" if bound["length"] else f"must be {_SIGNS[bound['sign']]} {bound['limit']}"
    if form := _FORM.fullmatch(complaint):
        return _FORMS.get(form["form"], complaint)
    return _LACKING.sub(r"'\1' is missing", complaint)


@cache  # slower than parsing a task
def encoded_names(kind: Any) -> tuple[str, ...]:
    """Return the keys of a struct in JSON."""
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))


def known_keys(
    raw: Mapping[str, Any], known: Sequence[str], document: Document, where: str
) -> dict[str, Any]:
    """Return an object without comments and nulls; a lenient document may also have keys that mean nothing.

    Raises:
        UsageError: If keys are unknown, and the document not lenient or they are probably typos.
    """
    mistakes = Mistakes()
    for key in raw:
        if key in known or _COMMENT.fullmatch(key):
            continue
        is_typo = key not in _NO_TYPOS and nearest(key, known, alike=LIKE) is not None
        if is_typo or not document.lenient:
            hint = suggestion(key, known)
            mistakes.add(document.refuse(where, f"unknown key '{key}'", hint=hint, key=key))
        else:
            document.pass_over(where, key)
    mistakes.settle()
    return {key: value for key, value in raw.items() if key in known and value is not None}


# Parameters: from files, and on the command line in benchctl's and Rally's syntax.

_TRUTHS = {
    **dict.fromkeys(("True", "true", "Yes", "yes", "t", "y"), True),
    **dict.fromkeys(("False", "false", "No", "no", "f", "n"), False),
}


def read_parameter_files(paths: Iterable[Path]) -> dict[str, Any]:
    """Read parameters from JSON or YAML files; later files override earlier ones.

    Raises:
        UsageError: If a file cannot be read, or is not an object of names and values.
    """
    params: dict[str, Any] = {}
    for path in paths:
        params.update(_values(read_text(path), str(path)))
    return params


def _pairs(texts: Iterable[str], sign: str, option: str, hint: str) -> Iterator[tuple[str, str]]:
    names = set()
    for text in texts:
        name, separator, value = text.partition(sign)
        name = name.strip()
        if not separator or not name:
            raise UsageError(f"{option} {text}: expected NAME{sign}VALUE", hint=f"for example {hint}")
        if name in names:
            raise UsageError(f"{option} {name} is duplicated")
        names.add(name)
        yield name, value


def parse_params(texts: Iterable[str]) -> dict[str, Any]:
    """Parse `NAME=VALUE` or `CHALLENGE.NAME=VALUE`; values are JSON if possible, else text.

    Raises:
        UsageError: If no `=`, or a name is duplicated.
    """
    params: dict[str, Any] = {}
    for name, value in _pairs(texts, "=", "--param", "--param iterations=300"):
        try:
            params[name] = msgspec.json.decode(value)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            params[name] = value
    return params


def parse_rally_params(text: str) -> dict[str, Any]:
    """Parse parameters in the syntax of Rally's `--track-params`.

    Args:
        text: comma-separated `NAME:VALUE`, a JSON object, or the path of a JSON or YAML file.

    Raises:
        UsageError: If the text is none of these, a name is duplicated, or the file cannot be read.
    """
    if text.lstrip().startswith("{"):
        return _values(text, "--track-params")
    path = Path(text)
    # The last of several values may look like a file, too.
    if text.endswith((".json", ".yml", ".yaml")) and (":" not in text or path.is_file()):
        return read_parameter_files([path])
    parts = (part for part in text.split(",") if part.strip())
    hint = "--track-params clients:4,bulk_size:1000, or the path of a .json file"
    return {name: _word(value.strip()) for name, value in _pairs(parts, ":", "--track-params", hint)}


def _word(text: str) -> str | int | float | bool:
    """A value as Rally reads it: quoted it is text, else what it looks like."""
    if text.startswith("'"):
        return text.strip("'")
    if text in _TRUTHS:
        return _TRUTHS[text]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _values(text: str, name: str) -> dict[str, Any]:
    """The object in JSON or YAML text; `name` is its origin."""
    try:
        values = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        values = YamlFile(text, name).value
    except RecursionError as err:
        raise UsageError(f"{name}: a value is nested too deeply") from err
    if not isinstance(values, dict | None):
        raise UsageError(f"{name} is not an object of parameter names and values")
    return values or {}
