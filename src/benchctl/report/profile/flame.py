"""Counted stacks of one side or two -> a flame graph as one HTML file that loads nothing."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import msgspec
from markupsafe import Markup

import benchctl
from benchctl.jvm.profile.counting import Counted
from benchctl.report.html.parts import embedded
from benchctl.report.html.templates import templates
from benchctl.report.numbers import counted as counted_words

_SMALLEST_SHARE = 1 / 4000
_SMALLER = "(smaller ones)"
_ALL = "all"
_POLICY = (
    "default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


class FlameData(msgspec.Struct, frozen=True):
    """What the page's script draws.

    Attributes:
        names: of the sides, one or two.
        totals: samples of each.
        frames: every name once.
        nodes: (depth, position in frames, samples of each side), parents before their children.
    """

    names: tuple[str, ...]
    totals: tuple[int, ...]
    frames: tuple[str, ...]
    nodes: tuple[tuple[int, ...], ...]


@dataclass
class _Node:
    """A frame under its callers."""

    samples: list[int]
    children: "dict[str, _Node]" = field(default_factory=dict)


def flame_data(names: Sequence[str], sides: Sequence[Counted]) -> FlameData:
    """Lay out the stacks of one side, or of a baseline and a contender, as one tree.

    What has under a 4,000th of the samples is put together with its neighbours of that size.

    Args:
        names: of the sides.
        sides: in the same order.
    """
    totals = tuple(side.samples for side in sides)
    root = _tree(sides)
    frames: dict[str, int] = {}
    nodes = tuple(
        (depth, frames.setdefault(name, len(frames)), *node.samples)
        for depth, name, node in _in_order(root, totals)
    )
    return FlameData(tuple(names), totals, tuple(frames), nodes)


def render_flame(title: str, lines: Sequence[str], data: FlameData) -> str:
    """Write the page.

    Args:
        title: of it.
        lines: what the samples are, below the title.
        data: what is drawn.
    """
    # Without a loader: the template is read as the style and the script are.
    template = templates().from_string(_text("flame.html.jinja"))
    script = _text("flame.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return template.render(
        version=benchctl.__version__,
        policy=_POLICY.format(digest=digest),
        title=title,
        lines=(*lines, _drawn(data)),
        names=data.names,
        style=Markup(_text("flame.css")),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        profile=embedded(data),
    )


def _drawn(data: FlameData) -> str:
    smaller = next((place for place, name in enumerate(data.frames) if name == _SMALLER), None)
    text = f"{counted_words(len(data.nodes), 'frame')} drawn"
    if smaller is None:
        return f"{text}."
    joint = sum(node[1] == smaller for node in data.nodes)
    return f"{text}, {joint:,} of them for several that have under 1/4,000 of the samples each."


def _tree(sides: Sequence[Counted]) -> _Node:
    root = _Node([side.samples for side in sides])
    for place, side in enumerate(sides):
        for stack, count in side.stacks.items():
            node = root
            for frame in stack:
                node = node.children.setdefault(frame, _Node([0] * len(sides)))
                node.samples[place] += count
    return root


def _in_order(root: _Node, totals: Sequence[int]) -> Iterator[tuple[int, str, _Node]]:
    """Depth, name and node, parents before their children and these by name."""
    # Not by recursion: stacks are deeper than Python's own may be.
    waiting = [(0, _ALL, root)]
    while waiting:
        depth, name, node = waiting.pop()
        yield depth, name, node
        large = {child: one for child, one in node.children.items() if _share(one, totals) >= _SMALLEST_SHARE}
        small = [one for child, one in node.children.items() if child not in large]
        if small:
            large[_SMALLER] = _Node([sum(side) for side in zip(*(one.samples for one in small), strict=True)])
        waiting += [(depth + 1, child, large[child]) for child in sorted(large, reverse=True)]


def _share(node: _Node, totals: Sequence[int]) -> float:
    return max(count / total if total else 0.0 for count, total in zip(node.samples, totals, strict=True))


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
