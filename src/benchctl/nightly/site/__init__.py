"""The pages of suites: a static site and a feed."""
