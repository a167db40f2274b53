package benchctl.micro;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.SortedDocValuesField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.SortedDocValues;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.util.BytesRef;
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
 * What a doc value costs by where its document is, with and without Lucene 8's jump tables.
 *
 * <p>Doc values are read forwards. Without jump tables whoever asks for a document passes every block of 65,536
 * documents before it; with them it jumps. Jump tables are part of the index: Lucene 8 has none in what
 * Lucene 7 wrote.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 2, time = 300, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 3, time = 300, timeUnit = TimeUnit.MILLISECONDS)
public class DocValues {
    /** An index of one segment, kept for all JVMs: half of its documents have a value, in no order. */
    @State(Scope.Benchmark)
    public static class Index {
        @Param({"4000000"})
        public int documents;

        /** Who wrote the index: the Lucene that reads it, or Lucene 7. */
        @Param({"itself", "lucene7"})
        public String writer;

        private Directory directory;
        private DirectoryReader reader;
        private LeafReader leaf;

        @Setup
        public void open() throws Exception {
            Path folder = written();
            directory = FSDirectory.open(folder);
            reader = DirectoryReader.open(directory);
            leaf = reader.leaves().get(0).reader();
        }

        private Path written() throws Exception {
            Path kept = Paths.get(System.getProperty("benchctl.kept"));
            String by = writer.equals("itself") ? org.apache.lucene.util.Version.LATEST.toString() : writer;
            Path folder = kept.resolve(by + "-" + documents);
            if (Files.isDirectory(folder)) return folder;
            // Removed with all else of this JVM, unless it is complete.
            Path draft = Files.createTempDirectory("draft");
            if (writer.equals("itself")) {
                Writer.write(draft.toString(), documents);
            } else {
                URL own = DocValues.class.getProtectionDomain().getCodeSource().getLocation();
                URL old = Paths.get(System.getProperty("benchctl." + writer)).toUri().toURL();
                try (URLClassLoader apart = new URLClassLoader(new URL[] {old, own}, null)) {
                    apart.loadClass(Writer.class.getName())
                            .getMethod("write", String.class, int.class)
                            .invoke(null, draft.toString(), documents);
                }
            }
            return Files.move(draft, folder);
        }

        @TearDown
        public void close() throws IOException {
            reader.close();
            directory.close();
        }
    }

    /** Writes an index with the Lucene of its class loader. */
    public static final class Writer {
        private Writer() {}

        public static void write(String folder, int documents) throws IOException {
            IndexWriterConfig config = new IndexWriterConfig();
            config.setRAMBufferSizeMB(128).setUseCompoundFile(false);
            try (Directory directory = FSDirectory.open(Paths.get(folder));
                    IndexWriter writer = new IndexWriter(directory, config)) {
                Random random = new Random(7);
                BytesRef[] words = new BytesRef[1000];
                for (int number = 0; number < words.length; number++) words[number] = new BytesRef("word" + number);
                Document blank = new Document();
                for (int number = 0; number < documents; number++) {
                    Document document = blank;
                    if (random.nextBoolean()) {
                        document = new Document();
                        for (String name : NUMBERS) {
                            document.add(new NumericDocValuesField(name, random.nextInt(1 << 20)));
                        }
                        for (String name : WORDS) {
                            document.add(new SortedDocValuesField(name, words[random.nextInt(words.length)]));
                        }
                    }
                    writer.addDocument(document);
                }
                writer.forceMerge(1);
            }
        }
    }

    private static final String[] NUMBERS = {"date", "length"};
    private static final String[] WORDS = {"served", "found"};

    /** How far into the segment documents are, from 0 to 1: those of the last 4,096 up to there. */
    @State(Scope.Thread)
    public static class Place {
        @Param({"0.01", "0.25", "0.5", "0.75", "1"})
        public double position;

        private static final int WINDOW = 4096;
        private int first;
        private int step;

        @Setup
        public void choose(Index index) {
            first = Math.max(0, (int) (position * index.documents) - WINDOW);
        }

        int next() {
            // Odd, so that every document of the window has its turn.
            step = (step + 1667) & (WINDOW - 1);
            return first + step;
        }
    }

    /** One value of a document by a fresh iterator, as whoever goes backwards has to. */
    @Benchmark
    public long numeric(Index index, Place place) throws IOException {
        NumericDocValues values = index.leaf.getNumericDocValues("date");
        return values.advanceExact(place.next()) ? values.longValue() : -1;
    }

    @Benchmark
    public int sorted(Index index, Place place) throws IOException {
        SortedDocValues values = index.leaf.getSortedDocValues("served");
        return values.advanceExact(place.next()) ? values.ordValue() : -1;
    }

    /** An iterator that goes forwards through the segment, again and again. */
    @State(Scope.Thread)
    public static class Walk {
        @Param({"dense", "sparse", "very-sparse"})
        public String access;

        private int step;
        private int at;
        private NumericDocValues numbers;
        private SortedDocValues words;

        @Setup
        public void begin() {
            step = access.equals("dense") ? 1 : access.equals("sparse") ? 1_000 : 100_000;
        }

        boolean wraps(Index index) {
            at += step;
            if (at < index.documents) return false;
            at -= index.documents;
            return true;
        }
    }

    /** The value of every document, of each 1,000th or 100,000th, in order. */
    @Benchmark
    public long forwardNumeric(Index index, Walk walk) throws IOException {
        if (walk.wraps(index) || walk.numbers == null) walk.numbers = index.leaf.getNumericDocValues("date");
        return walk.numbers.advanceExact(walk.at) ? walk.numbers.longValue() : -1;
    }

    @Benchmark
    public int forwardSorted(Index index, Walk walk) throws IOException {
        if (walk.wraps(index) || walk.words == null) walk.words = index.leaf.getSortedDocValues("served");
        return walk.words.advanceExact(walk.at) ? walk.words.ordValue() : -1;
    }

    /** Documents from everywhere in no order of theirs, as an export sorted by something else has them. */
    @State(Scope.Benchmark)
    public static class Export {
        /** Which of four exports in a row is timed. */
        @Param({"1", "2", "3", "4"})
        public int run;

        /** How many documents; as many as there are for all. */
        @Param({"50000"})
        public int hits;

        private int[] order;

        @Setup
        public void shuffle(Index index) throws IOException {
            order = new int[index.documents];
            Random random = new Random(11);
            for (int place = 0; place < order.length; place++) {
                int other = random.nextInt(place + 1);
                order[place] = order[other];
                order[other] = place;
            }
            order = Arrays.copyOf(order, Math.min(hits, order.length));
            for (int before = 1; before < run; before++) all(index);
        }

        long all(Index index) throws IOException {
            long found = 0;
            for (int document : order) {
                for (String name : NUMBERS) {
                    NumericDocValues values = index.leaf.getNumericDocValues(name);
                    if (values.advanceExact(document)) found += values.longValue();
                }
                for (String name : WORDS) {
                    SortedDocValues values = index.leaf.getSortedDocValues(name);
                    if (values.advanceExact(document)) found += values.lookupOrd(values.ordValue()).length;
                }
            }
            return found;
        }
    }

    @Benchmark
    @BenchmarkMode(Mode.SingleShotTime)
    @OutputTimeUnit(TimeUnit.MILLISECONDS)
    @Warmup(iterations = 0)
    @Measurement(iterations = 1)
    public long export(Index index, Export export) throws IOException {
        return export.all(index);
    }
}
