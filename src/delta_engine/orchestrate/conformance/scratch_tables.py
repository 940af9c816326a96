"""The scratch tables of a run: together they make the engine send every kind of statement that it knows.

Each group stands alone, so that a refusal in one stops none of the others. A test fails while a type of action, a kind
of statement or a feature has no group.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from delta_engine.backends.capabilities import Feature
from delta_engine.models import (
    AUTO,
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    RowFilter,
    Schema,
    Table,
)
from delta_engine.orchestrate.conformance.groups import ID, Group, Step, group, table
from delta_engine.orchestrate.conformance.place import Place
from delta_engine.state.states import TableState

ROW_FUNCTION: Final = "row"
VALUE_FUNCTION: Final = "value"

_AWKWARD: Final = 'It\'s "quoted", has a \\ and `ticks`, Zürich and 東京'
"""A text that a wrong escape changes."""

_EVERY_TYPE: Final = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(38,18)", "string", "varchar(5)",
    "char(3)", "binary", "date", "timestamp", "timestamp_ntz", "array<int>", "map<string,array<date>>",
    "struct<a: int, b: struct<c: string, d: decimal(5,2)>>",
)  # fmt: skip


def groups(place: Place) -> tuple[Group, ...]:
    """Return the groups of a run, in the order in which they run."""
    return (
        _columns(place),
        _column_order(place),
        _fields(place),
        _types(place),
        _every_type(place),
        _nullability(place),
        _defaults(place),
        _computed(place),
        _counted(place),
        _properties(place),
        _keys(place),
        _checks(place),
        _clustering(place),
        _automatic_clustering(place),
        _partitioning(place),
        _tags(place),
        _row_filter(place),
        _mask(place),
        _grants(place),
        _owner(place),
        _part(place),
        _renamed(place),
        _removed(place),
        _external(place),
    )


def schema_steps(place: Place) -> tuple[Schema, ...]:
    """Return what the run's own schema is to be, one step after the other."""
    declared = partial(Schema, place.scratch_schema.catalog, place.scratch_schema.schema)
    return (
        declared(_AWKWARD),
        declared(
            "Changed",
            tags={_tag(place): "1"},
            grants={place.user: ["SELECT", "USE SCHEMA"]},
            owner=place.user,
        ),
        declared("", grants={place.user: ["USE SCHEMA"]}),
    )


def without_owner(state: TableState) -> TableState:
    """Return a state that hides the owner: the engine then gives the table to the principal that has it."""
    return replace(state, owner=None)


def _columns(place: Place) -> Group:
    declared = partial(table, place, "columns")
    b, new = Column("b-c", "string", comment=_AWKWARD, renamed_from="b"), Column("new", "date", comment="New")
    return group(
        "columns",
        (Feature.COLUMNS, Feature.COMMENTS, Feature.COLUMN_RENAMES),
        declared(ID, Column("a", "int"), Column("b", "string"), Column("old", "double"), comment=_AWKWARD),
        declared(ID, Column("a", "int", comment="First"), b, new, comment="Changed"),
        declared(ID, Column("a", "int"), b, new),
    )


def _column_order(place: Place) -> Group:
    a, b, c = (Column(name, "int") for name in "abc")
    declared = partial(table, place, "column_order")
    return group("column order", (Feature.COLUMN_ORDER,), declared(ID, a, b, c), declared(c, ID, b, a))


def _fields(place: Place) -> Group:
    declared = partial(table, place, "fields")
    later = Column(
        "place",
        "struct<code: bigint COMMENT 'Where', no: bigint COMMENT 'Which', city: string, land: string>",
        renamed_fields={"code": "zip"},
    )
    return group(
        "fields",
        (Feature.NESTED_FIELDS, Feature.TYPE_WIDENING),
        declared(ID, Column("place", "struct<zip: int, no: int, city: string NOT NULL, old: string>")),
        declared(ID, later),
    )


def _types(place: Place) -> Group:
    declared = partial(table, place, "types")
    return group(
        "type widening",
        (Feature.TYPE_WIDENING,),
        declared(Column("a", "int"), Column("b", "smallint"), Column("c", "varchar(5)")),
        declared(Column("a", "bigint"), Column("b", "int"), Column("c", "varchar(5)")),
        declared(Column("a", "bigint"), Column("b", "int"), Column("c", "varchar(9)")),
    )


def _every_type(place: Place) -> Group:
    columns = (Column(f"c{number}", spelled) for number, spelled in enumerate(_EVERY_TYPE))
    return group("every type", (Feature.COLUMNS,), table(place, "every_type", *columns))


def _nullability(place: Place) -> Group:
    def declared(*nullable: bool) -> Table:
        columns = (
            Column(name, "int", is_nullable) for name, is_nullable in zip("abcd", nullable, strict=True)
        )
        return table(place, "nullability", *columns)

    return group(
        "NOT NULL",
        (Feature.NOT_NULL,),
        declared(True, True, True, False),
        declared(False, False, True, True),
        declared(True, True, False, True),
    )


def _defaults(place: Place) -> Group:
    declared = partial(table, place, "defaults")
    return group(
        "column defaults",
        (Feature.DEFAULTS,),
        declared(ID, Column("a", "int", default="1"), Column("b", "string", default="'x'")),
        declared(ID, Column("a", "int", default="2"), Column("b", "string", default="'it\\'s'")),
        declared(ID, Column("a", "int"), Column("b", "string")),
    )


def _computed(place: Place) -> Group:
    twice = Column("twice", "bigint", generated_as="id * 2")
    return group("generated columns", (Feature.GENERATED_COLUMNS,), table(place, "generated", ID, twice))


