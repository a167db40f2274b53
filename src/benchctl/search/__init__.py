"""Searches by questions put to nodes one after another: minimize, bisect and ab."""
