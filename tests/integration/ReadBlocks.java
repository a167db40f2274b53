package org.apache.lucene.util.bkd;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.apache.lucene.index.PointValues.IntersectVisitor;
import org.apache.lucene.index.PointValues.Relation;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.IOContext;
import org.apache.lucene.store.IndexInput;
import org.apache.lucene.store.IndexOutput;

/** Writes leaves' document ids in every encoding, and reads them as visitors of both kinds do. */
public final class ReadBlocks {

  private static final int LARGEST = 512;
  private static final Set<Integer> ENCODINGS = new TreeSet<>();
  private static final Set<Integer> AT_ONCE = new TreeSet<>();

  public static void main(String[] arguments) throws IOException {
    Random random = new Random(1);
    DocIdsWriter writer = new DocIdsWriter(LARGEST);
    for (int ids : new int[] {1 << 9, 1 << 15, 1 << 16, 1 << 23, Integer.MAX_VALUE}) {
      for (int size = 1; size <= LARGEST; size += size < 20 ? 1 : 41) {
        for (boolean sorted : new boolean[] {false, true}) {
          check(writer, leaf(random, size, ids, sorted));
        }
      }
    }
    check(writer, leaf(random, LARGEST, 1 << 23, false));
    System.out.println("visited at once: " + AT_ONCE + ", of: " + ENCODINGS);
  }

  private static int[] leaf(Random random, int size, int ids, boolean sorted) {
    // Some ids twice, as documents with several values have it; ascending ones only once.
    int base = ids < 1 << 23 ? random.nextInt(1 << 22) : 0;
    int[] leaf = random.ints(size, 0, ids).map(id -> base + id).toArray();
    return sorted ? Arrays.stream(leaf).sorted().distinct().toArray() : leaf;
  }

  private static void check(DocIdsWriter writer, int[] leaf) throws IOException {
    ByteBuffersDirectory directory = new ByteBuffersDirectory();
    try (IndexOutput out = directory.createOutput("leaf", IOContext.DEFAULT)) {
      writer.writeDocIds(leaf, 0, leaf.length, out);
      writer.writeDocIds(new int[] {7, 3, 9}, 0, 3, out);
    }
    List<Integer> expected = new ArrayList<>();
    Arrays.stream(leaf).forEach(expected::add);
    try (IndexInput in = directory.openInput("leaf", IOContext.DEFAULT)) {
      int encoding = in.readByte();
      ENCODINGS.add(encoding);
      for (Visitor visitor : List.of(new Visitor(), new BulkVisitor())) {
        in.seek(0);
        writer.readInts(in, leaf.length, visitor);
        equal(expected, visitor.seen);
        if (visitor.iterators > 0) {
          equal(1, visitor.iterators);
          AT_ONCE.add(encoding);
        }
        // The next leaf begins where this one ends, and nothing of this one is left.
        visitor.seen.clear();
        writer.readInts(in, 3, visitor);
        equal(List.of(7, 3, 9), visitor.seen);
      }
      in.seek(0);
      Stopping stopping = new Stopping();
      try {
        writer.readInts(in, leaf.length, stopping);
        throw new AssertionError("it was not stopped");
      } catch (IllegalStateException stopped) {
        equal(expected.subList(0, 1), stopping.seen);
      }
      Skipping skipping = new Skipping(leaf[leaf.length / 2]);
      in.seek(0);
      writer.readInts(in, leaf.length, skipping);
      int first = 0;
      while (leaf[first] < skipping.target) {
        first++;
      }
      equal(expected.subList(first, leaf.length), skipping.seen);
    }
  }

  static void equal(Object expected, Object found) {
    if (expected.equals(found) == false) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }

  /** Takes one id after the other, like the comparators' visitor. */
  private static class Visitor implements IntersectVisitor {
    final List<Integer> seen = new ArrayList<>();
    int iterators = 0;

    @Override
    public void visit(int doc) {
      seen.add(doc);
    }

    @Override
    public void visit(int doc, byte[] value) {
      throw new AssertionError();
    }

    @Override
    public Relation compare(byte[] least, byte[] greatest) {
      throw new AssertionError();
    }
  }

  /** Takes what the iterator gives, and checks what it says of itself; what is in order comes in order. */
  private static final class BulkVisitor extends Visitor {
    @Override
    public void visit(DocIdSetIterator iterator) throws IOException {
      iterators++;
      long cost = iterator.cost();
      equal(-1, iterator.docID());
      for (int doc = iterator.nextDoc(); doc != DocIdSetIterator.NO_MORE_DOCS; doc = iterator.nextDoc()) {
        equal(doc, iterator.docID());
        seen.add(doc);
      }
      equal(DocIdSetIterator.NO_MORE_DOCS, iterator.docID());
      equal((long) seen.size(), iterator.cost());
      equal(cost, iterator.cost());
    }
  }

  /** Ends the visit at the first id. */
  private static final class Stopping extends Visitor {
    @Override
    public void visit(int doc) {
      super.visit(doc);
      throw new IllegalStateException();
    }
  }

  /** Passes over what comes before an id. */
  private static final class Skipping extends Visitor {
    final int target;

    Skipping(int target) {
      this.target = target;
    }

    @Override
    public void visit(int doc) {
      if (doc >= target || seen.isEmpty() == false) {
        super.visit(doc);
      }
    }

    @Override
    public void visit(DocIdSetIterator iterator) throws IOException {
      int doc = iterator.advance(target);
      while (doc != DocIdSetIterator.NO_MORE_DOCS) {
        equal(doc, iterator.docID());
        seen.add(doc);
        doc = iterator.nextDoc();
      }
    }
  }
}
