"""Laws of imports from files: what the engine writes, they read back as what it was written for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import example, given

from delta_engine.models import Column, Table
from delta_engine.models.parts import by_principal, without_implied
from delta_engine.tools.importers.catalog import Catalog, Wanted
from delta_engine.tools.importers.contracts import contract_text
from delta_engine.tools.importers.odcs import read_contract
from delta_engine.tools.importers.scanning import Script, statements
from delta_engine.tools.importers.statements import apply
from tests.builders.deployment import records_of
from tests.builders.strategies import models, reachable, successive_models
from tests.fakes.applying import after, created
from tests.fakes.planning import statements_of
from tests.properties.test_laws import KEY, PLANNER, meaning, nothing


def left_by(scripts: Iterable[str]) -> Table:
    """Return the table that statements leave."""
    catalog = Catalog()
    script = Script("1.sql", ";\n".join(scripts))
    refusals = [str(refusal) for statement in statements(script) for refusal in apply(statement, catalog)]
    assert not refusals, (refusals, script.text)
    (table,) = catalog.models
    assert isinstance(table, Table)
    return table


def rights(table: Table) -> dict[str, frozenset[str]]:
    """Return the privileges that a plan grants."""
    return {name: without_implied(granted) for name, granted in by_principal(table.grants).items()}


@given(models())
def test_the_statements_that_create_a_table_are_read_as_its_model(model: Table) -> None:
    plan = PLANNER.plan([model], nothing())
    table = left_by(statements_of(plan))
    assert meaning(created(table)) == meaning(created(model))
    assert (table.tags, table.owner) == (model.tags, model.owner)
    assert rights(table) == rights(model)
    assert [column.tags for column in table.columns] == [column.tags for column in model.columns]
    assert [bool(column.mask) for column in table.columns] == [bool(column.mask) for column in model.columns]
    assert bool(table.row_filter) == bool(model.row_filter)


@given(successive_models(is_governed=True))
def test_the_statements_of_a_change_are_read_as_the_next_model(both: tuple[Table, Table]) -> None:
    a, b = both[0], reachable(both[1], both[0])
    first = PLANNER.plan([a], nothing())
    state = after(first, nothing())
    second = PLANNER.plan([b], state, records_of([a]))
    end = after(second, state).tables[KEY]
    assert meaning(created(left_by([*statements_of(first), *statements_of(second)]))) == meaning(end)


@given(models())
@example(Table("dev", "silver", "orders", [Column("a", "int", comment="\x85")], "a\u2028\x85 b\u2029"))
def test_a_contract_says_what_both_can_say(model: Table) -> None:
    text, _ = contract_text([model], {model.key: model}, "dev", "1.0.0")
    catalog = Catalog()
    read_contract(text, "1.odcs.yaml", Wanted(environment="dev", with_checks=True), catalog)
    (table,) = catalog.models
    assert isinstance(table, Table)
    for own, other in zip(table.columns, model.columns, strict=True):
        plain = replace(other, default=None, generated_as=None, identity=None, mask=None, declared_at=None)
        assert own == plain
    assert (table.comment, table.tags, table.partitioned_by) == (
        model.comment,
        model.tags,
        model.partitioned_by,
    )
    assert table.primary_key == (replace(model.primary_key, rely=False) if model.primary_key else None)
    assert table.checks == model.checks
