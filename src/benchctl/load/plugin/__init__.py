"""A track's Python plug-in as a source of load."""
