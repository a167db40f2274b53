"""The hooks of sweeps that the core calls."""

sweep = "benchctl.sweep.points:Sweep.of"
