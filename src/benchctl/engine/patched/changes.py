"""The changes to Lucene that benchctl can build."""

from importlib import resources

from benchctl.engine.patched.edit import Change
from benchctl.errors import UsageError
from benchctl.nearest import suggestion

_DOC_IDS_WRITER = "org/apache/lucene/util/bkd/DocIdsWriter.java"


def _java(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


_ALL = (
    Change(
        name="bulk-visit",
        about="a leaf's document ids go to the visitor at once, not by a virtual call each",
        source=_DOC_IDS_WRITER,
        members=_java("bulk_visit.java"),
        known={
            "readDelta16(IndexInput,int,IntersectVisitor)": (
                "9189a5ee2f276f6b8346d7e4ca581653fa9f0720e4e299f2bf40b1e7d6e2c166"
            ),
            "readInts24(IndexInput,int,IntersectVisitor)": (
                "5948cf98e63543d8eba90d63158cc0dfa5bf19a12a49ce20f694edf00b833bb0"
            ),
            "readInts32(IndexInput,int,IntersectVisitor)": (
                "2e2aee83253e8a9c61782baaee989799fb0d47bb11309ab621c2e28c9fab50c8"
            ),
            # Those that fill an array, which the changed ones call.
            "readDelta16(IndexInput,int,int[])": (
                "af4274ff788c4ea1277b676c2a25fa0f4892152a9abfd721b03fdb6921b63df1"
            ),
            "readInts24(IndexInput,int,int[])": (
                "ac4ec40aa902feb430ad93c8be96c10b50cc19089774f6e106a1fe3b29b963c2"
            ),
            "readInts32(IndexInput,int,int[])": (
                "c8de68b6fe2ddbb387f7dcc70a3f375940582832f2c8d7df35f5f61170ce7e86"
            ),
        },
        fits="Lucene 9.7 to 9.10; from 9.11 on Lucene does the same for 16 and 32 bits, from 10.2 on for 24",
    ),
    # Two compilers don't write the same bytecode: this tells the one's work from the change's.
    Change(
        name="recompiled",
        about="the class that bulk-visit changes, compiled as it is: the control",
        source=_DOC_IDS_WRITER,
        members="",
        known={},
        fits="every Lucene with that class",
    ),
)

CHANGES = {change.name: change for change in _ALL}
"""By name."""


def change_named(name: str) -> Change:
    """A change by its name.

    Raises:
        UsageError: there is none of that name.
    """
    try:
        return CHANGES[name]
    except KeyError as err:
        raise UsageError(f"there is no patch '{name}' of Lucene", hint=suggestion(name, CHANGES)) from err
