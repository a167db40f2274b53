"""`benchctl minimize`, `bisect` and `ab`."""
