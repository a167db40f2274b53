"""Evidence: what a node's compilers inlined, and where it spent its time."""
