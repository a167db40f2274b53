"""Microbenchmarks of JMH, in the forks of variants."""
