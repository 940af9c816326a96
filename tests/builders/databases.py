"""Random databases: several tables that reference each other, and what they are made to be next.

hypothesis draws one string of bytes for a whole database, for a draw of its own per detail would take longer than
all that is tested with it. Shorter strings and smaller bytes make simpler databases, so examples still shrink.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from hypothesis import strategies as st

from delta_engine.aspects import TABLE_FACETS
from delta_engine.aspects.clustering import can_cluster
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
from delta_engine.models.type_forms import to_data_type

Item = TypeVar("Item")

CATALOG, SCHEMA = "dev", "Silver"
OTHER_SCHEMA = "Gold"
SCHEMA_PRIVILEGES = ("USE SCHEMA", "select", "create_table")
NEW_NAMES = {"customers": "Clients", "Orders": "sales", "items": "lines"}
COLUMNS = ("a", "B", "c d", "é", "f`g", "h.i")
KEYS = ("id", "Id2")
"""Columns that primary keys are over, and that foreign keys point at: of one type, so that any may reference any."""

REFERENCES = ("ref", "ref2")

LADDERS = (
    ("tinyint", "smallint", "int", "bigint"),
    ("decimal(10,2)", "decimal(12,4)", "decimal(20,4)"),
    ("float", "double"),
    ("varchar(5)", "varchar(9)", "string"),
    ("date", "timestamp_ntz"),
    ("boolean",),
    ("binary",),
    ("timestamp",),
    ("array<int>", "array<bigint>"),
    ("struct<x: int, y: array<smallint>>", "struct<x: bigint, y: array<int>>"),
    ("map<string, struct<x: int>>",),
)
"""Types that a column may have one after the other."""

NESTED_LADDERS = (
    (
        "struct<x: int NOT NULL, y: array<smallint> COMMENT 'it\\'s'>",
        "struct<x: int, y: array<int>, `z z`: struct<q: double> COMMENT 'q'>",
        "struct<y: array<smallint> COMMENT '', x: bigint NOT NULL COMMENT '${x}'>",
        "struct<`x 2`: bigint, new: string>",
    ),
    (
        "array<struct<x: int, y: struct<q: date, r: float>>>",
        "array<struct<y: struct<r: double COMMENT 'r', s: map<string, int>>>>",
        "array<struct<z: int COMMENT 'x', y: struct<q: date, `r 2`: float>, w: string>>",
    ),
    (
        "map<string, struct<x: int>>",
        "map<string, struct<x: int, y: variant>>",
        "map<string, struct<X: bigint COMMENT 'x'>>",
    ),
)
"""Types whose insides change field by field."""

FORMER_FIELDS = {
    NESTED_LADDERS[0][3]: {"x 2": ("x",)},
    NESTED_LADDERS[1][2]: {"element.y.r 2": ("r",)},
}

CONDITIONS = (
    "`{0}` IS NOT NULL OR TRUE",
    "{0} is not null or true",  # means the same
    "coalesce(`{0}`, 1) > 0",
    "`{0}` <> 7 AND NOT `{0}` = 8",
    "({0} != 7) and (not {0} = 8)",  # means the same
)
DEFAULTS = ("7", "0 + 1", "cast(1 AS bigint)")
IDENTITY = Identity(start=1, step=2, always=False)
FUNCTIONS = ("dev.silver.f", "dev.silver.G")
PRINCIPALS = ("ann@example.com", "the team", "it's `odd`")
WORDS = ("", "key", "it's", "a\\b\n`c`, ${x} -- d", "🎉")
PROPERTIES: tuple[dict[str, str], ...] = (
    {},
    {"a.b": "it's", "k'ey": "${x}"},
    {"a.b": "true", "delta.appendOnly": "TRUE"},
    {"delta.appendOnly": "false", "delta.logRetentionDuration": "interval 7 days"},
    {"delta.enableTypeWidening": "true", "delta.enableChangeDataFeed": "true"},
)
TAGS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"pii": "yes"},
    {"pii": "no", "it's": "${x}"},
    {"cost center": ""},
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a database is made to be, and what it is made to be next; schemas are not always declared."""

    start: tuple[Table, ...]
    goal: tuple[Table, ...]
    start_schemas: tuple[Schema, ...] = ()
    goal_schemas: tuple[Schema, ...] = ()


