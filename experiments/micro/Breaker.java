package benchctl.micro;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.Query;
import org.elasticsearch.Version;
import org.elasticsearch.common.breaker.CircuitBreaker;
import org.elasticsearch.common.breaker.PreallocatedCircuitBreakerService;
import org.elasticsearch.common.settings.ClusterSettings;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.common.util.BigArrays;
import org.elasticsearch.common.util.PageCacheRecycler;
import org.elasticsearch.index.IndexSettings;
import org.elasticsearch.index.analysis.NameOrDefinition;
import org.elasticsearch.index.analysis.NamedAnalyzer;
import org.elasticsearch.index.cache.bitset.BitsetFilterCache;
import org.elasticsearch.index.fielddata.IndexFieldData;
import org.elasticsearch.index.fielddata.IndexFieldDataCache;
import org.elasticsearch.index.mapper.MappedFieldType;
import org.elasticsearch.index.mapper.NumberFieldMapper.NumberFieldType;
import org.elasticsearch.index.mapper.NumberFieldMapper.NumberType;
import org.elasticsearch.index.mapper.ObjectMapper;
import org.elasticsearch.index.query.QueryBuilder;
import org.elasticsearch.index.query.support.NestedScope;
import org.elasticsearch.indices.breaker.CircuitBreakerService;
import org.elasticsearch.indices.breaker.HierarchyCircuitBreakerService;
import org.elasticsearch.indices.breaker.NoneCircuitBreakerService;
import org.elasticsearch.script.Script;
import org.elasticsearch.script.ScriptContext;
import org.elasticsearch.search.aggregations.Aggregator;
import org.elasticsearch.search.aggregations.AggregatorFactories;
import org.elasticsearch.search.aggregations.MultiBucketConsumerService.MultiBucketConsumer;
import org.elasticsearch.search.aggregations.bucket.terms.TermsAggregationBuilder;
import org.elasticsearch.search.aggregations.metrics.SumAggregationBuilder;
import org.elasticsearch.search.aggregations.support.AggregationContext;
import org.elasticsearch.search.aggregations.support.ValuesSourceRegistry;
import org.elasticsearch.search.internal.SubSearchContext;
import org.elasticsearch.search.lookup.SearchLookup;
import org.elasticsearch.search.sort.BucketedSort;
import org.elasticsearch.search.sort.SortAndFormats;
import org.elasticsearch.search.sort.SortBuilder;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What the request circuit breaker costs when a shard builds its aggregators, and what preallocation saves.
 *
 * <p>Every aggregator asks the breaker for memory, and all threads share that breaker's counter. Since 7.12
 * Elasticsearch asks for an estimate of all of them at once, and hands it out without the others. Factories,
 * aggregators, breakers and arrays are Elasticsearch's own; only the shard around them is not: a context
 * without an index, so nothing is collected.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 4, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class Breaker {
    private static final int SUMS = 60;

    @Param({"noop", "real", "preallocate"})
    public String breaker;

    private CircuitBreakerService service;
    private BigArrays arrays;
    private ValuesSourceRegistry registry;
    private final Map<String, MappedFieldType> fields = new HashMap<>();
    private AggregatorFactories.Builder oneSum;
    private AggregatorFactories.Builder termsOfSum;
    private AggregatorFactories.Builder termsOfSums;

    @Setup
    public void prepare() {
        service = breaker.equals("noop")
                ? new NoneCircuitBreakerService()
                : new HierarchyCircuitBreakerService(
                        Settings.EMPTY,
                        Collections.emptyList(),
                        new ClusterSettings(Settings.EMPTY, ClusterSettings.BUILT_IN_CLUSTER_SETTINGS));
        arrays = new BigArrays(new PageCacheRecycler(Settings.EMPTY), service, CircuitBreaker.REQUEST);
        ValuesSourceRegistry.Builder known = new ValuesSourceRegistry.Builder();
        SumAggregationBuilder.registerAggregators(known);
        TermsAggregationBuilder.registerAggregators(known);
        registry = known.build();
        fields.put("key", new NumberFieldType("key", NumberType.INTEGER));
        for (int number = 0; number < SUMS; number++) {
            fields.put("value" + number, new NumberFieldType("value" + number, NumberType.INTEGER));
        }
        oneSum = new AggregatorFactories.Builder().addAggregator(sum(0));
        termsOfSum = new AggregatorFactories.Builder().addAggregator(terms(1));
        termsOfSums = new AggregatorFactories.Builder().addAggregator(terms(SUMS));
    }

    private static SumAggregationBuilder sum(int number) {
        return new SumAggregationBuilder("sum" + number).field("value" + number);
    }

    private static TermsAggregationBuilder terms(int sums) {
        TermsAggregationBuilder terms = new TermsAggregationBuilder("terms").field("key");
        for (int number = 0; number < sums; number++) terms.subAggregation(sum(number));
        return terms;
    }

    @Benchmark
    public Object sum() throws IOException {
        return built(oneSum);
    }

    @Benchmark
    public Object termsSum() throws IOException {
        return built(termsOfSum);
    }

    @Benchmark
    public Object termsSixtySums() throws IOException {
        return built(termsOfSums);
    }

    private Object built(AggregatorFactories.Builder builder) throws IOException {
        return breaker.equals("preallocate")
                ? Preallocating.built(this, builder)
                : built(builder, arrays, service.getBreaker(CircuitBreaker.REQUEST));
    }

    private Object built(AggregatorFactories.Builder builder, BigArrays arrays, CircuitBreaker breaker)
            throws IOException {
        Shard shard = new Shard(arrays.withCircuitBreaking(), breaker);
        try {
            return builder.build(shard, null).createTopLevelAggregators();
        } finally {
            shard.close();
        }
    }

    /** Elasticsearch before 7.12 has no such breaker: it is named here alone, and loaded when it is asked for. */
    private static final class Preallocating {
        static Object built(Breaker asked, AggregatorFactories.Builder builder) throws IOException {
            PreallocatedCircuitBreakerService preallocated = new PreallocatedCircuitBreakerService(
                    asked.service, CircuitBreaker.REQUEST, builder.bytesToPreallocate(), "aggregations");
            try {
                return asked.built(
                        builder,
                        asked.arrays.withBreakerService(preallocated),
                        preallocated.getBreaker(CircuitBreaker.REQUEST));
            } finally {
                preallocated.close();
            }
        }
    }

    /** What aggregators see of a shard. Versions differ in which methods it has: none is marked as inherited. */
    private final class Shard extends AggregationContext {
        private static final int MOST_BUCKETS = 65_536;

        private final BigArrays arrays;
        private final CircuitBreaker breaker;
        private final Query everything = new MatchAllDocsQuery();
        private final MultiBucketConsumer buckets;
        private final List<Aggregator> open = new ArrayList<>();

        Shard(BigArrays arrays, CircuitBreaker breaker) {
            this.arrays = arrays;
            this.breaker = breaker;
            buckets = new MultiBucketConsumer(MOST_BUCKETS, breaker);
        }

        public void close() {
            for (Aggregator one : open) one.close();
        }

        public void addReleasable(Aggregator aggregator) {
            open.add(aggregator);
        }

        public Query query() {
            return everything;
        }

        public Aggregator profileIfEnabled(Aggregator aggregator) {
            return aggregator;
        }

        public boolean profiling() {
            return false;
        }

        public long nowInMillis() {
            return 0;
        }

        protected IndexFieldData<?> buildFieldData(MappedFieldType field) {
            return field.fielddataBuilder("index", this::lookup).build(new IndexFieldDataCache.None(), service);
        }

        public MappedFieldType getFieldType(String name) {
            return fields.get(name);
        }

        public Collection<MappedFieldType> getFieldTypes() {
            return fields.values();
        }

        public Set<String> getMatchingFieldNames(String pattern) {
            return fields.keySet();
        }

        public boolean isFieldMapped(String name) {
            return fields.containsKey(name);
        }

        public ValuesSourceRegistry getValuesSourceRegistry() {
            return registry;
        }

        public BigArrays bigArrays() {
            return arrays;
        }

        public MultiBucketConsumer multiBucketConsumer() {
            return buckets;
        }

        public CircuitBreaker breaker() {
            return breaker;
        }

        public int shardRandomSeed() {
            return 0;
        }

        public long getRelativeTimeInMillis() {
            return 0;
        }

        public boolean isCancelled() {
            return false;
        }

        public boolean isCacheable() {
            return true;
        }

        public boolean enableRewriteToFilterByFilter() {
            return true;
        }

        public Version indexVersionCreated() {
            return Version.CURRENT;
        }

        public Query filterQuery(Query query) {
            return query;
        }

        public <T> T compile(Script script, ScriptContext<T> context) {
            throw notHere();
        }

        public SearchLookup lookup() {
            throw notHere();
        }

        public IndexSearcher searcher() {
            throw notHere();
        }

        public Query buildQuery(QueryBuilder builder) {
            throw notHere();
        }

        public IndexSettings getIndexSettings() {
            throw notHere();
        }

        public Optional<SortAndFormats> buildSort(List<SortBuilder<?>> sorts) {
            throw notHere();
        }

        public ObjectMapper getObjectMapper(String path) {
            throw notHere();
        }

        public NestedScope nestedScope() {
            throw notHere();
        }

        public SubSearchContext subSearchContext() {
            throw notHere();
        }

        public BitsetFilterCache bitsetFilterCache() {
            throw notHere();
        }

        public BucketedSort buildBucketedSort(SortBuilder<?> sort, int size, BucketedSort.ExtraData extra) {
            throw notHere();
        }

        public Analyzer getIndexAnalyzer(Function<String, NamedAnalyzer> unindexed) {
            throw notHere();
        }

        public Analyzer getNamedAnalyzer(String name) {
            throw notHere();
        }

        public Analyzer buildCustomAnalyzer(
                IndexSettings settings,
                boolean normalizer,
                NameOrDefinition tokenizer,
                List<NameOrDefinition> charFilters,
                List<NameOrDefinition> tokenFilters) {
            throw notHere();
        }

        private UnsupportedOperationException notHere() {
            return new UnsupportedOperationException("neither sum nor terms needs it");
        }
    }
}
