"""Where a JVM's threads were when they were looked at: recorded, kept, counted, compared."""
