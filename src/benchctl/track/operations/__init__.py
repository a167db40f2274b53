"""Operations: what a task repeats, one class a type of Rally's and OpenSearch Benchmark's."""
