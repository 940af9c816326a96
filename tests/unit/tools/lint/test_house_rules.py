"""Each house rule finds what breaks it, and nothing else."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec
import pytest

from delta_engine.config.lint import HOUSE_RULES, Severity, Suppression
from delta_engine.errors import SourceLocation
from delta_engine.models import (
    Column,
    ForeignKey,
    Function,
    Parameter,
    Schema,
    Securable,
    Table,
    View,
    ViewColumn,
)
from delta_engine.tools.lint.house_rules import RULES, HouseRules, options_of, recommended
from delta_engine.tools.lint.linter import lint
from delta_engine.tools.lint.rule import HouseRule
from tests.builders.models import orders

TODAY = date(2026, 7, 1)
ID = Column("id", "bigint", comment="The order")


def customers(*columns: Column, **arguments: Any) -> Table:
    return orders(*columns, name="customers", **arguments)


def view(query: str = "SELECT id FROM dev.silver.orders", **arguments: Any) -> View:
    return View("dev", "gold", arguments.pop("name", "revenue"), query, **arguments)


def function(name: str = "mask", **arguments: Any) -> Function:
    return Function("dev", "silver", name, "string", "v", [Parameter("v", "string")], **arguments)


def broken(rule: str, *models: Securable, **options: Any) -> list[str]:
    """Return what a rule finds, as lines."""
    house = HouseRules((msgspec.convert(options, RULES[rule]),))
    return [f"{each.subject}: {each.message}" for each in lint(models, house, TODAY).findings]


KEYED = customers(Column("id", "int", is_nullable=False), primary_key=["id"])
CHILD = orders(ID, Column("customer_id", "int"))

CASES: dict[str, tuple[str, dict[str, Any], tuple[Securable, ...], tuple[Securable, ...]]] = {
    # case: the rule, its options, models that break it once each, models that keep it
    "a table": ("TableComments", {}, (orders(),), (orders(comment="x"), view())),
    "a blank comment": ("TableComments", {}, (orders(comment="  "),), ()),
    "a short comment": ("TableComments", {"minimum_length": 5}, (orders(comment="abc"),), (orders(comment="abcde"),)),
    "a view": ("ViewComments", {}, (view(),), (view(comment="x"), orders())),
    "a schema": ("SchemaComments", {}, (Schema("dev", "silver"),), (Schema("dev", "gold", comment="x"),)),
    "a function": ("FunctionComments", {}, (function(),), (function(comment="x"),)),
    "a column": (
        "ColumnComments",
        {},
        (orders(Column("a", "int")), view(columns=[ViewColumn("id")])),
        (orders(ID), view(columns=[ViewColumn("id", "x")])),
    ),
    "an owner": ("Owners", {}, (orders(), Schema("dev", "silver")), (orders(owner="x"), function())),
    "another owner": ("Owners", {"allowed": ["team-*"]}, (orders(owner="jo"),), (orders(owner="team-a"),)),
    "a table's name": ("TableNames", {}, (orders(name="Orders"), orders(name="orders-2")), (orders(),)),
    "a prefix in a schema": (
        "TableNames",
        {"in_schemas": {"Silver": "slv_.*"}},
        (orders(),),
        (orders(name="slv_orders"), Table("dev", "gold", "orders", [ID])),
    ),
    "a view's name": ("ViewNames", {}, (view(name="Revenue"),), (view(), orders(name="Orders"))),
    "a function's name": ("FunctionNames", {}, (function("Mask"),), (function(),)),
    "a schema's name": ("SchemaNames", {}, (Schema("dev", "Silver"),), (Schema("dev", "silver"),)),
    "a column's name": ("ColumnNames", {}, (orders(Column("orderId", "int")),), (orders(ID),)),
    "a reserved word": ("ReservedWords", {}, (orders(Column("Order", "int")), orders(name="table")), (orders(ID),)),
    "many columns": (
        "MaximumColumns",
        {"maximum": 2},
        (orders(*(Column(f"c{number}", "int") for number in range(3))),),
        (orders(ID),),
    ),
    "money": (
        "MoneyTypes",
        {},
        (orders(Column("total_price", "double")), customers(Column("tax", "float"))),
        (orders(Column("price", "decimal(18,2)"), Column("priceless", "double"), Column("weight", "double")),),
    ),
    "a time without zone": (
        "TimestampTypes",
        {},
        (orders(Column("at", "timestamp_ntz")), customers(Column("x", "array<struct<a: timestamp_ntz>>"))),
        (orders(Column("at", "timestamp")),),
    ),
    "a time with a zone": (
        "TimestampTypes",
        {"use": "timestamp_ntz"},
        (orders(Column("at", "timestamp")),),
        (orders(Column("at", "timestamp_ntz")),),
    ),
    "a forbidden type": (
        "ForbiddenTypes",
        {"types": {"FLOAT": "use double", "decimal": "no"}},
        (orders(Column("a", "map<string, float>")), customers(Column("b", "decimal(5,2)"))),
        (orders(Column("a", "double")),),
    ),
    "several types": (
        "SameTypes",
        {},
        (orders(Column("ID", "string")),),
        (orders(Column("id", "int"), name="a"), orders(Column("id", "int"), name="b")),
    ),
    "a key": ("PrimaryKeys", {}, (orders(),), (KEYED,)),
    "a late key": (
        "KeyColumnsFirst",
        {},
        (orders(Column("a", "int"), Column("id", "int", is_nullable=False), primary_key=["id"]),),
        (KEYED, orders(ID)),
    ),
    "a reference": (
        "ForeignKeys",
        {},
        (CHILD,),
        (KEYED, orders(ID, name="a"), Table("dev", "gold", "x", [Column("customer_id", "int")])),
    ),
    "a declared reference": (
        "ForeignKeys",
        {},
        (),
        (KEYED, orders(*CHILD.columns, foreign_keys=[ForeignKey(["customer_id"], "dev.silver.customers", ["id"])])),
    ),
    "a fine partition": (
        "Partitions",
        {},
        (orders(Column("at", "timestamp"), ID, partitioned_by=["at"]),),
        (orders(Column("day", "date"), ID, partitioned_by=["day"]),),
    ),
    "a late clustering column": (
        "ClusteringColumns",
        {},
        (orders(*(Column(f"c{number}", "int") for number in range(33)), cluster_by=["c32"]),),
        (orders(*(Column(f"c{number}", "int") for number in range(33)), cluster_by=["c31"]),),
    ),
    "a property": (
        "RequiredProperties",
        {"properties": {"delta.enableChangeDataFeed": "true", "team": ""}},
        (orders(properties={"team": "x"}),),
        (orders(properties={"team": "y", "delta.enableChangeDataFeed": "true"}),),
    ),
    "deprecated features": (
        "DeprecatedFeatures",
        {},
        (
            Table("hive_metastore", "silver", "a", [ID]),
            orders(name="b", location="dbfs:/mnt/b"),
            orders(name="c", properties={"delta.minReaderVersion": "2"}),
        ),
        (orders(location="s3://bucket/a"),),
    ),
    "a tag": (
        "RequiredTags",
        {"tags": {"domain": ["sales"], "team": []}},
        (orders(tags={"domain": "other", "team": "x"}), customers(tags={"team": "x"})),
        (orders(tags={"domain": "sales", "team": "y"}),),
    ),
    "a value of a tag": (
        "TagValues",
        {"tags": {"pii": ["yes", "no"]}},
        (orders(tags={"pii": "maybe"}), customers(Column("a", "int", tags={"pii": ""}))),
        (orders(Column("a", "int", tags={"pii": "yes", "other": "x"})),),
    ),
    "an owner in other letters": ("Owners", {"allowed": ["Team-*"]}, (orders(owner="jo"),), (orders(owner="TEAM-A"),)),
    "a person": (
        "PersonalGrants",
        {"people": ["*@Example.com"], "except_people": ["ADMIN@*"]},
        (orders(grants={"jo@example.com": ["SELECT"]}),),
        (orders(grants={"analysts": ["SELECT"], "admin@example.com": ["SELECT"]}),),
    ),
    "determinism": ("Determinism", {}, (function(),), (function(is_deterministic=True),)),
    "a star": ("ViewStars", {}, (view("SELECT * FROM dev.silver.orders"),), (view(),)),
    "a shared view": (
        "SharedViews",
        {},
        (view(grants={"analysts": ["SELECT"]}),),
        (view(), view(grants={"analysts": ["SELECT"]}, columns=[ViewColumn("id")])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_rule_finds_what_breaks_it(case: str) -> None:
    rule, options, breaking, keeping = CASES[case]
    lines = broken(rule, *keeping, *breaking, **options)
    assert len(lines) == len(breaking), lines
    names = [line.split(":")[0].split(",")[0] for line in lines]
    assert sorted(names) == sorted(f"{each.qualified_name.kind} {each.qualified_name}" for each in breaking)
    assert broken(rule, *keeping, **options) == []


def test_every_rule_has_a_case_and_says_what_it_demands() -> None:
    assert {rule for rule, *_ in CASES.values()} == RULES.keys()
    assert tuple(RULES) == HOUSE_RULES
    assert len(RULES) >= 25
    for rule in RULES.values():
        assert (rule.__doc__ or "").partition("\n")[0].endswith(".")
        documented = (rule.__doc__ or "") + "".join(base.__doc__ or "" for base in rule.__mro__[1:3])
        assert [name for name in options_of(rule) if f"{name}:" not in documented] == []


def test_recommended_rules_find_nothing_wrong_with_a_model_to_show() -> None:
    model = orders(
        Column("order_id", "bigint", is_nullable=False, comment="The order"),
        Column("total", "decimal(18,2)", comment="With taxes"),
        comment="All orders",
        primary_key=["order_id"],
        cluster_by=["order_id"],
        grants={"analysts": ["SELECT"]},
    )
    assert lint([model], recommended(), TODAY).findings == ()


def test_a_rule_judges_what_its_globs_name() -> None:
    models = [orders(name="orders"), orders(name="tmp_orders")]
    assert broken("TableComments", *models, on=["silver.tmp_*"]) == [
        "table dev.silver.tmp_orders: it has no comment"
    ]


def test_the_most_severe_findings_come_first() -> None:
    rules: tuple[HouseRule, ...] = (
        RULES["Owners"](severity=Severity.NOTE),
        RULES["TableComments"](severity=Severity.ERROR),
    )
    report = lint([orders()], HouseRules(rules), TODAY)
    assert [finding.rule for finding in report.findings] == ["TableComments", "Owners"]
    assert report.fails(Severity.ERROR)
    assert not lint([orders()], HouseRules(rules[:1]), TODAY).fails(Severity.WARNING)


def test_suppressed_findings_come_back_after_their_last_day() -> None:
    place = SourceLocation("conf/lint.yml", 3)
    suppression = Suppression(("TableComments",), ("silver.*",), "old tables", TODAY)
    idle = Suppression(("Owners",), ("*",), "none", TODAY)
    rules = (RULES["TableComments"](), RULES["ViewComments"]())
    house = HouseRules(rules, suppressions=((suppression, place), (idle, place)))
    report = lint([orders(), view()], house, TODAY)
    assert ([finding.rule for finding in report.findings], report.suppressed) == (["ViewComments"], 1)
    assert report.notes == ("conf/lint.yml:3: the suppression finds nothing to accept. Remove it.",)
    later = lint([orders(), view()], house, date(2026, 7, 2))
    assert (len(later.findings), later.suppressed) == (2, 0)
    assert later.notes[0] == "conf/lint.yml:3: the suppression ended on 2026-07-01. Remove it, or extend it."
