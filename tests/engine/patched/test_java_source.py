"""Members of a class, found in text that is as unlike Lucene's as Java allows."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.patched_lucene import members_of
from benchctl.errors import BenchctlError

SOURCE = r"""
package any; // class Shelf { not this one }

/** About class Shelf { nor this. */
@SuppressWarnings({"all", "class Shelf {"})
final class Shelf<T extends Comparable<T>> extends Board {
  private static final int[] SIZES = {1, 2, 3};
  private final Map<String, int[]> books = new HashMap<>() {{ put("}", new int[0]); }};
  private char brace = '}', quote = '\'', other = '"';

  static { load("\"}"); }

  Shelf(int size) { this.size = size; }

  /** Comment with a brace } in it. */
  @Deprecated(since = "9") @Override
  public void visit(final int doc, byte[] value) throws IOException {
    for (int i = 0; i < 3; i++) { call(i); } // }
  }

  <R> List<Map<String, R>> grouped(Map<String, List<R>> by, String... names) { return null; }

  abstract void later();

  private static final class Inner extends Board { void visit(int doc) {} }
}

class Another { void other() {} }
"""
CODE = (
    "final",
    "class",
    "A",
    "{",
    "int",
    "a",
    "=",
    "3",
    ";",
    "void",
    "b",
    "(",
    "int",
    "c",
    ")",
    "{",
    "}",
    "}",
)
SPACE = st.sampled_from([" ", "\n\t", " // } class A {\n", " /* } */ ", "\n\n"])


def text(name: str) -> str:
    """The code of the one method with a name, in SOURCE."""
    (found,) = [one for one in members_of(SOURCE, "Shelf", "x") if one.signature.startswith(f"{name}(")]
    return SOURCE[found.start : found.end].strip()


def test_methods_are_found_by_their_name_and_the_types_of_their_parameters():
    signatures = [member.signature for member in members_of(SOURCE, "Shelf", "x")]
    assert [signature for signature in signatures if signature] == [
        "Shelf(int)",
        "visit(int,byte[])",
        "grouped(Map<String,List<R>>,String...)",
        "later()",
    ]
    assert len(signatures) == 9


def test_a_method_begins_with_its_comment_and_ends_with_its_brace():
    assert text("visit").startswith("/** Comment with")
    assert text("visit").endswith("// }\n  }")
    assert text("later") == "abstract void later();"


def test_members_stand_side_by_side():
    members = members_of(SOURCE, "Shelf", "x")
    assert all(before.end == after.start for before, after in itertools.pairwise(members))


@given(st.lists(SPACE, min_size=len(CODE), max_size=len(CODE)))
def test_white_space_and_comments_change_no_digest(spaces: list[str]):
    spread = "".join(part for pair in zip(spaces, CODE, strict=True) for part in pair)
    found = members_of(spread, "A", "x")
    plain = members_of(" ".join(CODE), "A", "x")
    assert [(one.signature, one.digest) for one in found] == [(one.signature, one.digest) for one in plain]


def test_other_code_has_another_digest():
    digests = {members_of(f"class A {{ int a = {n}; }}", "A", "x")[0].digest for n in ("1", "2", "1 + 1")}
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "x has no class A"),
        ("class Aa { }", "x has no class A"),
        ("class A", "x has no class A"),
        ("class A { void b() { }", "x ends inside class A"),
        ("class A { int a = {1, 2}", "x ends inside class A"),
        ("class A {", "x ends inside class A"),
    ],
)
def test_a_text_without_the_whole_class_is_refused(source: str, said: str):
    with pytest.raises(BenchctlError) as caught:
        members_of(source, "A", "x")
    assert caught.value.message == said


def test_a_class_may_be_empty():
    assert members_of("class A { /* nothing */ }", "A", "x") == ()
