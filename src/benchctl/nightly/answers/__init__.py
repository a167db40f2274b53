"""Answers, night after night."""
