"""What is left of a tree when it is cut to what matters."""

from pathlib import Path

from hypothesis import given

from benchctl.evidence.inlining_log import read_tree
from benchctl.evidence.inlining_tree import Call, cut_tree
from evidence.trees import trees

GOLDEN = Path(__file__).parent / "golden"  # excerpts of the blog, see test_inlining_tree.py


def blog() -> tuple[Call, ...]:
    return read_tree([(GOLDEN / "blog-addall.txt").read_bytes()]).calls


def test_the_java_librarys_own_business_goes_and_lucenes_stays():
    cut = cut_tree(blog())
    callees = [call.callee for _, call in cut.calls]
    assert len(callees) + cut.cut == len(blog())
    assert len(callees) < 50
    assert not any(callee.startswith(("java.", "jdk.")) for callee in callees)
    assert sum(callee.endswith("::visit") for callee in callees) == 2
    assert "org.apache.lucene.util.FixedBitSet::set" in callees


def test_virtual_calls_and_refusals_of_the_library_stay_with_the_way_to_them():
    calls = read_tree(
        [
            b"@ 1   java.util.A::a (5 bytes)   inline (hot)\n",
            b"  @ 2   java.util.B::b (5 bytes)   inline (hot)\n",
            b"    @ 3   java.util.C::c (0 bytes)   virtual call\n",
            b"  @ 4   java.util.D::d (5 bytes)   force inline by annotation\n",
            b"@ 5   java.util.E::e (400 bytes)   hot method too big\n",
            b"@ 6   java.util.F::f (400 bytes)   too big\n",
        ]
    ).calls
    assert [call.bci for _, call in cut_tree(calls).calls] == [1, 2, 3, 5]


def test_sites_with_several_receivers_stay():
    calls = read_tree(
        [
            b"@ 1   java.util.A::a (5 bytes)   inline (hot)\n@ 1   java.util.B::a (5 bytes)   inline (hot)\n",
            b"@ 2   java.util.C::c (5 bytes)   inline (hot)\n \\-> TypeProfile (9/10 counts) = java/util/C\n",
            b"@ 3   java.util.D::d (5 bytes)   inline (hot)\n",
            b" \\-> TypeProfile (10/10 counts) = java/util/D\n",
        ]
    ).calls
    assert [call.bci for _, call in cut_tree(calls).calls] == [1, 1, 2]


def test_what_was_asked_for_stays_whatever_it_is():
    calls = read_tree(
        [b"@ 1   java.util.A::a (5 bytes)   accessor\n@ 2   java.util.B::b (5 bytes)   accessor\n"]
    ).calls
    assert [call.bci for _, call in cut_tree(calls, asked="A::a").calls] == [1]


def test_depth_cuts_below_it():
    cut = cut_tree(blog(), depth=1)
    assert {call.depth for _, call in cut.calls} == {0, 1}


def test_everything_is_everything():
    assert cut_tree(blog(), everything=True).cut == 0


@given(trees())
def test_who_stays_has_the_way_to_it(calls: tuple[Call, ...]):
    cut = cut_tree(calls)
    kept = {at for at, _ in cut.calls}
    assert all(call.parent in kept | {-1} for _, call in cut.calls)
    assert len(kept) + cut.cut == len(calls)
