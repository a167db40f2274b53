"""The generated corpus: made, kept, read, and what is true of it."""
