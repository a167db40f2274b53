"""Why a node failed, as far as its log tells, and what to do about it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

_SHOWN_LINES = 3
_LINE_LENGTH = 300
# Stack frames say where, and milder lines what was normal: the JVM arguments alone name all sorts of trouble.
_NOISE = re.compile(r"\s+at |\s*\.\.\. \d+ more|WARNING: |\[[^\]]*\]\s*\[(INFO|WARN|DEBUG|TRACE)\s*\]")
# Wrapped exceptions: what is around them says what was being done, such as "failed to bind service".
_INNER = re.compile(r"(Caused by|Suppressed): ")
_TELLING = re.compile(r"\b(FATAL|ERROR|Error|Exception)\b|(Exception|Error):")
UNKNOWN_HINT = "the logs say more"
DAMAGED_HINT = "its data folder is damaged: delete it, and have it filled again"


@dataclass(frozen=True)
class _Cause:
    """What a line of a log means; `naming` stands in the line that names more, such as the port."""

    pattern: re.Pattern[str]
    hint: str
    naming: str = ""


def _cause(pattern: str, hint: str, naming: str = "") -> _Cause:
    return _Cause(re.compile(pattern, re.IGNORECASE), hint, naming)


# The first that matches explains the failure; the most specific come first.
_CAUSES = (
    _cause(
        r"Unrecognized (VM )?option|Improperly specified VM option|Missing \+/- setting for VM option"
        r"|VM option '.*' is (diagnostic|experimental)|Conflicting collector combinations|Invalid JVM",
        "this JVM does not take that flag: correct it, or leave it out; "
        "diagnostic flags need -XX:+UnlockDiagnosticVMOptions in front of them",
    ),
    _cause(
        r"UnsupportedClassVersionError|the minimum required Java version|requires (at least )?Java"
        r"|Unsupported Java",
        "this version needs another Java, usually a newer one: choose it with --jdk",
    ),
    _cause(
        r"Enabling a Security Manager is not supported|Security Manager is deprecated|setSecurityManager",
        "this version uses the security manager, which Java 24 removed: choose an older Java with --jdk",
    ),
    _cause(r"Module \S+ not found", "the Java runtime lacks that module: choose another one with --jdk"),
    _cause(
        r"OutOfMemoryError: (Java heap space|GC overhead limit exceeded)",
        "the heap is too small for this work: give nodes a larger one with --heap",
    ),
    _cause(
        r"Cannot allocate memory|insufficient memory|Could not reserve enough space|OutOfMemoryError"
        r"|(Initial|Invalid maximum) heap size",
        "this machine has too little free memory for the heap, or the heap is too small: choose another size "
        "with --heap",
    ),
    _cause(
        r"A fatal error has been detected by the Java Runtime Environment",
        "the JVM itself crashed: hs_err_pid*.log among the logs says where; try another Java with --jdk",
    ),
    _cause(r"unknown (secure )?setting|Failed to parse value", "correct that node setting, or leave it out"),
    _cause(
        r"Address already in use|BindHttpException|BindTransportException|Failed to bind to",
        "another process has that port: without a port in its settings, the node takes a free one",
        naming="Failed to bind to",
    ),
    _cause(r"No space left on device|Disk quota exceeded|File too large", "free some disk space"),
    _cause(r"AccessDenied|Permission denied", "let the user that nodes run as read and write there"),
    _cause(
        r"Corrupt(Index|State)Exception|corrupt_index_exception|TranslogCorruptedException"
        r"|IndexFormatToo(Old|New)Exception|(NoSuchFileException|EOFException): .*/(indices|_state)/",
        DAMAGED_HINT,
    ),
    _cause(
        r"Lock held by another program|failed to obtain node lock",
        "another node uses this data folder, or the node's user cannot write to it",
    ),
)


def diagnose(log: Sequence[str]) -> tuple[str, str]:
    """What a failed node's log says.

    Args:
        log: its last lines.

    Returns:
        The line or lines that matter, the innermost exception before all others, empty when there are none,
        and what to do about them.
    """
    lines = [line.strip() for line in log if line.strip() and not _NOISE.match(line)]
    inner = [_INNER.sub("", line, count=1) for line in reversed(lines) if _INNER.match(line)]
    for line, cause in (*product(inner, _CAUSES), *((line, cause) for cause in _CAUSES for line in lines)):
        if cause.pattern.search(line):
            naming = (outer for outer in lines if cause.naming and cause.naming in outer)
            return next(naming, line)[:_LINE_LENGTH], cause.hint
    if inner:
        return inner[0][:_LINE_LENGTH], UNKNOWN_HINT
    telling = [line for line in lines if _TELLING.search(line)] or lines
    return "; ".join(line[:_LINE_LENGTH] for line in telling[-_SHOWN_LINES:]), UNKNOWN_HINT
