"""Prints a plan: a coloured tree on a terminal, the same lines plainly elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from delta_engine.actions import TablePlan
from delta_engine.aspects.aspect import Sign
from delta_engine.cli.terminal import stderr_console
from delta_engine.report.plan_tree import Branch, plan_branches
from delta_engine.report.visible import in_one_line, visible

_ANY_WIDTH = 100_000

_COLOURS = {Sign.ADDED: "green", Sign.CHANGED: "yellow", Sign.REMOVED: "red"}


def print_plan(plan: TablePlan, *, to_stderr: bool = False) -> None:
    """Print the tree of changes; nothing for an empty plan."""
    make = stderr_console if to_stderr else partial(Console, highlight=False)
    console = make()
    if not console.is_terminal:
        console = make(width=_ANY_WIDTH)  # a tree is cut at its console's width
    for branch in plan_branches(plan):
        console.print(_tree(branch))


def print_statements(statements: Iterable[str]) -> None:
    """Print statements as a SQL script, as they are; on a terminal, which would obey them, controls are spelled out."""
    for sql in statements:
        text = f"{sql};\n\n"
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)  # rich and click would change it


def _tree(branch: Branch) -> Tree:
    colour = _COLOURS[branch.sign]
    tree = Tree(Text.assemble((branch.sign.value, f"bold {colour}"), f" {in_one_line(branch.text)}"))
    for leaf in branch.leaves:
        tree.children.append(_tree(leaf))
    return tree
