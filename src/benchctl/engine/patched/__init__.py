"""Lucene with a change that benchctl makes and compiles itself, for nodes that run with it."""

from benchctl.engine.patched.build import PatchedJar, build, build_jar

__all__ = ["PatchedJar", "build", "build_jar"]
