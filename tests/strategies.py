"""Hypothesis strategies for types, texts and models of one table."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

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

ATOMS = "boolean tinyint smallint int bigint float double string binary date timestamp timestamp_ntz".split()

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30
) | st.sampled_from(
    ["", "it's", "${x}", "$\\{x}", "\\", "\\'", "a\nb\tc\r", "🎉", "'", '"`', "--", "\\n", "%_\\%"]
)

names = st.sampled_from("a b c d e F g_h ä".split())


@st.composite
def decimals(draw: Callable[..., int]) -> DecimalType:
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


@st.composite
def models(
    draw: Callable[..., object],
    *,
    types: st.SearchStrategy[DataType] = data_types.filter(lambda found: forgotten_clause(found) is None),
) -> Table:
    """Draw a valid model of dev.silver.orders. A column of one name always has one type."""
    columns: list[Column] = draw(  # type: ignore[assignment]
        st.lists(
            st.builds(Column, names, types, st.booleans(), texts),
            min_size=1,
            max_size=6,
            unique_by=lambda column: column.key,
        )
    )
    required = [column.name for column in columns if not column.is_nullable]
    key = draw(st.none() | st.permutations(required).map(lambda found: found[: len(found) // 2 + 1]))
    named = draw(st.sampled_from([None, "my_key"]))
    return Table(
        "dev",
        "silver",
        "orders",
        columns,
        draw(texts),  # type: ignore[arg-type]
        draw(table_properties),  # type: ignore[arg-type]
        PrimaryKey(key, named) if key else None,  # type: ignore[arg-type]
    )
