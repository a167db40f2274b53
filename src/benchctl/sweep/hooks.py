"""The hooks of sweeps that the core calls."""

sweep = "benchctl.sweep.points:Sweep.of"
swept_curves = "benchctl.sweep.rows:swept_curves"
page = "benchctl.sweep.charts:page"
report = "benchctl.sweep.report:report"
