"""The commands of this slice."""
