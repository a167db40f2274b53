"""Statistics of experiments: comparisons across interleaved runs, and expectations judged by intervals."""

from benchctl.stats.experiment.analyse import analyse_experiment

__all__ = ["analyse_experiment"]
