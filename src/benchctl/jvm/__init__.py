"""What a JVM reports about itself: compilations, inlining, pauses, profiles."""
