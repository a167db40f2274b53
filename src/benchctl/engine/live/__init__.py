"""An index of a live cluster, as a track wants it."""
