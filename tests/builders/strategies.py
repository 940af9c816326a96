"""Hypothesis strategies for types, texts and models of one table."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from delta_engine.aspects.clustering import can_cluster
from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    RowFilter,
    Table,
)
from delta_engine.models.constraints import resolved
from delta_engine.models.nested_types import forgotten_clause, has_not_null_field
from delta_engine.models.parts import read_only, to_grants
from delta_engine.models.types import (
    ArrayType,
    AtomicType,
    CharacterType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_engine.sql.text import quote_ident

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
        fields.map(lambda made: StructType(tuple(made))),
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

kept_types = data_types.filter(lambda data_type: forgotten_clause(data_type) is None)

addable_types = kept_types.filter(lambda data_type: not has_not_null_field(data_type))


principals = st.sampled_from(["analysts", "jo@example.com", "it's", "${x}", "4b0f"])

privileges = st.lists(st.sampled_from(["SELECT", "MODIFY", "ALL PRIVILEGES"]), min_size=1, unique=True).map(
    tuple
)

grants = st.dictionaries(principals, privileges, max_size=2)


TAGS = [
    {},
    {},
    {"pii": ""},
    {"PII": "it's", "pii": "yes"},
    {"cost center": "${x}"},
    {"ä": "a\\b", "it's": ""},
]

GRANTS: list[Mapping[str, tuple[str, ...]]] = [
    {},
    {"analysts": ("SELECT",)},
    {"analysts": ("ALL PRIVILEGES", "MODIFY"), "it's": ("APPLY TAG",)},
    {"analysts": ("MODIFY", "SELECT"), "jo@example.com": ("MANAGE",)},
]

A_TEXT = "'it\\'s'"
defaults = st.sampled_from(["NULL", "1 + 1", A_TEXT, "current_date()", "array(1, 2)"])


@st.composite
def laid_out(draw: st.DrawFn, table: Table) -> Table:
    """Draw the same table with one thing of those that Databricks takes in CREATE TABLE, at most."""
    first, *others = table.columns
    fit = [column.name for column in others if can_cluster(column.data_type)]
    match draw(
        st.sampled_from(["", "", "default", "identity", "generated", "automatic", "partition", "location"])
    ):
        case "default":
            default = draw(defaults)
            is_fit = default != A_TEXT or first.data_type == AtomicType("string")
            return _with_first(table, default=default if is_fit else "NULL")
        case "identity" if first.data_type == AtomicType("bigint"):
            return _with_first(table, identity=Identity(draw(st.integers(-9, 9)), draw(st.integers(1, 9))))
        case "generated" if others and others[0].mask is None:  # the platform refuses the two together
            return _with_first(table, generated_as=f"concat({quote_ident(others[0].name)}, 'x')")
        case "automatic":
            return replace(table, cluster_by=(), clusters_automatically=True)
        case "partition" if fit:
            return replace(table, cluster_by=(), partitioned_by=tuple(fit[:2]))
        case "location":
            return replace(table, location="s3://bucket/it's")
    return table


def _with_first(table: Table, **changes: Any) -> Table:
    first, *others = table.columns
    return replace(table, columns=(replace(first, **changes), *others))


@st.composite
def governed(draw: st.DrawFn, table: Table) -> Table:
    """Draw the same table with what only Unity Catalog keeps.

    All of it follows from one number: drawn piece by piece, models would be too large for hypothesis.
    """
    dice = Random(draw(st.integers(0, 10_000)))
    names = [column.name for column in table.columns]

    def function() -> str:
        return dice.choice(["dev.gov.f", "dev.gov.it's", "`$x`.gov.f", "gov.f", "f"])

    def some(among: list[str]) -> list[str]:
        return dice.sample(among, min(len(among), dice.randint(0, 2)))

    def mask(masked: str) -> ColumnMask | None:
        others = names[: names.index(masked)]  # none takes the other: the platform could drop neither column
        if any(quote_ident(masked) in (column.generated_as or "") for column in table.columns):
            return None  # the platform refuses the two together
        return ColumnMask(function(), some(others)) if dice.random() < 0.3 else None

    columns = tuple(
        replace(column, tags=read_only(dice.choice(TAGS)), mask=mask(column.name)) for column in table.columns
    )
    row_filter = RowFilter(function(), some(names)) if dice.random() < 0.5 else None
    is_hidden = row_filter is not None or any(column.mask for column in columns)
    return replace(
        table,
        columns=columns,
        tags=read_only(dice.choice(TAGS)),
        row_filter=row_filter,
        checks=() if is_hidden else table.checks,  # the platform refuses the two together
        owner=dice.choice([None, "data team", "jo@example.com"]),
        grants=to_grants(dice.choice(GRANTS)),
    )


@st.composite
def _checks(draw: st.DrawFn, columns: Sequence[Column]) -> list[CheckConstraint]:
    """Draw conditions that hold for every row, over columns of any type."""
    forms = st.sampled_from(["{0} IS NULL OR {0} IS NOT NULL", "({0} IS NULL) IN (true, FALSE)"])
    names_of_columns = st.sampled_from([quote_ident(column.name) for column in columns])
    names = draw(st.sets(st.sampled_from(["known", "Fine"])))
    return [CheckConstraint(name, draw(forms).format(draw(names_of_columns))) for name in sorted(names)]


@st.composite
def _self_references(draw: st.DrawFn, columns: Sequence[Column], key: Sequence[str]) -> list[ForeignKey]:
    types = {column.name: column.data_type for column in columns}
    others = [
        [column.name for column in columns if column.data_type == types[name] and column.name != name]
        for name in key
    ]
    if not key or not all(others) or draw(st.booleans()):
        return []
    chosen = [draw(st.sampled_from(names)) for names in others]
    return [ForeignKey(chosen, "orders")] if len(set(chosen)) == len(chosen) else []


@st.composite
def models(
    draw: st.DrawFn, *, types: Mapping[str, DataType] | None = None, is_governed: bool = True
) -> Table:
    columns = []
    for name in draw(st.lists(names, min_size=1, max_size=6, unique_by=str.lower)):
        data_type = types[name] if types else draw(kept_types)
        columns.append(Column(name, data_type, draw(st.booleans()), draw(texts)))
    required = [column.name for column in columns if not column.is_nullable]
    clusterable = [column.name for column in columns if can_cluster(column.data_type)]
    key = draw(st.permutations(required))[: len(required) // 2 + 1] if draw(st.booleans()) else []
    table = Table(
        "dev",
        "silver",
        "orders",
        columns,
        draw(texts),
        draw(table_properties),
        PrimaryKey(key, draw(st.sampled_from([None, "my_key"]))) if key else None,
        foreign_keys=draw(_self_references(columns, key)),
        checks=draw(_checks(columns)),
        cluster_by=draw(st.permutations(clusterable))[: draw(st.integers(0, 4))],
    )
    (table,) = resolved([table])
    return draw(governed(draw(laid_out(table)))) if is_governed else table


@st.composite
def successive_models(draw: st.DrawFn, count: int = 2, *, is_governed: bool = False) -> tuple[Table, ...]:
    """Draw models of one table, whose columns of one name have one type; for any platform unless governed."""
    types = {name: draw(addable_types) for name in NAMES}
    drawn = [draw(models(types=types, is_governed=False)) for _ in range(count)]
    return tuple(draw(governed(model)) if is_governed else model for model in drawn)


def reachable(goal: Table, *starts: Table) -> Table:
    """Return a goal as the platform lets tables become it: new columns are nullable, checks and filters are apart."""
    present = set.intersection(*({column.key for column in start.columns} for start in starts))
    columns = tuple(
        replace(column, is_nullable=column.is_nullable or column.key not in present)
        for column in goal.columns
    )
    nullable = {column.key for column in columns if column.is_nullable}
    key = goal.primary_key
    is_legal = key is not None and nullable.isdisjoint(map(str.lower, key.columns))
    goal = replace(
        goal,
        columns=columns,
        primary_key=key if is_legal else None,
        foreign_keys=goal.foreign_keys if is_legal else (),
    )
    if any(start.checks for start in starts):
        return replace(goal, row_filter=None, columns=tuple(replace(column, mask=None) for column in columns))
    is_hidden = any(start.row_filter or any(column.mask for column in start.columns) for start in starts)
    return replace(goal, checks=()) if is_hidden else goal


_ESCAPES = [
    r"\'",
    r"\"",
    r"\\",
    r"\n",
    r"\d",
    r"\%",
    r"\_",
    r"\0",
    r"\x",
    r"\101",
    r"\400",
    r"\u0041",
    r"\u00e9",
]
_LONG_ESCAPES = [r"\U0001F600", r"\ud83d", r"\ude00", "\\\n", "\\u00", "\\U0001F60"]
_INSIDE = [
    "a",
    "s",
    "12",
    "r",
    " ",
    "\n",
    "%",
    "{x}",
    "${x}",
    "$\\{x}",
    "`",
    "--",
    "/*",
    "*/",
    "é",
    "🎉",
    ";",
    ":p",
]


def _quoted(opening: str, fragments: Sequence[str]) -> st.SearchStrategy[str]:
    inside = st.lists(st.sampled_from(fragments), max_size=5).map("".join)
    return inside.map(lambda text: f"{opening}{text}{opening[-1]}")


literals = st.one_of(
    _quoted("'", [*_INSIDE, *_ESCAPES, *_LONG_ESCAPES, "''", '"', '""']),
    _quoted('"', [*_INSIDE, *_ESCAPES, *_LONG_ESCAPES, '""', "'", "''"]),
    *(_quoted(f"{prefix}'", [*_INSIDE, "\\", '"', "\\d"]) for prefix in "rR"),
    *(_quoted(f'{prefix}"', [*_INSIDE, "\\", "'", "\\d"]) for prefix in "rR"),
)
"""String literals of Spark in each form."""

literal_chains = st.tuples(
    literals, st.lists(st.tuples(st.sampled_from(["", " ", "\n\t"]), literals), max_size=2)
).map(lambda chain: chain[0] + "".join(between + literal for between, literal in chain[1]))
"""One to three adjacent literals, which Spark joins."""
