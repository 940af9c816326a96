"""Plan files: a plan that is written down, reviewed, and applied later, if nothing has moved since."""
