"""Hypothesis strategies for types, texts and models of one table."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from delta_engine.aspects.clustering import can_cluster
from delta_engine.models import Column, PrimaryKey, Table
from delta_engine.types import (
    ArrayType,
    AtomicType,
    CharacterType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    forgotten_clause,
)

ATOMS = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
]

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30
) | st.sampled_from(
    ["", "it's", "${x}", "$\\{x}", "\\", "\\'", "a\nb\tc\r", "🎉", "'", '"`', "--", "\\n", "%_\\%"]
)

NAMES = ["a", "b", "c", "d", "e", "F", "g_h", "ä"]

names = st.sampled_from(NAMES)


@st.composite
def decimals(draw: st.DrawFn) -> DecimalType:
    """Draw a legal decimal."""
    precision = draw(st.integers(1, 38))
    return DecimalType(precision, draw(st.integers(0, precision)))


scalars: st.SearchStrategy[DataType] = st.one_of(
    st.sampled_from(ATOMS).map(AtomicType),
    decimals(),
    st.builds(CharacterType, st.sampled_from(["char", "varchar"]), st.integers(1, 99)),
)


def _nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = st.lists(
        st.builds(StructField, names, inner, st.booleans(), texts),
        min_size=1,
        max_size=3,
        unique_by=lambda field: field.name.lower(),
    )
    return st.one_of(
        inner.map(ArrayType),
        st.builds(MapType, scalars, inner),
        fields.map(lambda found: StructType(tuple(found))),
    )


data_types: st.SearchStrategy[DataType] = st.recursive(scalars, _nested, max_leaves=5)

property_values = st.sampled_from(["true", "it's", "${x}", "", "a\\b"])

table_properties = st.fixed_dictionaries(
    {},
    optional={
        "a.b": property_values,
        "k'ey": property_values,
        "x${y}": property_values,
        "delta.appendOnly": st.sampled_from(["true", "false"]),
        "delta.logRetentionDuration": st.sampled_from(["interval 7 days", "interval 30 days"]),
    },
)


tag_values = st.sampled_from(["", "it's", "${x}", "a\\b", "yes"])

tags = st.dictionaries(st.sampled_from(["pii", "PII", "cost center", "it's", "ä"]), tag_values, max_size=3)

kept_types = data_types.filter(lambda found: forgotten_clause(found) is None)


@st.composite
def models(
    draw: st.DrawFn, *, types: Mapping[str, DataType] | None = None, is_governed: bool = True
) -> Table:
    """Draw a valid model of dev.silver.orders.

    Args:
        draw: hypothesis's own.
        types: the type of each column by name; any by default.
        is_governed: whether it may have what only Unity Catalog keeps.
    """
    some_tags = tags if is_governed else st.just({})
    columns = []
    for name in draw(st.lists(names, min_size=1, max_size=6, unique_by=str.lower)):
        data_type = types[name] if types else draw(kept_types)
        columns.append(Column(name, data_type, draw(st.booleans()), draw(texts), tags=draw(some_tags)))
    required = [column.name for column in columns if not column.is_nullable]
    clusterable = [column.name for column in columns if can_cluster(column.data_type)]
    key = draw(st.permutations(required))[: len(required) // 2 + 1] if draw(st.booleans()) else []
    return Table(
        "dev",
        "silver",
        "orders",
        columns,
        draw(texts),
        draw(table_properties),
        PrimaryKey(key, draw(st.sampled_from([None, "my_key"]))) if key else None,
        cluster_by=draw(st.permutations(clusterable))[: draw(st.integers(0, 4))],
        tags=draw(some_tags),
    )


@st.composite
def successive_models(draw: st.DrawFn) -> tuple[Table, Table]:
    """Draw two models of one table, for any platform, whose columns of one name have one type."""
    types = {name: draw(kept_types) for name in NAMES}
    return draw(models(types=types, is_governed=False)), draw(models(types=types, is_governed=False))
