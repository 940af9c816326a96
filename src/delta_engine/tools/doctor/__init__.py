"""The doctor: checks that an environment has everything it needs, as the identity that runs it."""
