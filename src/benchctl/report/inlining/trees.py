"""A compilation's tree, cut to what matters."""

from itertools import groupby
from typing import Any

from benchctl.jvm.call_sites import FoundCompilation
from benchctl.jvm.inlining_log import Account
from benchctl.jvm.inlining_tree import Call, Compilation, CutTree, Receiver, in_library, simple
from benchctl.report.numbers import counted, visible

_MS_PER_S = 1000
_BCI = "\0"
_COMPILERS = {0: "a wrapper", 1: "C1", 2: "C1", 3: "C1", 4: "C2"}
_CUT = "what the Java library does within itself, and accessors"


def tree_text(label: str, found: FoundCompilation, cut: CutTree, account: Account) -> str:
    """A tree for readers, with what was cut, and what of the log could not be read.

    Args:
        label: whose log it is.
        found: the compilation.
        cut: what is shown of its tree.
        account: of the log.
    """
    lines = [f"{label}: {title(found.compilation)}"]
    if found.given_up_ms is not None:
        lines.append(
            f"(given up {found.given_up_ms / _MS_PER_S:.2f} s after the JVM began, and not compiled anew)"
        )
    if not found.as_root and found.compilation.id is not None:
        lines.append("(never compiled by itself there: only its calls, and the way to them)")
    if found.others:
        lines.append(f"(the newest of {found.others + 1} of its compilations at that level)")
    lines += _site_lines(_by_parent(cut), -1)
    if cut.cut:
        lines.append(f"{counted(cut.cut, 'call')} not shown: {_CUT}, or too deep; --all shows them")
    lines += [f"not understood: {line.strip()}" for line in found.tree.unread]
    lines.append(account_text(account))
    return visible("\n".join(lines) + "\n")


def tree_document(label: str, found: FoundCompilation, cut: CutTree, account: Account) -> dict[str, Any]:
    """The same for programs."""
    return {
        "log": label,
        "compilation": compilation_document(found.compilation),
        "given-up-ms": found.given_up_ms,
        "as-root": found.as_root,
        "older": found.others,
        "calls": [_call_document(at, call) for at, call in cut.calls],
        "cut": cut.cut,
        "unread": list(found.tree.unread),
        "lines": account.lines,
        "foreign-lines": account.foreign,
    }


def title(compilation: Compilation) -> str:
    """What was compiled, by what, and when."""
    if compilation.id is None:
        return "a fragment, without what was compiled"
    size = "native" if compilation.size is None else f"{compilation.size} bytes"
    osr = "" if compilation.osr_bci is None else f", entered at bci {compilation.osr_bci}"
    compiler = _COMPILERS.get(compilation.level or 0, "?")
    when = (
        ""
        if compilation.stamp_ms is None
        else f" {compilation.stamp_ms / _MS_PER_S:.2f} s after the JVM began"
    )
    level = "" if compilation.level is None else f", level {compilation.level}"
    return f"{compilation.method} ({size}{osr}), by {compiler}{level}, id {compilation.id},{when}"


def account_text(account: Account) -> str:
    """How much the log holds, and how much of it is not the log's."""
    parts = [f"{counted(account.lines, 'line')}, {counted(account.compilations, 'compilation')}"]
    if account.foreign:
        parts.append(
            f"{counted(account.foreign, 'line')} not of the JVM's log, such as: {account.samples[0].strip()}"
        )
    if account.heads > 1 and not account.names_threads:
        parts.append(
            "it does not say which thread wrote what: a call may stand in another compilation's tree"
        )
    return "log: " + "; ".join(parts)


def receivers_text(receivers: tuple[Receiver, ...]) -> str:
    """`PointRangeQuery$1$1 274,304 of 274,431, ...`, or that the log says none."""
    if not receivers:
        return "no type profile"
    ordered = sorted(receivers, key=lambda one: (-one.count, one.name))
    seen = ", ".join(f"{simple(one.name)} {one.count:,}" for one in ordered)
    return f"{seen} of {ordered[0].total:,}"


def _by_parent(cut: CutTree) -> dict[int, list[tuple[int, Call]]]:
    """Calls with their positions, by the position of the call that inlined their caller."""
    found: dict[int, list[tuple[int, Call]]] = {}
    for at, call in cut.calls:
        found.setdefault(call.parent, []).append((at, call))
    return found


def _site_lines(children: dict[int, list[tuple[int, Call]]], parent: int) -> list[str]:
    """The call sites of one caller; neighbours with the same in them stand together: `@ 35, 50, 72`."""
    folded: list[tuple[list[int], list[str]]] = []
    for bci, site in groupby(children.get(parent, ()), key=lambda one: one[1].bci):
        lines = [line for at, call in site for line in (*_call_lines(call), *_site_lines(children, at))]
        if folded and folded[-1][1] == lines:
            folded[-1][0].append(bci)
        else:
            folded.append(([bci], lines))
    return [line.replace(_BCI, ", ".join(map(str, bcis))) for bcis, lines in folded for line in lines]


def _call_lines(call: Call) -> list[str]:
    """One call; where its bci belongs stands a mark."""
    indent = "  " * (call.depth + 1)
    callee = call.callee if in_library(call.callee) else simple(call.callee)
    size = "not loaded" if call.size is None else f"{call.size} bytes"
    lines = [f"{indent}@ {_BCI}  {callee} ({size})  {call.text}"]
    if call.receivers:
        lines.append(f"{indent}   saw {receivers_text(call.receivers)}")
    return lines


def compilation_document(compilation: Compilation) -> dict[str, Any]:
    """A compilation for programs."""
    return {
        "id": compilation.id,
        "stamp-ms": compilation.stamp_ms,
        "level": compilation.level,
        "method": compilation.method,
        "bytecodes": compilation.size,
        "osr-bci": compilation.osr_bci,
        "flags": compilation.flags,
    }


def _call_document(at: int, call: Call) -> dict[str, Any]:
    return {
        "position": at,
        "parent": call.parent,
        "depth": call.depth,
        "caller": call.caller,
        "bci": call.bci,
        "callee": call.callee,
        "bytecodes": call.size,
        "fate": call.fate.value,
        "outcome": call.fate.outcome,
        "text": call.text,
        "receivers": receivers_document(call.receivers),
    }


def receivers_document(receivers: tuple[Receiver, ...]) -> list[dict[str, Any]]:
    """A type profile for programs."""
    return [{"class": one.name, "count": one.count, "total": one.total} for one in receivers]
