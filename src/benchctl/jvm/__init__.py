"""What a JVM says about itself: compilations, inlining, profiles. Pure: texts in, facts out."""
