"""What a run leaves behind: its record, its samples, and where they are kept."""
