"""What nights look like: a static site, a feed, a summary of one screen."""
