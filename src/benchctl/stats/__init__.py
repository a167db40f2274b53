"""Statistics over forks: pure functions of results, without files, clocks or global randomness."""
