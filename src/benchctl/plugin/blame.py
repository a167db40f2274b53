"""Failures of a plug-in's own code as one line that says where in its files, instead of a traceback."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchctl.errors import BenchctlError
from benchctl.plugin.code import Code
from benchctl.plugin.rally.exceptions import Unsupported


class PluginError(BenchctlError):
    """A plug-in's code failed, or did not keep to the protocol."""


class PluginNeedsError(PluginError):
    """A plug-in wants what benchctl does not do: its task is n/a, and nobody's mistake."""


@contextmanager
def blaming(code: Code, doing: str, *, may_end: bool = False) -> Iterator[None]:
    """Run foreign code: what it raises becomes a PluginError.

    Args:
        code: whose code it is.
        doing: what it was called for, for the message: `param source 'x'`.
        may_end: whether StopIteration is part of the protocol, and passes.

    Raises:
        PluginError: it raised anything else but KeyboardInterrupt.
    """
    try:
        yield
    except (KeyboardInterrupt, BenchctlError):
        raise
    except BaseException as err:
        if may_end and isinstance(err, StopIteration):
            raise
        raise blamed(err, code, doing) from err


def blamed(err: BaseException, code: Code, doing: str) -> PluginError:
    """The one line for an exception that left a plug-in's code."""
    if isinstance(err, SystemExit):
        return PluginError(f"{doing} of the plug-in {code.path} wanted to end benchctl ({err.code})")
    if isinstance(err, Unsupported):
        return PluginNeedsError(" ".join(str(err).split()))
    where = _place(err, code)
    text, hint = f"{type(err).__name__}: {_words(err)}", ""
    if isinstance(err, ModuleNotFoundError) and err.name:
        # Python's own words name the package.
        text = str(err)
        hint = f"install the package that has '{err.name.partition('.')[0]}' beside benchctl"
    return PluginError(f"{where}: {doing} failed: {' '.join(text.split())}", hint=hint)


def _words(err: BaseException) -> str:
    """What an exception says; its own code may fail, too."""
    try:
        return str(err)
    except Exception as second:  # noqa: BLE001 - foreign code
        return f"it cannot say what ({type(second).__name__})"


def _place(err: BaseException, code: Code) -> str:
    """File and line of the innermost of the plug-in's own frames; its main file when there is none."""
    own = {str(code.root / name) for name in code.files}
    if isinstance(err, SyntaxError) and err.filename in own:
        return f"{err.filename}:{err.lineno or 1}"
    frames = [frame for frame in traceback.extract_tb(err.__traceback__) if frame.filename in own]
    if not frames:
        return str(code.path)
    return f"{Path(frames[-1].filename)}:{frames[-1].lineno}"
