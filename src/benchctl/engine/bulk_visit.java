// What the change `bulk-visit` makes of org.apache.lucene.util.bkd.DocIdsWriter, Lucene 9.7 to 9.10.
//
// A leaf of a point tree holds up to 512 document ids. Where a query takes all of a leaf, Lucene hands them to its
// visitor one at a time: a call of IntersectVisitor.visit(int) for every document. While the JVM has seen one or two
// classes of visitors there, it inlines that call; from the third on it is a virtual call for every document. Here
// a leaf's ids are handed over at once, by IntersectVisitor.visit(DocIdSetIterator): one virtual call a leaf. The
// loop is then inside the visitor's own method, or in the interface's default one, where fewer classes meet.
//
// Of the methods below, those that the class has already (same name, same parameter types) take the place of its
// own; everything else comes in addition. Ids as bit sets and as whole ranges go to the visitor as iterators
// already. Ids as variable-length deltas are left alone: Lucene 9 only reads them, from older indices.
final class DocIdsWriter {

  private final Block block = new Block();

  private void readDelta16(IndexInput in, int count, IntersectVisitor visitor) throws IOException {
    readDelta16(in, count, scratch);
    visitor.visit(block.of(scratch, count));
  }

  // No longer static: the ids go through the scratch array, which is as long as the largest leaf.
  private void readInts24(IndexInput in, int count, IntersectVisitor visitor) throws IOException {
    readInts24(in, count, scratch);
    visitor.visit(block.of(scratch, count));
  }

  private void readInts32(IndexInput in, int count, IntersectVisitor visitor) throws IOException {
    readInts32(in, count, scratch);
    visitor.visit(block.of(scratch, count));
  }

  /**
   * The ids at the start of an array, in the order in which they are stored there. One object serves all leaves: no
   * visitor may keep it.
   *
   * <p>Ids of a leaf are in the order of their values, not ascending as an iterator's should be. Visitors do no more
   * than take one after the other, in the order in which {@link IntersectVisitor#visit(int)} would get them.
   */
  private static final class Block extends DocIdSetIterator {

    private int[] ids;
    private int count;
    private int next;

    /** Begin anew, before the first of {@code count} ids. */
    DocIdSetIterator of(int[] ids, int count) {
      this.ids = ids;
      this.count = count;
      next = 0;
      return this;
    }

    // Follows from the position: storing it as well would cost a write for every document.
    @Override
    public int docID() {
      if (next == 0) {
        return -1;
      }
      return next <= count ? ids[next - 1] : NO_MORE_DOCS;
    }

    @Override
    public int nextDoc() {
      if (next < count) {
        return ids[next++];
      }
      next = count + 1;
      return NO_MORE_DOCS;
    }

    @Override
    public int advance(int target) throws IOException {
      return slowAdvance(target);
    }

    // Still all of them at the end: a visitor that clears documents counts them only then.
    @Override
    public long cost() {
      return count;
    }
  }
}
