"""Telling somebody what a night found: commands, webhooks, mail; what fails is kept and tried again."""
