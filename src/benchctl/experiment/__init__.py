"""Experiments: a file that says what is compared and expected, run as interleaved runs, and judged."""
