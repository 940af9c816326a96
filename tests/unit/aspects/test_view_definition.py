"""Views: what CREATE says, what changes in place, and what a changed query sets again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from delta_engine import aspects
from delta_engine.actions import Create, Drop, Hazard
from delta_engine.actions.policy import Ownership, Policy
from delta_engine.aspects.aspect import RenderContext
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.view_definition import AlterViewQuery, SetSchemaMode, SetViewComment, created
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS, OPEN_SOURCE_CATALOG, Capabilities
from delta_engine.models import SchemaMode, View, ViewColumn, ViewName
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.view_states import ViewState, view_state_of

QUERY = "SELECT id AS order_id, name FROM dev.silver.orders"
NAME = ViewName("dev", "gold", "Revenue")


def view(query: str = QUERY, **declared: Any) -> View:
    return View("dev", "gold", "Revenue", query, **declared)


def statements(
    desired: View,
    observed: ViewState,
    *,
    record: View | None = None,
    policy: Policy | None = None,
    capabilities: Capabilities = DATABRICKS,
) -> list[str]:
    comparison = Comparison.of(desired, observed, Recorded.of(record) if record else None, policy or Policy())
    context = RenderContext(desired.qualified_name, CatalogAddressing(), capabilities)
    return [sql for _, sql in aspects.render(aspects.diff(comparison), context)]


def creation(desired: View, capabilities: Capabilities = DATABRICKS) -> list[str]:
    context: Any = RenderContext(desired.qualified_name, CatalogAddressing(), capabilities)
    first = [sql for _, sql in aspects.kind_of(desired).create(desired, context)]
    return [*first, *(sql for _, sql in aspects.render(aspects.after_create(desired), context))]


def test_create_has_all_that_it_can_say() -> None:
    model = view(
        columns=[ViewColumn("NAME", "it's", tags={"pii": "no"})],
        schema_mode="type evolution",
        comment="Revenue",
        tags={"team": "bi"},
        grants={"analysts": ["SELECT"]},
        owner="bi",
    )
    assert creation(model) == [
        "CREATE VIEW `dev`.`gold`.`revenue` (`order_id`, `name` COMMENT 'it\\'s') WITH SCHEMA TYPE EVOLUTION "
        f"COMMENT 'Revenue' AS\n{QUERY}",
        "ALTER VIEW `dev`.`gold`.`revenue` SET TAGS ('team' = 'bi')",
        "ALTER TABLE `dev`.`gold`.`revenue` ALTER COLUMN `NAME` SET TAGS ('pii' = 'no')",
        "GRANT SELECT ON VIEW `dev`.`gold`.`revenue` TO `analysts`",
        "ALTER VIEW `dev`.`gold`.`revenue` OWNER TO `bi`",
    ]


def test_comments_follow_where_a_list_cannot_name_every_column() -> None:
    model = view("SELECT * FROM dev.silver.orders", columns=[ViewColumn("id", "The order")])
    assert creation(model) == [
        "CREATE VIEW `dev`.`gold`.`revenue` AS\nSELECT * FROM dev.silver.orders",
        "COMMENT ON COLUMN `dev`.`gold`.`revenue`.`id` IS 'The order'",
    ]


def test_a_view_as_declared_needs_nothing() -> None:
    model = view(
        columns=[ViewColumn("order_id", "The order", tags={"pii": "no"})],
        tags={"team": "bi"},
        comment="Revenue",
    )
    assert statements(model, view_state_of(model)) == []
    assert statements(model, replace(view_state_of(model), query=f"{QUERY.replace(' ', '   ')}")) == []


def test_a_changed_query_keeps_comments_and_tags() -> None:
    observed = ViewState(
        query=QUERY,
        comment="Revenue",
        tags={"team": "bi", "theirs": "x", "tier": "1"},
        columns=(
            ViewColumn("order_id", "The order", tags={"pii": "no"}),
            ViewColumn("name", "of the customer"),
            ViewColumn("gone", "with the former query"),
        ),
    )
    query = "SELECT id AS order_id, upper(name) AS name, day FROM dev.silver.orders"
    desired = view(
        query,
        comment="Revenue",
        tags={"team": "bi", "tier": "2"},
        columns=[ViewColumn("order_id", "The order"), ViewColumn("day", "When")],
    )
    assert statements(desired, observed) == [
        f"ALTER VIEW `dev`.`gold`.`revenue` AS\n{query}",
        "COMMENT ON TABLE `dev`.`gold`.`revenue` IS 'Revenue'",
        "ALTER VIEW `dev`.`gold`.`revenue` SET TAGS ('team' = 'bi', 'theirs' = 'x')",
        "COMMENT ON COLUMN `dev`.`gold`.`revenue`.`order_id` IS 'The order'",
        "ALTER TABLE `dev`.`gold`.`revenue` ALTER COLUMN `order_id` SET TAGS ('pii' = 'no')",
        "COMMENT ON COLUMN `dev`.`gold`.`revenue`.`name` IS 'of the customer'",
        "ALTER VIEW `dev`.`gold`.`revenue` SET TAGS ('tier' = '2')",
        "COMMENT ON COLUMN `dev`.`gold`.`revenue`.`day` IS 'When'",
    ]


def test_comments_that_no_model_declared_stay() -> None:
    observed = ViewState(query=QUERY, comment="theirs", columns=(ViewColumn("name", "inherited"),))
    assert statements(view(), observed) == []
    assert statements(view(), observed, record=view()) == [
        "COMMENT ON TABLE `dev`.`gold`.`revenue` IS ''"
    ]  # the record knows it without one


def test_what_is_documented_no_more_is_taken_away() -> None:
    before = view(columns=[ViewColumn("order_id", "The order", tags={"pii": "no"})], comment="Revenue")
    assert statements(view(), view_state_of(before), record=before) == [
        "ALTER TABLE `dev`.`gold`.`revenue` ALTER COLUMN `order_id` UNSET TAGS ('pii')",
        "COMMENT ON COLUMN `dev`.`gold`.`revenue`.`order_id` IS ''",
        "COMMENT ON TABLE `dev`.`gold`.`revenue` IS ''",
    ]


def test_full_ownership_of_tags_reaches_columns_that_no_model_documents() -> None:
    observed = ViewState(query=QUERY, columns=(ViewColumn("name", tags={"pii": "yes"}),))
    assert statements(view(), observed, policy=Policy(tags=Ownership.FULL)) == [
        "ALTER TABLE `dev`.`gold`.`revenue` ALTER COLUMN `name` UNSET TAGS ('pii')"
    ]


def test_a_hidden_query_is_unknown() -> None:
    hidden = replace(view_state_of(view()), query=None)
    assert statements(view(), hidden) == []
    assert statements(view(), hidden, record=view()) == []
    changed = view("SELECT 1 AS order_id, 2 AS name")
    assert statements(changed, hidden, record=view()) == [
        "ALTER VIEW `dev`.`gold`.`revenue` AS\nSELECT 1 AS order_id, 2 AS name"
    ]


def test_modes_are_managed_where_a_model_has_one() -> None:
    observed = replace(view_state_of(view()), schema_mode=SchemaMode.BINDING)
    assert statements(view(), observed) == []
    assert statements(view(schema_mode="evolution"), observed) == [
        "ALTER VIEW `dev`.`gold`.`revenue` WITH SCHEMA EVOLUTION"
    ]


def test_a_view_that_evolves_keeps_the_comments_of_what_it_reads() -> None:
    observed = ViewState(
        query=QUERY, schema_mode=SchemaMode.EVOLUTION, columns=(ViewColumn("name", "inherited"),)
    )
    query = f"{QUERY} WHERE id > 0"
    assert statements(view(query, schema_mode="evolution"), observed) == [
        f"ALTER VIEW `dev`.`gold`.`revenue` AS\n{query}"
    ]


def test_a_view_that_stops_evolving_gets_its_comments_although_it_has_inherited_the_same() -> None:
    observed = ViewState(
        query=QUERY, schema_mode=SchemaMode.EVOLUTION, columns=(ViewColumn("name", "A name"),)
    )
    desired = view(schema_mode="compensation", columns=[ViewColumn("name", "A name")])
    assert statements(desired, observed) == [
        "ALTER VIEW `dev`.`gold`.`revenue` WITH SCHEMA COMPENSATION",
        "COMMENT ON COLUMN `dev`.`gold`.`revenue`.`name` IS 'A name'",
    ]


def test_comments_of_a_view_that_evolves_stay_where_the_model_leaves_the_mode() -> None:
    observed = ViewState(
        query=QUERY, schema_mode=SchemaMode.EVOLUTION, columns=(ViewColumn("name", "A name"),)
    )
    assert statements(view(columns=[ViewColumn("name", "A name")]), observed) == []


def test_a_renamed_view_keeps_its_rights() -> None:
    former = ViewName("dev", "gold", "turnover")
    observed = replace(view_state_of(view()), former_name=former)
    assert statements(view(renamed_from="turnover"), observed) == [
        "ALTER VIEW `dev`.`gold`.`turnover` RENAME TO `dev`.`gold`.`revenue`"
    ]


def test_the_session_catalog_takes_other_statements() -> None:
    observed = ViewState(query=QUERY, former_name=ViewName("dev", "gold", "turnover"))
    desired = view(comment="Revenue", columns=[ViewColumn("order_id", "The order")])
    assert statements(desired, observed, capabilities=OPEN_SOURCE_CATALOG) == [
        "ALTER VIEW `dev`.`gold`.`turnover` RENAME TO `gold`.`revenue`",
        "CREATE OR REPLACE VIEW `dev`.`gold`.`revenue` (`order_id` COMMENT 'The order', `name`) COMMENT 'Revenue' "
        f"AS\n{QUERY}",
        "ALTER VIEW `dev`.`gold`.`revenue` SET TBLPROPERTIES ('comment' = 'Revenue')",
    ]


def test_what_create_makes_is_what_it_says() -> None:
    model = view(columns=[ViewColumn("order_id", "The order", tags={"pii": "no"})], comment="Revenue")
    assert created(model) == ViewState(
        query=QUERY, comment="Revenue", columns=(ViewColumn("order_id", "The order"),)
    )


def test_actions_are_no_no_ops() -> None:
    for action in (AlterViewQuery, SetSchemaMode, SetViewComment):
        with pytest.raises(ValueError, match="already"):
            action(*(view(), ViewState(), ()) if action is AlterViewQuery else ("same", "same"))


def test_dropping_breaks_readers_and_creating_is_safe() -> None:
    assert Drop(NAME).hazards == (Hazard.BREAKS_READERS,)
    assert Create(view()).hazards == (Hazard.SAFE,)


def test_the_words_in_which_a_query_was_shown_stay_when_another_part_changes() -> None:
    shown = view("SELECT dev.silver.orders.id FROM dev.silver.orders", comment="old")
    assert aspects.with_definition(view(comment="new"), shown) == replace(shown, comment="new")


def test_the_parts_of_a_new_view_have_the_tags_of_its_columns() -> None:
    columns = [ViewColumn("order_id", "The key", tags={"pii": "no"}), ViewColumn("name", tags={"pii": "yes"})]
    parts = aspects.parts_of_new(view(columns=columns, tags={"domain": "sales"}))
    assert [(part.subject, part.desired) for part in parts if "tag" in part.subject] == [
        ("tag domain", "'sales'"),
        ("column order_id tag pii", "'no'"),
        ("column name tag pii", "'yes'"),
    ]
