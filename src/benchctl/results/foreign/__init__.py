"""Results that other tools measured, as runs without samples."""
