"""What a page is made of, for tests: elements, headings, ids and links, read as a browser would."""

import itertools
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"meta", "link", "br", "hr", "img", "input", "wbr"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Outline(HTMLParser):
    """Feed it a page; it refuses elements that are not closed in order."""

    elements: list[Element] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str, **attributes: str) -> list[Element]:
        return [
            element
            for element in self.elements
            if element.tag == tag
            and all(element.attributes.get(name.rstrip("_")) == value for name, value in attributes.items())
        ]

    def headings(self) -> list[tuple[int, str]]:
        return [
            (int(element.tag[1]), element.text.strip())
            for element in self.elements
            if element.tag in _HEADINGS
        ]

    def ids(self) -> list[str]:
        return [element.attributes["id"] for element in self.elements if "id" in element.attributes]

    def addresses(self) -> list[str]:
        """Everything that a browser would follow or load."""
        names = ("href", "src", "action", "data", "poster", "srcset", "formaction")
        return [
            element.attributes[name]
            for element in self.elements
            for name in names
            if name in element.attributes
        ]


def outline(page: str) -> Outline:
    found = Outline()
    found.feed(page)
    found.close()
    assert not found._open, f"not closed: {[element.tag for element in found._open]}"
    return found


def check_structure(found: Outline) -> None:
    """What keyboards, screen readers and validators need of any page, and that it leads to itself alone."""
    levels = [level for level, _ in found.headings()]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), found.headings()
    ids = found.ids()
    assert len(ids) == len(set(ids))
    for element in found.elements:
        for name in ("aria-labelledby", "aria-describedby", "data-figure"):
            assert element.attributes.get(name, ids[0]) in ids, element.attributes
        assert not any(name.startswith("on") for name in element.attributes)
    assert len(found.all("main")) == len(found.all("header")) == 1
    for address in found.addresses():
        assert address == "data:," or address.removeprefix("#") in ids, address
