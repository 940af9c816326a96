"""A plan as a small page, for notebooks: the same tree as in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Final

from delta_engine.actions import TablePlan
from delta_engine.aspects.aspect import Sign
from delta_engine.report.plan_tree import Branch, plan_branches, plan_summary
from delta_engine.report.visible import visible

_COLOURS: Final[Mapping[Sign, str]] = {
    Sign.ADDED: "#1a7f37",
    Sign.CHANGED: "#9a6700",
    Sign.REMOVED: "#cf222e",
}
_LIST: Final = "list-style:none;margin:0;padding-left:1.5em"


def plan_html(plan: TablePlan, *, environment: str) -> str:
    """Return a plan as HTML that needs nothing from anywhere.

    Args:
        plan: the plan.
        environment: the environment that it is for.
    """
    title = f"<p><b>{escape(visible(environment))}</b>: {escape(plan_summary(plan))}</p>"
    tables = "".join(f"<details open>{''.join(_table(branch))}</details>" for branch in plan_branches(plan))
    return f'<div style="font:13px/1.6 monospace;white-space:pre-wrap">{title}{tables}</div>'


def _table(branch: Branch) -> Iterator[str]:
    yield f"<summary>{_line(branch)}</summary>"
    yield from _leaves(branch)


def _leaves(branch: Branch) -> Iterator[str]:
    if not branch.leaves:
        return
    yield f'<ul style="{_LIST}">'
    for leaf in branch.leaves:
        yield f"<li>{_line(leaf)}{''.join(_leaves(leaf))}</li>"
    yield "</ul>"


def _line(branch: Branch) -> str:
    sign = f'<b style="color:{_COLOURS[branch.sign]}">{escape(branch.sign.value)}</b>'
    return f"{sign} {escape(visible(branch.text))}"
