"""Load from several hosts, on top of Dask distributed; one host needs none of it."""
