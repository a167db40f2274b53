"""Searches for the smallest schedule with an effect, as they are kept."""
