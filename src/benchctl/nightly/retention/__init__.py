"""What is kept of old nights, and what goes."""
