"""Random trees, and trees read from a log."""

from collections.abc import Iterable

from hypothesis import strategies as st

from benchctl.evidence.inlining_log import Call, InliningLog, Receiver, Tree, outcome_of
from jvm_logs import head, plain, thread

ROOT = "root.R::r"

words = st.sampled_from(
    [
        "inline (hot)",
        "too big",
        "virtual call",
        "force inline by annotation",
        "words of another JDK",
        "accessor",
    ]
)
methods = st.from_regex(r"[a-z]{1,4}\.[A-Z][a-z]{0,3}(\$[1-9]){0,2}::(<init>|[a-z]{1,6})", fullmatch=True)
classes = st.from_regex(r"[a-z]{1,4}\.[A-Z][a-z]{0,3}", fullmatch=True)
receivers = st.builds(Receiver, classes, st.integers(0, 10**9), st.integers(0, 10**9))


@st.composite
def trees(draw: st.DrawFn) -> tuple[Call, ...]:
    calls: list[Call] = []
    way: list[int] = []
    for at in range(draw(st.integers(0, 30))):
        del way[draw(st.integers(0, len(way))) :]
        said = draw(words)
        parent = way[-1] if way else -1
        size = draw(st.none() | st.integers(0, 70_000))
        seen = tuple(draw(st.lists(receivers, max_size=2)))
        caller = calls[parent].callee if way else ROOT
        callee = draw(methods)
        calls.append(
            Call(
                len(way),
                caller,
                parent,
                draw(st.integers(-1, 70_000)),
                callee,
                size,
                outcome_of(said),
                said,
                seen,
            )
        )
        way.append(at)
    return tuple(calls)


def read_tree(pieces: Iterable[bytes]) -> Tree:
    """The tree of a compilation of `ROOT`; another thread wrote something between two pieces."""
    between = b"\n" + plain(thread(2), thread(1))
    log = InliningLog(plain(thread(1), head(1, 1, 4, ROOT)) + between.join(pieces))
    return min(log, key=lambda entry: entry.number).tree()
