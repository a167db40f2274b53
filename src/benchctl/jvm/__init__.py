"""Reports of a JVM about itself: compilations, inlining, pauses, profiles."""
