"""The hooks of evidence that the core calls."""

collectors = "benchctl.evidence.collectors"
evidence = "benchctl.evidence.activity"
foreign_lines = "benchctl.evidence.inlining_log:foreign_lines"
page = "benchctl.evidence.charts:page"
