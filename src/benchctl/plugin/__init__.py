"""Python plug-ins of tracks: read, consented to, and only then executed, under a private name."""
