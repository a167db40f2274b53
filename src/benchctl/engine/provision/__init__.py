"""Engines and Java runtimes: found, fetched, checked, unpacked."""
