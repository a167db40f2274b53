"""The HTML report: a page that stands on its own, without network, and is complete without its plots."""
