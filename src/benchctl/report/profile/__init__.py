"""Profiles for readers: tables in luceneutil's form, differences, and flame graphs that need no network."""
