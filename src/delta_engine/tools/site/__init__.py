"""The site of the declared tables, functions and policies, as `delta-engine docs` writes it: data, diagrams and pages.

`documentation` reads the project and its state, `pages` returns texts by path, `folder` writes them. Same input, same
bytes: no clock, no randomness.
"""
