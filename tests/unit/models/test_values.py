"""Values of models in Python: what is natural is taken, and what is wrong is refused at the line that gives it."""

# What these tests give is what types forbid, as callers without a type checker do.
# mypy: disable-error-code="arg-type, list-item"

from collections.abc import Callable
from enum import Enum
from types import MappingProxyType

import pytest

from delta_engine.errors import InvalidModelError
from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    Part,
    PrimaryKey,
    RowFilter,
    Schema,
    Table,
)
from delta_engine.models.parts import to_names
from delta_engine.models.types import AtomicType, DataType, StructField, StructType


class Text(str, Enum):
    """A text that does not print as one."""

    ID = "id"


class NumpyBool:
    """What numpy's booleans are: true, and not True."""

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "np.True_"


def table(**given: object) -> Table:
    values = {"columns": [Column("id", "int")], **given}
    return Table("dev", "silver", "orders", **values)


def column(**given: object) -> Column:
    return Column("id", "int", **given)


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: Column(None, "int"), "name takes a string, not None"),
    (lambda: Column(b"id", "int"), "name takes a string, not b'id'"),
    (lambda: column(comment=None), "comment of 'id' takes a string, not None"),
    (lambda: column(is_nullable="false"), "is_nullable of 'id' takes True or False, not 'false'"),
    (lambda: column(is_nullable=0), "is_nullable of 'id' takes True or False, not 0"),
    (lambda: column(is_nullable=NumpyBool()), "is_nullable of 'id' takes True or False, not np.True_"),
    (lambda: column(default=0), "default of 'id' takes a string, not 0"),
    (lambda: column(generated_as=True), "generated_as of 'id' takes a string, not True"),
    (lambda: column(identity=True), "identity of 'id' takes None or Identity(…), not True"),
    (lambda: column(mask="hide"), "mask of 'id' takes None or ColumnMask(…), not 'hide'"),
    (
        lambda: column(renamed_from=1),
        "renamed_from of 'id' takes a string, or a tuple or list of names, not 1",
    ),
    (
        lambda: column(renamed_fields={"a": 1}),
        "renamed_fields['a'] of 'id' takes a string, or a tuple or list of names, not 1",
    ),
    (lambda: column(tags=["pii"]), "tags takes a mapping of strings, not ['pii']"),
    (lambda: column(tags={"pii": True}), "tags takes strings, not True for 'pii': write 'true'"),
    (lambda: Identity(start=1.5), "start takes an integer, not 1.5"),
    (lambda: Identity(step=True), "step takes an integer, not True"),
    (lambda: Identity(always=None), "always takes True or False, not None"),
    (lambda: CheckConstraint("c", 1), "expression of 'c' takes a string, not 1"),
    (lambda: CheckConstraint(None, "a > 1"), "name takes a string, not None"),
    (lambda: PrimaryKey(["id"], 1), "name takes a string, not 1"),
    (lambda: PrimaryKey(["id"], rely=1), "rely takes True or False, not 1"),
    (lambda: PrimaryKey([Column("id", "int")]), "columns takes a string, not Column(name='id', "),
    (lambda: PrimaryKey({"id"}), "columns takes a tuple or list of names, not {'id'}"),
    (lambda: ForeignKey(["id"], None), "references takes a string, not None"),
    (lambda: ColumnMask(None), "function takes a string, not None"),
    (lambda: RowFilter("f", None), "columns takes a tuple or list of names, not None"),
    (lambda: Table("dev", None, "orders", []), "schema_name of 'orders' takes a string, not None"),
    (lambda: table(columns=Column("id", "int")), "columns of 'orders' takes a list of Columns, not Column("),
    (lambda: table(columns=["id"]), "columns of 'orders' takes Columns, not 'id'"),
    (lambda: table(comment=None), "comment of 'orders' takes a string, not None"),
    (
        lambda: table(table_properties={"delta.appendOnly": True}),
        "table_properties takes strings, not True for 'delta.appendOnly': write 'true'",
    ),
    (lambda: table(table_properties={"a": None}), "table_properties takes strings, not None for 'a'"),
    (lambda: table(table_properties={1: "a"}), "table_properties takes a string, not 1"),
    (
        lambda: table(default_table_properties=None),
        "default_table_properties takes a mapping of strings, not None",
    ),
    (lambda: table(primary_key=True), "primary_key takes a tuple or list of names, not True"),
    (
        lambda: table(foreign_keys=[("id", "customers")]),
        "foreign_keys of 'orders' takes ForeignKeys, not ('id', 'customers')",
    ),
    (
        lambda: table(checks={"positive": "id > 0"}),
        "checks of 'orders' takes a list of CheckConstraints, not {'positive': 'id > 0'}",
    ),
    (lambda: table(cluster_by={"id"}), "cluster_by takes a tuple or list of names, not {'id'}"),
    (lambda: table(clusters_automatically=1), "clusters_automatically takes True or False, not 1"),
    (lambda: table(partitioned_by=[1]), "partitioned_by takes a string, not 1"),
    (lambda: table(tags=None), "tags takes a mapping of strings, not None"),
    (lambda: table(row_filter="f"), "row_filter of 'orders' takes None or RowFilter(…), not 'f'"),
    (lambda: table(owner=7), "owner of 'orders' takes a string, not 7"),
    (lambda: table(grants=["SELECT"]), "grants takes a mapping of privileges by principal, not ['SELECT']"),
    (lambda: table(grants={"a": "SELECT"}), "grants takes a tuple or list of names, not the string 'SELECT'"),
    (lambda: table(grants={None: ["SELECT"]}), "grants takes a string, not None"),
    (lambda: table(grants={"a": [None]}), "grants takes a string, not None"),
    (lambda: table(location=1), "location of 'orders' takes a string, not 1"),
    (
        lambda: table(renamed_from=1),
        "renamed_from of 'orders' takes a string, or a tuple or list of names, not 1",
    ),
    (lambda: table(manages="tags"), "manages takes a tuple or list of parts, not the string 'tags'"),
    (lambda: table(manages=[1]), "manages takes a string, not 1"),
    (lambda: Schema("dev", "silver", 1), "comment of 'silver' takes a string, not 1"),
    (lambda: Schema(None, "silver"), "catalog_name of 'silver' takes a string, not None"),
    (lambda: Schema("dev", "silver", owner=1), "owner of 'silver' takes a string, not 1"),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_value_of_the_wrong_type_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_an_unknown_part_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"^manages knows no part 'colums': write columns, comments, "
    ) as caught:
        table(manages=["colums"])
    assert str(caught.value).endswith("row_filters, grants, owner")


