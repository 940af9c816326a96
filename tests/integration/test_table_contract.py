"""Columns by any change that keeps their data, on real Delta: applied, and nothing left to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_engine.actions.policy import Allowance, ColumnOrder, DestructiveKind, Policy
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import InvalidModelError, StatementError, UnsafePlanError
from delta_engine.models import Column, Table
from delta_engine.orchestrate.backend import Backend
from delta_engine.state.states import TableState
from tests.builders.deployment import deployment_over
from tests.builders.engines import engine_over
from tests.builders.models import ORDERS

ANYTHING = Policy(
    allow=(Allowance(DestructiveKind.DROP_COLUMN), Allowance(DestructiveKind.DROP_CONSTRAINT)),
    column_order=ColumnOrder.ENFORCE,
)


def orders(*columns: Column, **rest: Any) -> Table:
    return Table("dev", "silver", "orders", columns, **rest)


def sync(backend: Backend, model: Table, deployment: Deployment | None = None) -> TableState:
    """Bring the table to a model, see that nothing is left to do, and return what is there.

    Args:
        deployment: remembers what was applied; without it, the engine owns nothing that stands.
    """
    engine = engine_over(backend, deployment, ANYTHING)
    engine.sync_tables([model])
    assert not engine.plan_tables([model])
    return backend.reader.snapshot([model]).table(ORDERS)


def rows(backend: Backend, select: str) -> list[dict[str, object]]:
    """Return what a query finds; `{t}` is the table."""
    answer = backend.runner.run(select.replace("{t}", backend.addressing.table(ORDERS)))
    return [dict(row) for row in answer]


def test_renamed_columns_keep_their_data_keys_checks_and_clustering(backend: Backend) -> None:
    plain = [Column("id", "int"), Column("no te", "string")]
    sync(backend, orders(*plain, table_properties={"delta.columnMapping.mode": "name"}))
    rows(backend, "INSERT INTO {t} VALUES (1, 'x')")
    before = orders(
        *(replace(column, is_nullable=False) for column in plain),
        table_properties={"delta.columnMapping.mode": "name"},
        primary_key=["id"],
        cluster_by=["id"],
    )
    assert set(sync(backend, before).not_null_checks) == {"id", "no te"}
    after = orders(
        Column("order`id", "bigint", is_nullable=False, renamed_from="ID"),
        Column("note", "string", renamed_from="no te"),
        table_properties={"delta.columnMapping.mode": "name"},
        primary_key=["order`id"],
        cluster_by=["order`id"],
    )
    state = sync(backend, after)
    assert state.not_null_checks == ("order`id",)
    assert state.cluster_by == ("order`id",)
    assert state.primary_key is not None
    assert state.primary_key.columns == ("order`id",)
    assert rows(backend, "SELECT * FROM {t}") == [{"order`id": 1, "note": "x"}]
    with pytest.raises(StatementError):
        rows(backend, "INSERT INTO {t} VALUES (NULL, 'x')")


@pytest.mark.long
def test_fields_inside_columns_are_renamed_added_dropped_commented_loosened_and_widened(
    backend: Backend,
) -> None:
    before = orders(
        Column(
            "a", "struct<zip: int, old: string COMMENT 'x', n: int NOT NULL, geo: struct<x: int, gone: int>>"
        ),
        Column("l", "array<struct<sku: string, gone: int>>"),
        Column("m", "map<string, struct<w: float>>"),
        Column("gone", "int"),
    )
    sync(backend, before)
    rows(
        backend,
        "INSERT INTO {t} SELECT named_struct('zip', 1, 'old', 'o', 'n', 2, 'geo', named_struct('x', 3, 'gone', 4)),"
        " array(named_struct('sku', 's', 'gone', 5)), map('k', named_struct('w', CAST(6 AS FLOAT))), 7",
    )
    after = orders(
        Column(
            "address",
            "struct<postcode: bigint COMMENT 'it\\'s', n: int, geo: struct<lon: bigint COMMENT 'E', `new one`: int>, "
            "at: timestamp_ntz>",
            comment="Where",
            renamed_from="a",
            renamed_fields={"postcode": "zip", "geo.lon": "x"},
        ),
        Column("l", "array<struct<sku: string COMMENT 'S', more: struct<q: int>>>"),
        Column("m", "map<string, struct<v: double, u: int>>", renamed_fields={"value.v": "w"}),
        Column("gone_too", "int"),
        table_properties={"delta.columnMapping.mode": "name"},
    )
    sync(backend, after)
    assert rows(backend, "SELECT address.postcode p, address.geo.lon x, l[0].sku s, m['k'].v v FROM {t}") == [
        {"p": 1, "x": 3, "s": "s", "v": 6.0}
    ]


def test_a_name_that_stands_beside_the_former_one_is_refused(backend: Backend) -> None:
    sync(backend, orders(Column("a", "int"), Column("b", "int")))
    with pytest.raises(InvalidModelError, match="it is renamed from a, and the table has both"):
        sync(backend, orders(Column("b", "int", renamed_from="a")))


def test_defaults_are_created_set_changed_and_dropped(backend: Backend, tmp_path: Path) -> None:
    deployment = deployment_over(tmp_path)
    created = orders(Column("a", "int", default="1 + 1"), Column("b", "string", default="'it\\'s'"))
    sync(backend, created, deployment)
    rows(backend, "INSERT INTO {t} VALUES (DEFAULT, DEFAULT)")
    sync(
        backend,
        orders(Column("a", "bigint", default="(7)"), Column("b", "string"), Column("c", "int", default="3")),
        deployment,
    )
    rows(backend, "INSERT INTO {t} VALUES (DEFAULT, DEFAULT, DEFAULT)")
    assert sorted(map(repr, rows(backend, "SELECT * FROM {t}"))) == [
        "{'a': 2, 'b': \"it's\", 'c': None}",
        "{'a': 7, 'b': None, 'c': 3}",
    ]


def test_a_table_without_the_feature_gets_it_with_its_first_default(backend: Backend) -> None:
    sync(backend, orders(Column("a", "timestamp")))
    assert sync(backend, orders(Column("a", "timestamp", default="current_timestamp()"))).columns[0].default


def test_columns_are_moved_with_their_data_and_only_where_the_policy_says_so(backend: Backend) -> None:
    names = ["e", "b", "c", "a", "d"]
    sync(backend, orders(*(Column(name, "string") for name in names)))
    rows(backend, "INSERT INTO {t} VALUES ('e', 'b', 'c', 'a', 'd')")
    wanted = orders(*(Column(name, "string") for name in [*"abcd", "new", "e"]))
    assert [column.name for column in sync(backend, wanted).columns] == [*"abcd", "new", "e"]
    assert rows(backend, "SELECT * FROM {t}") == [
        {"a": "a", "b": "b", "c": "c", "d": "d", "new": None, "e": "e"}
    ]


def test_partitions_are_created_read_back_followed_and_fixed(backend: Backend) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    columns = [Column("id", "int"), Column("# d`ay", "date"), Column("country", "string")]
    table = orders(*columns, comment="a\nb", partitioned_by=["# d`ay", "COUNTRY"], table_properties=mapped)
    state = sync(backend, table)
    assert (state.partitioned_by, state.table_comment) == (("# d`ay", "country"), "a\nb")
    renamed = replace(columns[1], name="on_day", renamed_from=("# d`ay",))
    moved = orders(
        columns[0], renamed, columns[2], partitioned_by=["on_day", "country"], table_properties=mapped
    )
    assert sync(backend, moved).partitioned_by == ("on_day", "country")
    with pytest.raises(
        UnsafePlanError, match="its partitioning would change from \\(on_day, country\\) to none"
    ):
        sync(backend, orders(*moved.columns, table_properties=mapped))
