"""Locks on an environment. They save wasted work; the compare-and-swap of the document makes saves safe."""