HALVES: list[tuple[Callable[[], object], str]] = [
    (
        lambda: Column("i\ud83d", "int"),
        r"name contains a surrogate (\ud800 to \udfff), which no string may contain: ",
    ),
    (lambda: column(comment="\udfff"), "comment of 'id' contains a surrogate "),
    (lambda: column(tags={"pii": "\ud800"}), "tags contains a surrogate "),
    (lambda: table(table_properties={"\ud800": ""}), "table_properties contains a surrogate "),
    (lambda: table(cluster_by=["\ud800"]), "cluster_by contains a surrogate "),
    (lambda: table(owner="\ud800"), "owner of 'orders' contains a surrogate "),
    (lambda: table(grants={"\ud800": ["SELECT"]}), "grants contains a surrogate "),
    (lambda: Schema("dev", "silver", "\ud800"), "comment of 'silver' contains a surrogate "),
]


@pytest.mark.parametrize(("make", "message"), HALVES, ids=[str(place) for place, _ in enumerate(HALVES)])
def test_half_a_character_is_refused_where_it_is_declared(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match="Write the character itself") as caught:
        make()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "inside",
    [
        "struct<`a\ud83d`: int>",
        "array<struct<a: int COMMENT '\ud83d'>>",
        StructType((StructField("\ud83d", AtomicType("int")),)),
    ],
    ids=["name", "comment", "canonical"],
)
def test_half_a_character_inside_a_type_is_refused_with_table_and_column(inside: DataType | str) -> None:
    with pytest.raises(InvalidModelError, match="contains a surrogate") as caught:
        table(columns=[Column("address", inside)])
    assert (caught.value.table, caught.value.column) == ("dev.silver.orders", "address")


def test_characters_beyond_the_first_plane_are_whole() -> None:
    assert column(comment="🚀 žluť").comment == "🚀 žluť"


def test_what_is_natural_is_taken() -> None:
    made = table(
        columns=(Column(Text.ID, "int", tags=MappingProxyType({"pii": Text.ID})),),
        table_properties=None,
        grants={"a": {"select", "MODIFY"}},
        manages={Part.TAGS, "grants", "columns"},
    )
    assert [type(column.name) for column in made.columns] == [str]
    assert f"{made.columns[0].name} {made.columns[0].tags['pii']}" == "id id"
    assert dict(made.grants) == {"a": ("MODIFY", "SELECT")}
    assert made.manages == frozenset({Part.TAGS, Part.GRANTS, Part.COLUMNS})
    assert to_names("columns", (name for name in ("a", "b"))) == ("a", "b")


def test_columns_of_one_name_share_its_text() -> None:
    first, second = (Column("".join(letters), "bigint") for letters in (["i", "d"], ["i", "d"]))
    assert first.name is second.name
