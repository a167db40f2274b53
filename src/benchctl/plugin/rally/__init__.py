"""What plug-ins import of Rally and OpenSearch Benchmark, as far as real ones do; written anew."""
