"""A change to one class of Lucene: methods of its source are replaced, found by their signatures."""

import difflib
import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from benchctl.errors import BenchctlError

# The members of a Java class in its source text, found without a compiler.

_TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<space>\s+)
    |(?P<other>\"\"\".*?\"\"\"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|[\w$]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING, _CLOSING = "({[", ")}]"


@dataclass(frozen=True)
class Token:
    """One word or sign of the code, comments and white space left out.

    Attributes:
        text: as it stands there.
        start: where it begins in the source.
    """

    text: str
    start: int


@dataclass(frozen=True)
class Member:
    """A field, method or nested class of a class.

    Attributes:
        signature: of a method, such as `visit(int,byte[])`; empty for all else.
        start: where it begins in the source, the comments before it included.
        end: behind its last character.
        digest: SHA-256 over its code, hexadecimal: comments and white space don't matter.
    """

    signature: str
    start: int
    end: int
    digest: str


def members_of(source: str, name: str, where: str) -> tuple[Member, ...]:
    """Find the members of a top-level class, in order.

    Args:
        source: the text of its file.
        name: of the class.
        where: what messages call the file.

    Raises:
        BenchctlError: there is no such class, or its braces don't match.
    """
    tokens = list(_tokens(source))
    opening = _opening_brace(tokens, name)
    if opening is None:
        raise BenchctlError(f"{where} has no class {name}")
    members = []
    begin = opening + 1
    while begin < len(tokens) and tokens[begin].text != "}":
        last = _last_of_member(tokens, begin)
        if last is None:
            break
        members.append(_member(tokens[begin : last + 1], tokens[begin - 1]))
        begin = last + 1
    else:
        if begin < len(tokens):
            return tuple(members)
    raise BenchctlError(f"{where} ends inside class {name}")


def _tokens(source: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(source):
        if found.lastgroup == "other":
            yield Token(found[0], found.start())


def _opening_brace(tokens: Sequence[Token], name: str) -> int | None:
    for number, (first, second) in enumerate(itertools.pairwise(tokens)):
        if (first.text, second.text) == ("class", name):
            rest = range(number, len(tokens))
            return next((place for place in rest if tokens[place].text == "{"), None)
    return None


def _last_of_member(tokens: Sequence[Token], begin: int) -> int | None:
    """A field ends with a semicolon, all else with the brace that closes its body."""
    depth = 0
    is_field = False
    for place in range(begin, len(tokens)):
        text = tokens[place].text
        if depth == 0 and text == "=":
            is_field = True
        depth += (text in _OPENING) - (text in _CLOSING)
        if depth == 0 and (text == ";" or (text == "}" and not is_field)):
            return place
    return None


def _member(tokens: Sequence[Token], before: Token) -> Member:
    code = " ".join(token.text for token in tokens)
    return Member(
        signature=_signature([token.text for token in tokens]),
        start=before.start + len(before.text),
        end=tokens[-1].start + len(tokens[-1].text),
        digest=hashlib.sha256(code.encode()).hexdigest(),
    )


def _signature(words: list[str]) -> str:
    """Name and parameter types, of a method or constructor; annotations with brackets are passed over."""
    place = 0
    while place < len(words) and words[place] not in ("=", "{", ";", "class", "interface", "enum"):
        if words[place] == "(":
            close = _closing(words, place)
            if words[place - 2] != "@":
                return f"{words[place - 1]}({','.join(_types(words[place + 1 : close]))})"
            place = close
        place += 1
    return ""


def _closing(words: list[str], opening: int) -> int:
    depth = 0
    for place in range(opening, len(words)):
        depth += (words[place] == "(") - (words[place] == ")")
        if depth == 0:
            return place
    return len(words)


def _types(words: list[str]) -> Iterator[str]:
    """The types in a list of parameters: all but `final` and the name at the end."""
    depth = 0
    one: list[str] = []
    for word in [*words, ","]:
        depth += (word == "<") - (word == ">")
        if word == "," and depth == 0:
            if one:
                yield "".join(one[:-1])
            one = []
        elif word != "final":
            one.append(word)


# A change to one class of Lucene.


@dataclass(frozen=True)
class Change:
    """What is changed in a class, and what it has to be before.

    Attributes:
        name: what users call it, as in `patched:bulk-visit`.
        about: what it does, in one line.
        source: path of the class's source in the sources jar.
        members: Java text of a class of the same name: its methods replace those with the same name and
            parameter types, and all else is added; empty to compile the class as it is.
        known: signature -> digest of the methods that are replaced or relied on, as they have to be.
        fits: the versions of Lucene that have those methods, for messages.
    """

    name: str
    about: str
    source: str
    members: str
    known: Mapping[str, str]
    fits: str

    @property
    def class_name(self) -> str:
        """Of the class, without its package."""
        return PurePosixPath(self.source).stem

    def apply(self, source: str, where: str) -> str:
        """The source with the change in it.

        Args:
            source: the class's source.
            where: what messages call it.

        Raises:
            BenchctlError: a method is not what this change was written for.
        """
        if not self.members:
            return source
        found = members_of(source, self.class_name, where)
        methods = {member.signature: member for member in found if member.signature}
        self._check(methods, where)
        replacements: list[tuple[Member, str]] = []
        additions = ""
        for member in members_of(self.members, self.class_name, f"the change '{self.name}'"):
            text = self.members[member.start : member.end]
            if member.signature in methods:
                replacements.append((methods[member.signature], text))
            else:
                additions += text
        source = source[: found[-1].end] + additions + source[found[-1].end :]
        # From the end on, so that the places before stay right.
        for member, text in sorted(replacements, key=lambda pair: pair[0].start, reverse=True):
            source = source[: member.start] + text + source[member.end :]
        return source

    def _check(self, methods: Mapping[str, Member], where: str) -> None:
        for signature, digest in self.known.items():
            if signature not in methods or methods[signature].digest != digest:
                what = "another" if signature in methods else "no"
                raise BenchctlError(
                    f"'{self.name}' does not fit {where}, which has {what} {signature}",
                    hint=f"this change was written for {self.fits}",
                )


def difference(before: str, after: str, name: str) -> str:
    """The unified difference of two texts of a file."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(lines)
