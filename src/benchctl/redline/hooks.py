"""The hooks of red-line searches that the core calls."""

redline_search = "benchctl.redline.conduct:search_redline"
redline_curves = "benchctl.redline.judge:redline_curves"
redline_doubts = "benchctl.redline.judge:redline_doubts"
redline_steadiness = "benchctl.redline.judge:unsteady_nodes"
page = "benchctl.redline.charts:page"
report = "benchctl.redline.report:report"
