"""Tracks and challenges: what is asked of an engine, in Rally's JSON."""
