"""Inlining logs, as text and JSON for readers."""
