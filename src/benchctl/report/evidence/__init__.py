"""Evidence as readers see it: what it cost, and what it shows task by task."""
