"""Nights: what was measured while nobody watched, what was found, and what became of it; kept for years."""
