"""Having a suite started every night: a crontab line, or a systemd service and its timer."""
