"""Experiments as they are kept: what one asks, which runs belong to it, and where that lies."""
