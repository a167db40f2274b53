"""Suites: their files, what they ask of a night, and what is remembered of them."""
