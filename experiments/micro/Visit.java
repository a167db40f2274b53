//DEPS org.apache.lucene:lucene-core:9.8.0
package benchctl.micro;

import static org.apache.lucene.search.DocIdSetIterator.NO_MORE_DOCS;

import java.io.IOException;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.LongPoint;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.index.PointValues.IntersectVisitor;
import org.apache.lucene.index.PointValues.Relation;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What a visitor of a BKD tree costs, by how many kinds of visitor the JVM has seen before.
 *
 * <p>Lucene's DocIdsWriter reads the documents of a leaf that is all inside a query and hands each to the
 * query's visitor. With one kind, or two, C2 inlines that call; with three it is a virtual call for every
 * document, although what is measured is always the first. A patched Lucene hands a leaf over at once; then the
 * loop over its documents is the visitor's own, and no other kind has a say in how it is compiled.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Warmup(iterations = 2, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 4, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class Visit {
    private static final int ROUNDS = 1_500;

    @Param({"1", "2", "3"})
    public int kinds;

    @Param({"200000"})
    public int documents;

    /** Documents without a point ahead of them: behind 2^24 of them, leaves have 32 bits for each. */
    @Param({"0"})
    public int before;

    private DirectoryReader reader;
    private PointValues points;
    private long least;
    private long most;

    @Setup
    public void fill() throws IOException {
        ByteBuffersDirectory directory = new ByteBuffersDirectory();
        try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig())) {
            Random random = new Random(7);
            Document document = new Document();
            for (int number = 0; number < before; number++) writer.addDocument(document);
            LongPoint point = new LongPoint("at", 0);
            document.add(point);
            for (int number = 0; number < documents; number++) {
                // In no order, so that a leaf has documents from everywhere and takes 24 bits for each.
                point.setLongValue(random.nextInt(documents));
                writer.addDocument(document);
            }
            writer.forceMerge(1);
        }
        reader = DirectoryReader.open(directory);
        points = reader.leaves().get(0).reader().getPointValues("at");
        least = documents / 10;
        most = documents - documents / 10;
        long found = 0;
        for (int round = 0; round < ROUNDS; round++) {
            found += visited(new Counting());
            found += kinds > 1 ? visited(new Summing()) : 0;
            found += kinds > 2 ? visited(new Mixing()) : 0;
        }
        if (found == 0) throw new AssertionError("nothing was visited");
    }

    @TearDown
    public void close() throws IOException {
        reader.close();
    }

    @Benchmark
    public long visit() throws IOException {
        return visited(new Counting());
    }

    private long visited(Within visitor) throws IOException {
        points.intersect(visitor);
        return visitor.found;
    }

    /** What all kinds have in common: the range. */
    private abstract class Within implements IntersectVisitor {
        long found;

        @Override
        public void visit(int document, byte[] packed) throws IOException {
            long value = LongPoint.decodeDimension(packed, 0);
            if (value >= least && value <= most) visit(document);
        }

        @Override
        public Relation compare(byte[] low, byte[] high) {
            long first = LongPoint.decodeDimension(low, 0);
            long last = LongPoint.decodeDimension(high, 0);
            if (first > most || last < least) return Relation.CELL_OUTSIDE_QUERY;
            return first >= least && last <= most ? Relation.CELL_INSIDE_QUERY : Relation.CELL_CROSSES_QUERY;
        }
    }

    private final class Counting extends Within {
        @Override
        public void visit(int document) {
            found++;
        }

        @Override
        public void visit(DocIdSetIterator documents) throws IOException {
            for (int one = documents.nextDoc(); one != NO_MORE_DOCS; one = documents.nextDoc()) visit(one);
        }
    }

    private final class Summing extends Within {
        @Override
        public void visit(int document) {
            found += document;
        }

        @Override
        public void visit(DocIdSetIterator documents) throws IOException {
            for (int one = documents.nextDoc(); one != NO_MORE_DOCS; one = documents.nextDoc()) visit(one);
        }
    }

    private final class Mixing extends Within {
        @Override
        public void visit(int document) {
            found ^= 31L * document;
        }

        @Override
        public void visit(DocIdSetIterator documents) throws IOException {
            for (int one = documents.nextDoc(); one != NO_MORE_DOCS; one = documents.nextDoc()) visit(one);
        }
    }
}
