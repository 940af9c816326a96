"""The doctor: checks, as the identity that runs it, that everything an environment needs is in place."""
