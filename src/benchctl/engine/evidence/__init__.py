"""What is collected of a node beside the figures: by JVM flags, by attaching to it, or by watching it."""
