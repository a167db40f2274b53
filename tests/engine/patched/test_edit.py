"""A change takes exactly its methods' places, or refuses."""

import pytest

from benchctl.engine.patched_lucene import CHANGES, Change, change_named, difference, members_of
from benchctl.errors import BenchctlError, UsageError

SOURCE = """package any;

class Reader {
  int a;

  // The first.
  void read(int n) { loop(n); }

  void read(int n, int m) { loop(n + m); }

  static void loop(int n) { for (;;) { } }
}
"""
MEMBERS = """// About the change.
class Reader {
  private int first;

  // At once.
  void loop(int count) { all(count); }

  void read(int n) { block(n); }

  int last() { return first; }
}
"""
EXPECTED = """package any;

class Reader {
  int a;

  void read(int n) { block(n); }

  void read(int n, int m) { loop(n + m); }

  // At once.
  void loop(int count) { all(count); }
  private int first;

  int last() { return first; }
}
"""


def change(*signatures: str, **changes: str) -> Change:
    """The change of MEMBERS, for readers whose methods are those of SOURCE."""
    known = {one.signature: one.digest for one in members_of(SOURCE, "Reader", "x") if one.signature}
    wanted = signatures or ("read(int)", "loop(int)")
    values = {"members": MEMBERS, "source": "any/Reader.java"} | changes
    return Change(
        name="faster",
        about="",
        known={signature: known.get(signature, "") for signature in wanted},
        fits="versions 1 to 3",
        **values,
    )


def test_methods_are_replaced_and_the_rest_is_added():
    assert change().apply(SOURCE, "x") == EXPECTED


def test_what_else_is_in_the_file_does_not_matter():
    moved = SOURCE.replace("loop(n + m)", "other(n)").replace("int a;", "int a, b;")
    assert "void read(int n) { block(n); }" in change().apply(moved, "x")


def test_comments_and_white_space_do_not_matter():
    assert change().apply(SOURCE.replace("{ loop(n); }", "{\n // now\n loop(n);\n}"), "x") == EXPECTED


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("loop(n);", "loop(n + 1);", "another read(int)"),
        ("read(int n)", "read(long n)", "no read(int)"),
        ("static void loop", "void loop", "another loop(int)"),
    ],
)
def test_a_method_that_is_not_what_the_change_was_written_for_is_refused(before: str, after: str, said: str):
    with pytest.raises(BenchctlError) as caught:
        change().apply(SOURCE.replace(before, after, 1), "Reader.java of Lucene 4")
    assert caught.value.message == f"'faster' does not fit Reader.java of Lucene 4, which has {said}"
    assert caught.value.hint == "this change was written for versions 1 to 3"


def test_a_method_that_is_only_relied_on_is_checked_too():
    relying = change("read(int)", "loop(int)", "read(int,int)")
    with pytest.raises(BenchctlError, match=r"another read\(int,int\)"):
        relying.apply(SOURCE.replace("n + m", "n"), "x")


def test_a_change_of_nothing_leaves_the_source():
    assert change(members="").apply(SOURCE, "x") == SOURCE


def test_a_difference_says_which_lines():
    assert difference("a\nb\n", "a\nc\n", "x") == "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert difference("a\n", "a\n", "x") == ""


@pytest.mark.parametrize("name", CHANGES)
def test_every_shipped_change_says_what_it_replaces(name: str):
    shipped = change_named(name)
    members = members_of(shipped.members, shipped.class_name, name) if shipped.members else ()
    # Whatever is not known beforehand would be added beside the class's own: here, only the nested class.
    unknown = [one for one in members if one.signature and one.signature not in shipped.known]
    assert unknown == []
    assert all(len(digest) == 64 for digest in shipped.known.values())


def test_the_change_of_the_visits_covers_all_encodings_of_this_scale():
    shipped = change_named("bulk-visit")
    members = members_of(shipped.members, shipped.class_name, "bulk-visit")
    assert [one.signature.partition("(")[0] for one in members if one.signature] == [
        "readDelta16",
        "readInts24",
        "readInts32",
    ]


def test_an_unknown_change_is_told_with_the_nearest():
    with pytest.raises(UsageError, match="there is no patch 'bulk-vist' of Lucene") as caught:
        change_named("bulk-vist")
    assert "bulk-visit" in caught.value.hint
