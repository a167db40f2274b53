"""The hooks of red-line searches that the core calls."""

redline_search = "benchctl.redline.conduct:search_redline"
