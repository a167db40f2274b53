"""HotSpot's inlining log: what it compiled, what it inlined where, and why not."""
