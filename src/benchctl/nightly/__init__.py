"""Unattended nights: measured, screened, confirmed, alerted on, and shown."""
