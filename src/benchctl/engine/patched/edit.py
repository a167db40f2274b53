"""A change to one class of Lucene: methods of its source are replaced, found by their signatures."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from benchctl.engine.patched.java_source import Member, members_of
from benchctl.errors import BenchctlError


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
