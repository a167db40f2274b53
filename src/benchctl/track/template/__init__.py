"""Files of tracks: templates rendered within bounds, and where in them a mistake stands."""
