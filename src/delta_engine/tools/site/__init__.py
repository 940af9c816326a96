"""The site of the declared tables, as `delta-engine docs` writes it: its data, its diagrams and its pages.

`documentation` reads the project and its state, `pages` returns texts by path, `folder` writes them. Same input, same
bytes: no clock, no randomness.
"""
