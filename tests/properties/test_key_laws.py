"""Laws of keys across tables: whatever the keys were and become, each step is legal, and then nothing is left."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.actions import TablePlan
from delta_engine.aspects.foreign_keys import ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop, named_primary_key
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import Column, ForeignKey, PrimaryKey, Table
from delta_engine.models.constraints import resolved
from delta_engine.state.states import ABSENT, CatalogState, TableState
from delta_engine.validation.validator import PlanValidator
from tests.fakes.applying import after
from tests.proofs import examples

PLANNER = TablePlanner()
COLUMNS = tuple(Column(name, "bigint", is_nullable=False) for name in "abc")
NAMES = ("p", "q", "r", "s")


@st.composite
def schemas(draw: st.DrawFn) -> list[Table]:
    """Draw tables that reference each other in any way, by one column or two."""
    keys = {
        name: PrimaryKey(
            draw(st.permutations("abc"))[: draw(st.integers(1, 2))],
            draw(st.sampled_from([None, f"pk_{name}"])),
            draw(st.booleans()),
        )
        for name in NAMES
        if draw(st.booleans())
    }
    tables = []
    for name in NAMES:
        parents = draw(st.lists(st.sampled_from(sorted(keys)), unique=True, max_size=3)) if keys else []
        foreign_keys = [
            ForeignKey(
                draw(st.permutations("abc"))[: len(keys[parent].columns)],
                parent,
                name=draw(st.sampled_from([None, f"fk_{name}_{parent}"])),
                rely=draw(st.booleans()),
            )
            for parent in parents
        ]
        tables.append(
            Table("dev", "silver", name, COLUMNS, primary_key=keys.get(name), foreign_keys=foreign_keys)
        )
    chosen = draw(st.sets(st.sampled_from(NAMES), min_size=1))
    kept = chosen | {
        key.references for table in tables if table.table_name in chosen for key in table.foreign_keys
    }
    wanted = [table for table in tables if table.table_name in kept]
    return [
        replace(table, foreign_keys=tuple(key for key in table.foreign_keys if key.references in kept))
        for table in wanted
    ]


def absent() -> CatalogState:
    return CatalogState(tables={f"dev.silver.{name}": ABSENT for name in NAMES})


def keys_of(state: TableState) -> tuple[object, ...]:
    return state.primary_key and (state.primary_key.name, state.primary_key.columns), {
        (key.name, key.columns, key.references, key.referenced_columns) for key in state.foreign_keys
    }


def keys_in(model: Table) -> tuple[object, ...]:
    key = named_primary_key(model)
    return keys_of(TableState(primary_key=key, foreign_keys=model.foreign_keys))


def applied(models: Sequence[Table]) -> dict[str, Table]:
    return {model.qualified_name.key: model for model in resolved(models)}


@settings(deadline=None, max_examples=examples(40, 100))
@given(schemas(), schemas())
def test_keys_become_what_is_declared_and_then_nothing_is_left(a: list[Table], b: list[Table]) -> None:
    assert not list(PlanValidator().model_violations(a))
    first = after(PLANNER.plan(a, absent()), absent())
    assert not PLANNER.plan(a, first, applied(a))
    plan = PLANNER.plan(b, first, applied(a))
    if any(PlanValidator().plan_violations(plan)):
        assert _leaves_somebody_behind(plan)
        return
    end = after(plan, first)
    assert not PLANNER.plan(b, end, applied(b))
    for model in resolved(b):
        assert keys_of(end.table(model.qualified_name)) == keys_in(model)


@settings(deadline=None, max_examples=examples(40, 100))
@given(schemas())
def test_a_schema_needs_nothing_but_what_it_lacks(models: list[Table]) -> None:
    state = after(PLANNER.plan(models, absent()), absent())
    bare = {
        key: replace(table, foreign_keys=()) if table.exists else table for key, table in state.tables.items()
    }
    plan = PLANNER.plan(models, CatalogState(tables=bare))
    assert not any(
        align.of_type(PrimaryKeyDrop) or align.of_type(ForeignKeyDrop) for align in plan.align_tables
    )
    end = after(plan, CatalogState(tables=bare))
    assert {key: keys_of(table) for key, table in end.tables.items()} == {
        key: keys_of(table) for key, table in state.tables.items()
    }


def _leaves_somebody_behind(plan: TablePlan) -> bool:
    return any(drop.referenced_by for align in plan.align_tables for drop in align.of_type(PrimaryKeyDrop))
