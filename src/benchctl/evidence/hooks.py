"""The hooks of evidence that the core calls."""

check_runtime = "benchctl.evidence.collectors:check_runtime"
collectors = "benchctl.evidence.collectors:collectors"
foreign_lines = "benchctl.evidence.inlining_log:foreign_lines"
evidence_cost = "benchctl.evidence.activity:evidence_cost"
evidence_everywhere = "benchctl.evidence.activity:evidence_everywhere"
page = "benchctl.evidence.charts:page"
