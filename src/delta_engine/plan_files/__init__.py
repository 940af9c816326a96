"""Plan files: a plan that is written, reviewed, and applied later if nothing has changed since."""
