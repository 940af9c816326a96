"""The site of the declared models, as `delta-engine docs` writes it: data, diagrams and pages.

`documentation` reads the project and its state, `pages` returns texts by path, `folder` writes them. Same input, same
bytes: no clock, no randomness.
"""
