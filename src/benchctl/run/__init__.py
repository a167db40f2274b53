"""Runs from options to the record: plan, preparation, forks."""
