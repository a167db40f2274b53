"""Tracks and challenges: the requests to an engine, in Rally's JSON."""
