"""Engines: variants, archives, Java runtimes, nodes, and the indices they are given."""
