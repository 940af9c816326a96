"""The tools that stand on the engine, a folder each. They use it as any other program would.

Only `cli`, `job` and `api` import a tool, and no tool imports another.
"""
