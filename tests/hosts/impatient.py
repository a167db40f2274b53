"""Shorter patience with hosts, on both sides: Dask's workers preload this file, the driver imports it."""

from benchctl.hosts import pool, remote

pool.LOST_S = remote.LEASE_S = 4.0
