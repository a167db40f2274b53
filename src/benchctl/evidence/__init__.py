"""Evidence: what compilers, collectors, profiles and the kernel of a node did."""
