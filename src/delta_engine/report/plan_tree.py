"""A plan as a tree of lines, for terminals and, as HTML, for notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Final

from delta_engine import aspects
from delta_engine.actions import (
    Action,
    AlignTable,
    CreateTable,
    DropTable,
    Hazard,
    TableAction,
    TablePlan,
)
from delta_engine.aspects.aspect import Change, Sign
from delta_engine.aspects.columns import described, values_clause
from delta_engine.drift.drifted_resources import UnmanagedPart
from delta_engine.models import Table
from delta_engine.report.visible import visible
from delta_engine.sql.tables import sql_undrop_table
from delta_engine.telemetry.context import command

_MOST_UNMANAGED: Final = 20

_COLOURS: Final[Mapping[Sign, str]] = {
    Sign.ADDED: "#1a7f37",
    Sign.CHANGED: "#9a6700",
    Sign.REMOVED: "#cf222e",
}
_LIST: Final = "list-style:none;margin:0;padding-left:1.5em"


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of the tree with its child lines."""

    sign: Sign
    text: str
    leaves: tuple[Branch, ...] = ()


def plan_branches(plan: TablePlan) -> Iterator[Branch]:
    """Yield a branch per schema and table, sorted by name."""
    for schema in plan.create_schemas:
        comment = f"  {schema.comment!r}" if schema.comment else ""
        yield Branch(Sign.ADDED, f"schema {schema}{comment}{_hazards(schema.hazards)}")
    for align in plan.align_schemas:
        yield Branch(Sign.CHANGED, f"schema {align}", tuple(_changed(align.actions)))
    yield from map(table_branch, plan.table_actions())


def table_branch(action: TableAction) -> Branch:
    """Return the branch of one table."""
    match action:
        case CreateTable(desired):
            text = f"{action.table}{_hazards(action.hazards)}"
            return Branch(Sign.ADDED, text, tuple(_created(desired)))
        case AlignTable(table, actions):
            return Branch(Sign.CHANGED, str(table), tuple(_changed(actions)))
        case DropTable(table, rows):
            undrop = sql_undrop_table(str(table))
            note = f"with {counted(rows, 'row')}; {undrop} brings it back, by default for seven days"
            return Branch(Sign.REMOVED, f"{table}  {note}{_hazards(action.hazards)}")


def plan_summary(plan: TablePlan) -> str:
    """Return one line with the counts of a plan."""
    if not plan:
        return "no changes"
    hazards = Counter(
        hazard.value
        for action in _all_actions(plan)
        for hazard in action.hazards
        if hazard is not Hazard.SAFE
    )
    parts = [
        f"{counted(len(found), noun)} to {verb}"
        for found, noun, verb in (
            (plan.create_schemas, "schema", "create"),
            (plan.align_schemas, "schema", "change"),
            (plan.create_tables, "table", "create"),
            (plan.align_tables, "table", "change"),
            (plan.drop_tables, "table", "drop"),
        )
        if found
    ]
    parts += [f"{count} × {hazard}" for hazard, count in sorted(hazards.items())]
    return ", ".join(parts)


def plan_html(plan: TablePlan, *, environment: str) -> str:
    """Return a plan as self-contained HTML for notebooks, with the tree of the terminal."""
    title = f"<p><b>{escape(visible(environment))}</b>: {escape(plan_summary(plan))}</p>"
    tables = "".join(f"<details open>{''.join(_details(branch))}</details>" for branch in plan_branches(plan))
    return f'<div style="font:13px/1.6 monospace;white-space:pre-wrap">{title}{tables}</div>'


def unmanaged_lines(parts: Iterable[UnmanagedPart]) -> Iterator[str]:
    """Yield a line per table with unmanaged parts; long lists are cut."""
    keys: dict[str, list[str]] = {}
    for part in parts:
        keys.setdefault(part.table, []).append(part.key)
    for table in [*keys][:_MOST_UNMANAGED]:
        yield f"unmanaged: {table}: {', '.join(keys[table])}"
    if len(keys) > _MOST_UNMANAGED:
        yield f"unmanaged: parts of {len(keys) - _MOST_UNMANAGED} more tables; {command('drift')} lists them"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 table` and `2 tables`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def counted_resources(schemas: int, tables: int) -> str:
    """Return the number of tables, and of schemas if any."""
    words = [counted(schemas, "schema")] if schemas else []
    return ", ".join((*words, counted(tables, "table")))


def describe_change(change: Change) -> str:
    """Return a change as one line without its sign."""
    match change.observed, change.desired:
        case None, str(desired):
            return f"{change.subject}: {desired}"
        case str(observed), None:
            return f"{change.subject}: {observed}"
        case observed, desired:
            return f"{change.subject}: {observed} → {desired}"


def _hazards(hazards: tuple[Hazard, ...]) -> str:
    return f"  [{', '.join(hazard.value for hazard in hazards)}]"


def _created(model: Table) -> Iterator[Branch]:
    width = max(len(column.name) for column in model.columns)
    for column in model.columns:
        definition = described(column, values_clause(column))
        yield Branch(Sign.ADDED, f"{column.name:<{width}}  {definition}")
    for change in aspects.explain(aspects.beyond_columns(model)):
        yield Branch(Sign.ADDED, f"{change.subject}: {change.desired}")


def _changed(actions: tuple[Action, ...]) -> Iterator[Branch]:
    for action in actions:
        for change in aspects.explain([action]):
            yield Branch(change.sign, f"{describe_change(change)}{_hazards(action.hazards)}")


def _all_actions(plan: TablePlan) -> Iterator[Action]:
    for schema in plan.align_schemas:
        yield from schema.actions
    for table in plan.align_tables:
        yield from table.actions


def _details(branch: Branch) -> Iterator[str]:
    yield f"<summary>{_html_line(branch)}</summary>"
    yield from _html_leaves(branch)


def _html_leaves(branch: Branch) -> Iterator[str]:
    if not branch.leaves:
        return
    yield f'<ul style="{_LIST}">'
    for leaf in branch.leaves:
        yield f"<li>{_html_line(leaf)}{''.join(_html_leaves(leaf))}</li>"
    yield "</ul>"


def _html_line(branch: Branch) -> str:
    sign = f'<b style="color:{_COLOURS[branch.sign]}">{escape(branch.sign.value)}</b>'
    return f"{sign} {escape(visible(branch.text))}"
