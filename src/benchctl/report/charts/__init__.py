"""Charts: analyses and samples in, plotly figures out."""
