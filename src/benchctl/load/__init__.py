"""The load generator: arrivals, the one measured wire client, and what became of every request."""
