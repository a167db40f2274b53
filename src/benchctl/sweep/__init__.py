"""Sweeps: one setting at many values, and its curve."""
