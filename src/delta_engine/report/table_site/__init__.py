"""The site of the declared tables, as `delta-engine docs` writes it: its data, its diagrams and its pages.

It returns texts by path, and neither reads nor writes files. Same input, same bytes: no clock, no randomness.
"""