class Choices:
    """Makes choices out of bytes; the first of everything when there are none left."""

    def __init__(self, material: bytes) -> None:
        self._material = iter(material)

    def one_of(self, items: Sequence[Item]) -> Item:
        """Choose an item."""
        return items[next(self._material, 0) % len(items)]

    def flag(self) -> bool:
        """Choose between no and yes."""
        return self.one_of((False, True))

    def rarely(self, times: int) -> bool:
        """Choose yes once in so many times."""
        return self.one_of(range(times)) == times - 1

    def some(self, items: Iterable[Item]) -> list[Item]:
        """Choose items."""
        return [item for item in items if self.flag()]

    def shuffled(self, items: Iterable[Item]) -> list[Item]:
        """Choose an order."""
        left, order = list(items), []
        while left:
            order.append(left.pop(self.one_of(range(len(left)))))
        return order


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Draw two versions of a database whose columns of one name have types of one ladder."""
    choices = Choices(draw(st.binary(max_size=1200)) + draw(st.binary(min_size=400, max_size=400)))
    names = choices.some(NEW_NAMES) or ["items"]
    all_ladders = (*LADDERS, *NESTED_LADDERS, *NESTED_LADDERS)
    ladders = {name: choices.one_of(all_ladders) for name in COLUMNS}
    first = {name: ladder[0] for name, ladder in ladders.items()}
    start = [_with_what_stays(choices, _table(choices, name, first)) for name in names]
    types = {name: choices.one_of(ladder) for name, ladder in ladders.items()}
    goal = [
        _after(choices, table, _table(choices, table.table_name, types), ladders)
        for table in start
        if not choices.rarely(6)
    ]
    return Scenario(
        _referencing(choices, start),
        _referencing(choices, goal),
        declared_schemas(choices),
        declared_schemas(choices),
    )


def declared_schemas(choices: Choices) -> tuple[Schema, ...]:
    """Return schemas: that of the tables, and one that nobody made."""
    return tuple(
        Schema(
            CATALOG,
            name,
            choices.one_of((None, *WORDS)),
            tags=choices.one_of(TAGS),
            owner=choices.one_of((None, *PRINCIPALS)),
            grants={principal: choices.some(SCHEMA_PRIVILEGES) for principal in choices.some(PRINCIPALS)},
        )
        for name in choices.some((SCHEMA, OTHER_SCHEMA))
    )


def _table(choices: Choices, name: str, types: Mapping[str, str]) -> Table:
    wanted = {**dict.fromkeys((*KEYS, *REFERENCES), "bigint"), **types}
    columns = [_column(choices, name, wanted[name]) for name in choices.shuffled(choices.some(wanted))]
    is_protected = choices.flag()  # row filters and masks cannot be together with checks
    if is_protected:
        columns = [_masked(choices, column, columns) for column in columns]
    columns = columns or [Column("only", "string")]
    required = [column.name for column in columns if column.name in KEYS and not column.is_nullable]
    return Table(
        CATALOG,
        SCHEMA,
        name,
        columns,
        choices.one_of(WORDS),
        {**choices.one_of(PROPERTIES), "delta.columnMapping.mode": "name"},
        _primary_key(choices, name, required),
        cluster_by=_clustering(choices, columns),
        tags=choices.one_of(TAGS),
        checks=_checks(choices, columns) if not is_protected else (),
        row_filter=_row_filter(choices, columns) if is_protected else None,
        owner=choices.one_of((None, *PRINCIPALS)),
        **{
            facet.attribute: choices.one_of((facet.absent, *facet.form.choices))
            for facet in TABLE_FACETS
            if facet.form.choices
        },
        grants=_grants(choices),
    )


def _with_what_stays(choices: Choices, table: Table) -> Table:
    """Return a new table with what can be said at creation only."""
    columns = list(table.columns)
    if choices.rarely(3) and any(column.name == "id" for column in columns):
        columns.append(Column("twice", "bigint", generated_as="`id` * 2", comment=choices.one_of(WORDS)))
    if choices.rarely(3):
        columns.append(Column("no", "bigint", identity=choices.one_of((Identity(), IDENTITY))))
    if choices.rarely(3) and not table.clusters_automatically:
        fit = [column.name for column in columns if column.name in REFERENCES]
        return replace(table, columns=tuple(columns), partitioned_by=tuple(fit), cluster_by=())
    return replace(table, columns=tuple(columns))


def _staying(start: Table) -> list[Column]:
    """Return the columns that a table cannot do without any more."""
    needed = {*start.partitioned_by, *("id" for column in start.columns if column.generated_as)}
    return [
        column for column in start.columns if column.name in needed or column.generated_as or column.identity
    ]


def _column(choices: Choices, name: str, data_type: str) -> Column:
    return Column(
        name,
        data_type,
        choices.flag(),
        choices.one_of(WORDS),
        tags=choices.one_of(TAGS),
        renamed_fields=FORMER_FIELDS.get(data_type, {}),
        default=choices.one_of((None, *DEFAULTS)) if name in REFERENCES else None,
    )


def _masked(choices: Choices, column: Column, columns: Sequence[Column]) -> Column:
    if column.name not in COLUMNS or not choices.rarely(4):
        return column
    others = [column.name for column in columns if column.name not in COLUMNS]
    return replace(column, mask=ColumnMask(choices.one_of(FUNCTIONS), choices.some(others)[:2]))


def _clustering(choices: Choices, columns: Sequence[Column]) -> Sequence[str]:
    if choices.rarely(6):
        return AUTO
    fit = [column.name for column in columns if can_cluster(column.data_type) and "." not in column.name]
    return choices.shuffled(choices.some(fit))[:4] if choices.flag() else ()


def _primary_key(choices: Choices, table: str, columns: Sequence[str]) -> PrimaryKey | None:
    if not columns or not choices.flag():
        return None
    name = choices.one_of((None, f"{table}_Key"))
    return PrimaryKey(choices.shuffled(columns), name, choices.flag())


def _checks(choices: Choices, columns: Sequence[Column]) -> list[CheckConstraint]:
    numbers = [column.name for column in columns if column.name in (*KEYS, *REFERENCES)]
    return [
        CheckConstraint(name, choices.one_of(CONDITIONS).format(choices.one_of(numbers)))
        for name in choices.some(("Check_1", "check_2"))
        if numbers
    ]


def _row_filter(choices: Choices, columns: Sequence[Column]) -> RowFilter | None:
    if not choices.rarely(3):
        return None
    return RowFilter(choices.one_of(FUNCTIONS), choices.some([column.name for column in columns])[:2])


def _grants(choices: Choices) -> dict[str, list[str]]:
    return {principal: choices.some(("SELECT", "modify")) for principal in choices.some(PRINCIPALS)}


def _after(choices: Choices, start: Table, goal: Table, ladders: Mapping[str, Sequence[str]]) -> Table:
    """Return a goal that can be reached, mostly: new columns are nullable, or former ones under another name."""
    if choices.rarely(10):
        return goal
    present = {column.key for column in start.columns}
    columns = [
        column if column.key in present else replace(column, is_nullable=True) for column in goal.columns
    ]
    columns = _renamed(choices, columns, start, ladders)
    kept = _staying(start)
    columns = [*kept, *(column for column in columns if column.key not in {other.key for other in kept})]
    nullable = {column.key for column in columns if column.is_nullable}
    key = goal.primary_key
    is_legal = key and not nullable & {name.lower() for name in key.columns}
    fit = {column.name for column in columns if can_cluster(column.data_type) and not start.partitioned_by}
    goal = replace(
        goal,
        columns=tuple(columns),
        primary_key=key if is_legal else None,
        cluster_by=tuple(name for name in goal.cluster_by if name in fit),
        clusters_automatically=goal.clusters_automatically and not start.partitioned_by,
        partitioned_by=start.partitioned_by,
    )
    if choices.rarely(6):
        return replace(goal, table_name=NEW_NAMES[goal.table_name], renamed_from=(goal.table_name,))
    return goal


def _renamed(
    choices: Choices, columns: Sequence[Column], start: Table, ladders: Mapping[str, Sequence[str]]
) -> list[Column]:
    """Let some of the new columns be former ones under another name."""
    wanted, present = {column.key for column in columns}, {column.key for column in start.columns}
    gone = [column for column in start.columns if column.key not in wanted and column.name in ladders]
    all_columns = []
    for column in columns:
        if column.key not in present and column.name in ladders and gone and choices.flag():
            former = gone.pop()
            text = choices.one_of(ladders[former.name])
            fields = FORMER_FIELDS.get(text, {})
            renamed = replace(
                column, data_type=to_data_type(text), renamed_from=(former.name,), renamed_fields=fields
            )
            all_columns.append(renamed)
        else:
            all_columns.append(column)
    return all_columns


def _referencing(choices: Choices, tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return tables with foreign keys between them, and on themselves."""
    return tuple(
        replace(table, foreign_keys=tuple(_foreign_keys(choices, table, tables))) for table in tables
    )


def _foreign_keys(choices: Choices, table: Table, others: Sequence[Table]) -> Iterable[ForeignKey]:
    present = [column.name for column in table.columns if column.name in (*KEYS, *REFERENCES)]
    for parent in choices.some(others):
        key = parent.primary_key
        if key is not None and len(present) >= len(key.columns):
            columns = choices.shuffled(present)[: len(key.columns)]
            name = choices.one_of((None, f"{table.table_name}_To_{parent.table_name}"))
            referenced = choices.one_of(((), key.columns))
            yield ForeignKey(columns, parent.table_name, referenced, name, choices.flag())
