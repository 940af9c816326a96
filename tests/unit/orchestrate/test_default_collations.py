"""New and rewritten tables inherit no collation from their schema: the engine could not read them afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.backends.capabilities import (
    DATABRICKS,
    OPEN_SOURCE,
    OPEN_SOURCE_CATALOG,
    Capabilities,
    on_runtime,
)
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import CatalogReadError
from delta_engine.models import Column
from delta_engine.orchestrate.backend import databricks_backend
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.state.states import ABSENT
from tests.builders.engines import engine_on
from tests.builders.models import catalog_of, orders
from tests.fakes.planning import statements_of
from tests.fakes.unity_catalog import FakeUnityCatalog

CLAUSE = "\nDEFAULT COLLATION UTF8_BINARY"
MODEL = orders(Column("id", "bigint"), Column("day", "date"), Column("name", "string"))
WIDER = replace(MODEL, columns=(*MODEL.columns, Column("s", "struct<a: array<string>>")))
POLICY = Policy(allow=(Allowance(DestructiveKind.REWRITE_TABLE),))


def engine_in(catalog: FakeUnityCatalog, capabilities: Capabilities = DATABRICKS) -> Orchestrator:
    catalog.collations["dev.silver"] = "UTF8_LCASE"
    backend = databricks_backend(catalog, parallelism=1)
    return engine_on(
        backend.reader, catalog, policy=POLICY, capabilities=capabilities, versions=backend.versions
    )


@pytest.mark.parametrize("version", ["16.4.x-scala2.12", "17.3", "client.4.9"])
def test_tables_in_a_schema_with_a_default_collation_stay_readable(version: str) -> None:
    engine = engine_in(FakeUnityCatalog(), on_runtime(version))
    for model in (MODEL, WIDER, replace(WIDER, partitioned_by=("day",))):
        engine.sync_tables([model])
        assert not engine.plan_tables([model])


def test_without_the_clause_a_new_table_is_unreadable() -> None:
    catalog = FakeUnityCatalog()
    engine = engine_in(catalog)
    catalog.run("CREATE TABLE dev.silver.orders (id BIGINT, day DATE, name STRING) USING delta")
    with pytest.raises(CatalogReadError, match="string collate UTF8_LCASE"):
        engine.plan_tables([MODEL])


@pytest.mark.parametrize(
    ("capabilities", "is_sent"),
    [
        (DATABRICKS, True),
        (on_runtime("16.4"), True),
        (on_runtime("client.1.13"), True),
        (on_runtime("16.3"), False),
        (on_runtime(""), False),
        (OPEN_SOURCE, False),
        (OPEN_SOURCE_CATALOG, False),
    ],
)
def test_the_clause_is_sent_where_the_platform_takes_it(capabilities: Capabilities, is_sent: bool) -> None:
    created = TablePlanner().plan([MODEL], catalog_of([MODEL], ABSENT))
    assert all((CLAUSE in sql) is is_sent for sql in statements_of(created, capabilities))
