"""Unattended nights: run, screen, confirm, keep, tell somebody only when something is true."""
