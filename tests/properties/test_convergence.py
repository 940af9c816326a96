"""The law that everything rests on: a sync leads to the models, by whatever path, and then nothing is left."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Allowance, ColumnOrder, DestructiveKind, Policy, Removed
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.definitions import as_plain, as_table, define, define_plain
from delta_engine.drift.synchronizing import attempted_by
from delta_engine.errors import RefusedError, StatementError
from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError
from delta_engine.models import ColumnMask, QualifiedName, Schema, Table, former_names
from delta_engine.models.constraints import resolved
from delta_engine.ownership.recorded import (
    Recorded,
)
from delta_engine.ownership.recorded_models import (
    under_new_names,
)
from delta_engine.state.catalog_reader import snapshot_with_former_names
from delta_engine.state.states import CatalogState
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from delta_engine.validation.relations import checked_plan
from delta_engine.validation.validator import PlanValidator
from tests.builders.databases import Choices, Scenario, scenarios
from tests.builders.deployment import deployment_state, records_of
from tests.builders.key_databases import key_scenarios
from tests.fakes.applying import Choose, apply_in_some_order
from tests.fakes.planning import compiled
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.proofs import examples

Applied = Mapping[str, Table]
"""What was applied last, by name."""

NEVER: Applied = MappingProxyType({})
POLICY = Policy(
    allow=tuple(map(Allowance, DestructiveKind)),
    removed_tables=Removed.DROP,
    column_order=ColumnOrder.ENFORCE,
    create_schemas=True,
)


@dataclass(frozen=True)
class Schemas:
    declared: tuple[Schema, ...] = ()
    applied: tuple[Schema, ...] = ()


NO_SCHEMAS = Schemas()


class FailingRunner:
    """Runs the statements of a catalog, but for one; a run that dies there gets nothing through any more."""

    def __init__(self, catalog: FakeUnityCatalog, place: int, *, is_deadly: bool) -> None:
        self._catalog = catalog
        self._left = place
        self._is_deadly = is_deadly

    def run(self, sql: str) -> Sequence[Row]:
        self._left -= 1
        if self._left == -1 or (self._is_deadly and self._left < 0):
            raise StatementError("not now", sql=sql, error_class=None, is_outcome_unknown=self._is_deadly)
        return self._catalog.run(sql)


def planned(
    catalog: FakeUnityCatalog,
    models: Sequence[Table],
    applied: Applied = NEVER,
    attempts: Mapping[str, tuple[Table, ...]] = MappingProxyType({}),
    schemas: Schemas = NO_SCHEMAS,
) -> TablePlan:
    """Return what there is to do."""
    validator = PlanValidator(POLICY)
    validator.validate_models(models)
    observed = snapshot_with_former_names(catalog, [*models, *schemas.declared])
    recorded = records_of(with_settled_renames(models, applied, observed).values())
    recorded |= {
        f"table.{key}": recorded[f"table.{key}"].attempting(attempted_models)
        for key, attempted_models in attempts.items()
    }
    renamed_records = under_new_names(recorded, models, observed)
    removed = removed_tables(catalog, models, applied)
    gone = [Table(name.catalog, name.schema, name.table, ()) for name in removed]
    observed = observed.with_tables(catalog.snapshot(gone))
    schema_records = remembered_schemas(schemas.applied)
    planner = TablePlanner(POLICY)
    plan = checked_plan(
        models,
        observed,
        lambda: planner.plan(
            [*models, *schemas.declared], observed, {**renamed_records, **schema_records}, removed
        ),
    )
    validator.validate_plan(plan)
    return plan


def with_settled_renames(models: Sequence[Table], applied: Applied, observed: CatalogState) -> Applied:
    """Take records along to new names where tables have them by now, as a sync does before it plans."""
    settled = dict(applied)
    for model in models:
        state = observed.table(model.qualified_name)
        for former in former_names(model):
            if former.key in settled and state.exists and state.former_name is None:
                settled[model.key] = replace(settled.pop(former.key), table_name=model.table_name)
    return settled


def removed_tables(
    catalog: FakeUnityCatalog, models: Sequence[Table], applied: Applied
) -> dict[QualifiedName, int | None]:
    """Return the tables that were applied, are there and are not declared any more; all have one row."""
    declared = {model.qualified_name.key for model in models}
    declared |= {former.key for model in models for former in former_names(model)}
    gone = [table.qualified_name for key, table in applied.items() if key not in declared]
    return {name: 1 for name in gone if name.key in catalog.tables}


def sync(
    catalog: FakeUnityCatalog,
    models: Sequence[Table],
    applied: Applied = NEVER,
    choose: Choose = min,
    schemas: Schemas = NO_SCHEMAS,
) -> None:
    apply_in_some_order(planned(catalog, models, applied, schemas=schemas), catalog, choose)


def interrupted_sync(
    catalog: FakeUnityCatalog, models: Sequence[Table], applied: Applied, statements: int
) -> TablePlan:
    plan = planned(catalog, models, applied)
    runner = FailingRunner(catalog, statements, is_deadly=True)
    with contextlib.suppress(ApplyFailedError, StatementError):
        ActionRunner(runner, CatalogAddressing(), DATABRICKS, parallelism=1).apply(compiled(plan))
    return plan


def governed_as(model: Table, other: Table) -> Table:
    """Return a model with what another one says of tags, rights, protection and properties."""
    tags = {column.key: column.tags for column in other.columns}
    masks = {column.key: column.mask for column in other.columns if not model.checks}
    names = {column.key for column in model.columns}
    is_fit = other.row_filter is not None and names.issuperset(map(str.lower, other.row_filter.columns))
    return replace(
        model,
        columns=tuple(
            replace(
                column,
                tags=tags.get(column.key, {}),
                mask=_fitting(masks.get(column.key), names, column.mask),
            )
            for column in model.columns
        ),
        tags=other.tags,
        grants=other.grants,
        row_filter=other.row_filter if is_fit and not model.checks else model.row_filter,
        comment=other.comment,
        table_properties=other.table_properties,
    )


def _fitting(mask: ColumnMask | None, names: set[str], otherwise: ColumnMask | None) -> ColumnMask | None:
    return mask if mask and names.issuperset(map(str.lower, mask.using_columns)) else otherwise


def remembered(models: Sequence[Table]) -> Applied:
    """Return models as the deployment state gives them back."""
    return {model.qualified_name.key: as_table(define(model)) for model in models}


def remembered_schemas(schemas: Sequence[Schema]) -> Mapping[str, Recorded[Schema]]:
    """Return schemas as the deployment state gives them back."""
    return records_of(as_plain(define_plain(schema)) for schema in schemas)


def outcome(
    catalog: FakeUnityCatalog,
    models: Sequence[Table],
    applied: Applied,
    choose: Choose = min,
    schemas: Schemas = NO_SCHEMAS,
) -> bool:
    """Bring a catalog to models, unless that is refused; return whether it was done."""
    before = dict(catalog.tables), dict(catalog.schemas)
    try:
        sync(catalog, models, applied, choose, schemas)
    except RefusedError:
        assert (catalog.tables, catalog.schemas) == before
        return False
    done = Schemas(schemas.declared, schemas.declared)
    left = planned(catalog, models, remembered(models), schemas=done)
    assert not left, left
    assert not planned(catalog, models, schemas=Schemas(schemas.declared))
    return True


@st.composite
def schedules(draw: st.DrawFn) -> Choose:
    """Draw who gets on, whenever several steps may."""
    return Choices(draw(st.binary(max_size=100))).one_of


@settings(max_examples=examples(60, 500), deadline=None)
@given(scenarios(), schedules())
def test_a_sync_leaves_nothing_to_do(scenario: Scenario, choose: Choose) -> None:
    catalog, start = FakeUnityCatalog(), scenario.start_schemas
    if outcome(catalog, scenario.start, NEVER, choose, Schemas(start)):
        goal = Schemas(scenario.goal_schemas, start)
        outcome(catalog, scenario.goal, remembered(scenario.start), choose, goal)


@settings(max_examples=examples(60, 500), deadline=None)
@given(key_scenarios(), schedules())
def test_keys_are_never_in_each_others_way(scenario: Scenario, choose: Choose) -> None:
    catalog = FakeUnityCatalog(checks_owners=True)
    if outcome(catalog, scenario.start, NEVER, choose):
        outcome(catalog, scenario.goal, remembered(scenario.start), choose)


@settings(max_examples=examples(25, 100), deadline=None)
@given(scenarios() | key_scenarios(), st.integers(0, 12))
def test_a_run_that_died_anywhere_can_be_followed_by_another(scenario: Scenario, statements: int) -> None:
    catalog = FakeUnityCatalog()
    if not outcome(catalog, scenario.start, NEVER):
        return
    applied = remembered(scenario.start)
    try:
        interrupted_sync(catalog, scenario.goal, applied, statements)
    except RefusedError:
        return
    sync(catalog, scenario.goal, applied)
    assert not planned(catalog, scenario.goal, remembered(scenario.goal))


@settings(max_examples=examples(40, 200), deadline=None)
@given(key_scenarios(), st.integers(0, 30))
def test_what_depends_on_a_failed_statement_waits_with_the_rights_that_it_needs(
    scenario: Scenario, place: int
) -> None:
    """All else is done; nothing is given away that another run has to change or reference."""
    catalog = FakeUnityCatalog(checks_owners=True)
    if not outcome(catalog, scenario.start, NEVER):
        return
    applied = remembered(scenario.start)
    plan = planned(catalog, scenario.goal, applied)
    runner = FailingRunner(catalog, place, is_deadly=False)
    with contextlib.suppress(ApplyFailedError):
        ActionRunner(runner, CatalogAddressing(), DATABRICKS, parallelism=1).apply(compiled(plan))
    sync(catalog, scenario.goal, applied)
    assert not planned(catalog, scenario.goal, remembered(scenario.goal))


@settings(max_examples=examples(25, 100), deadline=None)
@given(scenarios(), st.integers(0, 12))
def test_what_a_run_that_died_anywhere_did_goes_with_its_models(scenario: Scenario, statements: int) -> None:
    """The models are taken back after it: what only they named is gone, and what others did stays."""
    catalog = FakeUnityCatalog()
    start, others = scenario.start, {table.table_name: table for table in scenario.goal}
    goal = [governed_as(table, others.get(table.table_name, table)) for table in start]
    try:
        sync(catalog, start)
        for table in start:
            name = f"`dev`.`silver`.`{table.table_name.lower()}`"
            catalog.run(f"ALTER TABLE {name} SET TAGS ('theirs' = 'x')")
            catalog.run(f"GRANT SELECT ON TABLE {name} TO `them`")
        plan = interrupted_sync(catalog, goal, remembered(start), statements)
        state = deployment_state(*resolved(start))
        attempted = attempted_by(plan, resolved(goal), state.resources)
        tables = {
            key.partition(".")[2]: tuple(kept.model for kept in attempts)
            for key, attempts in attempted.items()
        }
        plan = planned(catalog, start, remembered(start), tables)
    except RefusedError:
        return
    ActionRunner(catalog, CatalogAddressing(), DATABRICKS, parallelism=1).apply(compiled(plan))
    catalog_state = catalog.snapshot(start)
    for table in start:
        state_now = catalog_state.table(table.qualified_name)
        assert dict(state_now.tags) == {**table.tags, "theirs": "x"}
        assert {*state_now.grants} == {*(name for name, held in table.grants.items() if held), "them"}
        assert (state_now.row_filter is None) == (table.row_filter is None)
        masked = {column.key for column in table.columns if column.mask}
        assert {column.key for column in state_now.columns if column.mask} == masked
        tags = {column.key: dict(column.tags) for column in table.columns}
        assert {column.key: dict(column.tags) for column in state_now.columns} == tags
        checks = {check.name.lower() for check in table.checks}
        assert {check.name.lower() for check in state_now.checks} == checks
        assert "a.b" not in state_now.table_properties or "a.b" in table.table_properties


@settings(max_examples=examples(40, 200), deadline=None)
@given(scenarios() | key_scenarios(), schedules())
def test_columns_are_changed_or_held_whoever_owns_the_rest(scenario: Scenario, choose: Choose) -> None:
    catalog = FakeUnityCatalog()
    if outcome(catalog, scenario.start, NEVER, choose):
        present = {table.table_name for table in scenario.start}
        columns_alone = [
            Table(table.catalog_name, table.schema_name, table.table_name, columns, manages=["columns"])
            for table in scenario.goal
            if table.table_name in present
            for columns in [[replace(column, comment="", tags={}, mask=None) for column in table.columns]]
        ]
        outcome(catalog, columns_alone, NEVER, choose)


@settings(max_examples=examples(30, 60), deadline=None)
@given(scenarios())
def test_the_reader_finds_everything_that_is_there(scenario: Scenario) -> None:
    """Through the real queries, descriptions and their parsing, a table is what the catalog knows of it."""
    catalog = FakeUnityCatalog()
    if not outcome(catalog, scenario.start, NEVER):
        return
    reader = UnityCatalogReader(catalog, parallelism=1)
    assert reader.snapshot(scenario.start) == catalog.snapshot(scenario.start)
    assert reader.snapshot_directly(scenario.start) == catalog.snapshot(scenario.start)
