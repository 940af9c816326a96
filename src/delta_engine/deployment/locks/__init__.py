"""Locks on an environment: they keep people from wasting work; the compare-and-swap is what makes it safe."""
