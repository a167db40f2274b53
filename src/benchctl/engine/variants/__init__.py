"""Variants that say more than an engine and its version: read from files and flags, and merged."""
