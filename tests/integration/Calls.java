package demo;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.*;

@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 1, time = 100, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 2, time = 100, timeUnit = TimeUnit.MILLISECONDS)
public class Calls {
    @Param({"1", "2"})
    public int step;
    private int at;

    @Benchmark
    public int called() { return next(next(next(next(at++)))); }

    private int next(int value) { return value * 31 + step; }

    @Benchmark
    public int breaks() { throw new IllegalStateException("broken on purpose"); }
}
