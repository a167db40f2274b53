"""Prepared indices: filled, kept, copied, and gone on with."""
