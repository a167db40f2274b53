"""Stored runs: their record, its samples, and where they are kept."""
