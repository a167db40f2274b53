"""The hooks of red-line searches that the core calls."""

page = "benchctl.redline.charts:page"
redline = "benchctl.redline.judge"
redline_search = "benchctl.redline.conduct:search_redline"
report = "benchctl.redline.report:report"
