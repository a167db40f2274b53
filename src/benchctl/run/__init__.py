"""From options to a finished run: the plan, the preparation, the forks, the record."""
