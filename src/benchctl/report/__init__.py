"""Reports: results in, text out; no node is asked and no clock is read."""