def _counted(place: Place) -> Group:
    counted = Column("n", "bigint", identity=Identity(start=10, step=5))
    return group("identity columns", (Feature.IDENTITY_COLUMNS,), table(place, "identity", ID, counted))


def _properties(place: Place) -> Group:
    declared = partial(table, place, "properties")
    return group(
        "table properties",
        (Feature.PROPERTIES,),
        declared(table_properties={"conformance.one": "1", "conformance.two": _AWKWARD}),
        declared(table_properties={"conformance.two": "2", "delta.enableChangeDataFeed": "true"}),
    )


def _keys(place: Place) -> Group:
    parent, child = partial(table, place, "parent"), partial(table, place, "child")
    columns = (ID, Column("parent_id", "bigint"))
    key = ForeignKey(["parent_id"], str(place.table("parent")))
    return Group(
        name="keys",
        features=(Feature.PRIMARY_KEYS, Feature.FOREIGN_KEYS),
        steps=(
            Step(tables=(parent(primary_key=["id"]), child(*columns, foreign_keys=[key]))),
            Step(tables=(parent(), child(*columns))),
            Step(
                tables=(
                    parent(primary_key=PrimaryKey(["id"], f"conformance_{place.run_id}")),
                    child(*columns, foreign_keys=[key]),
                )
            ),
        ),
    )


def _checks(place: Place) -> Group:
    declared = partial(table, place, "checks")
    return group(
        "CHECK constraints",
        (Feature.CHECKS,),
        declared(checks=[CheckConstraint("positive", "id > 0"), CheckConstraint("small", "id < 9")]),
        declared(checks=[CheckConstraint("positive", "id >= 1")]),
    )


def _clustering(place: Place) -> Group:
    declared = partial(table, place, "clustering", ID, Column("a", "int"))
    return group(
        "liquid clustering",
        (Feature.CLUSTERING,),
        declared(cluster_by=["id"]),
        declared(cluster_by=["a", "id"]),
        declared(),
    )


def _automatic_clustering(place: Place) -> Group:
    declared = partial(table, place, "automatic")
    return group(
        "automatic clustering",
        (Feature.AUTOMATIC_CLUSTERING,),
        declared(cluster_by=AUTO),
        declared(cluster_by=["id"]),
        declared(cluster_by=AUTO),
    )


def _partitioning(place: Place) -> Group:
    declared = partial(table, place, "partitioning")
    return group(
        "partitioning",
        (Feature.PARTITIONING,),
        declared(ID, Column("day", "date"), partitioned_by=["day"]),
        declared(ID, Column("day", "date", comment="When"), partitioned_by=["day"]),
    )


def _tags(place: Place) -> Group:
    declared, key = partial(table, place, "tags"), _tag(place)
    return group(
        "tags",
        (Feature.TAGS,),
        declared(Column("id", "bigint", tags={key: "no"}), tags={key: "one"}),
        declared(Column("id", "bigint", tags={key: "yes"}), tags={key: "two", f"{key}_more": ""}),
        declared(Column("id", "bigint")),
    )


def _row_filter(place: Place) -> Group:
    declared = partial(table, place, "row_filter", ID, Column("a", "bigint"))
    function = str(place.function(ROW_FUNCTION))
    return group(
        "row filters",
        (Feature.ROW_FILTERS,),
        declared(row_filter=RowFilter(function, ["id"])),
        declared(row_filter=RowFilter(function, ["a"])),
        declared(),
        functions=(ROW_FUNCTION,),
    )


def _mask(place: Place) -> Group:
    declared, mask = partial(table, place, "mask"), ColumnMask(str(place.function(VALUE_FUNCTION)))
    return group(
        "column masks",
        (Feature.COLUMN_MASKS,),
        declared(ID, Column("a", "string", mask=mask), Column("b", "string")),
        declared(ID, Column("a", "string"), Column("b", "string", mask=mask)),
        functions=(VALUE_FUNCTION,),
    )


def _grants(place: Place) -> Group:
    declared = partial(table, place, "grants")
    return group(
        "grants",
        (Feature.GRANTS,),
        declared(grants={place.user: ["SELECT"]}),
        declared(grants={place.user: ["MODIFY"]}),
    )


def _owner(place: Place) -> Group:
    model = table(place, "owner", owner=place.user)
    return Group(
        name="owners",
        features=(Feature.OWNERS,),
        steps=(Step(tables=(table(place, "owner"),)), Step(tables=(model,), seen=without_owner)),
    )


def _part(place: Place) -> Group:
    declared = partial(table, place, "part")
    return group(
        "a part of a table",
        (Feature.MANAGED_PARTS,),
        declared(ID, Column("a", "int")),
        declared(ID, Column("a", "void", comment="Theirs"), manages=["comments"]),
    )


def _renamed(place: Place) -> Group:
    former = place.table("former").table
    return group(
        "renamed tables",
        (Feature.TABLE_RENAMES,),
        table(place, "former"),
        table(place, "renamed", renamed_from=former),
    )


def _removed(place: Place) -> Group:
    return Group(
        name="removed tables",
        features=(Feature.TABLE_REMOVAL,),
        steps=(
            Step(tables=(table(place, "removed"),)),
            Step(tables=(), removed=(place.table("removed"),)),
        ),
    )


def _external(place: Place) -> Group:
    lacks = "" if place.external_location else "no location was named: --external-location URL"
    location = place.location("external") if place.external_location else None
    return group(
        "external tables",
        (Feature.EXTERNAL_TABLES,),
        table(place, "external", location=location),
        lacks=lacks,
    )


def _tag(place: Place) -> str:
    return f"conformance_{place.run_id}"
