"""Keys of tables, from the views and from descriptions.

Foreign keys can come from schemas that no model names, so the views of keys are read for the whole catalog. The columns
that a foreign key references are matched by position (docs: "KEY_COLUMN_USAGE", `position_in_unique_constraint`),
because constraint names are unique only within a schema.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models import ForeignKey, PrimaryKey, QualifiedName, Reference
from delta_engine.state.unity_catalog import information_schema as views

ConstraintKey = tuple[str, str, str]
"""A constraint's catalog, schema and name in lower case."""

KeyColumns = Mapping[ConstraintKey, Sequence[Row]]
"""The rows of `key_column_usage` by constraint, in the order of the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRows:
    """The rows of one catalog's views about keys.

    Args:
        constraints: the rows of `table_constraints`, by table.
        columns: the rows of `key_column_usage`, including those of other catalogs that keys reference.
        sources: the foreign keys that reference a key, by that key.
        unreadable: why other catalogs are unreadable, by their names in lower case.
    """

    catalog: str
    constraints: Mapping[views.TableKey, Sequence[Row]]
    columns: KeyColumns
    targets: Mapping[ConstraintKey, ConstraintKey]
    sources: Mapping[ConstraintKey, Sequence[ConstraintKey]] = field(default_factory=dict)
    unreadable: Mapping[str, CatalogReadError] = field(default_factory=dict)

    def primary_key(self, table: QualifiedName, spelling: Mapping[str, str]) -> PrimaryKey | None:
        """Return a table's primary key; `spelling` maps lower-case column names, as in the views, to the table's."""
        for constraint in self._of_type(table, "PRIMARY KEY"):
            columns = self._columns(table, constraint)
            return PrimaryKey((_spelled(row, spelling) for row in columns), name=_name(columns[0]))
        return None

    def foreign_keys(self, table: QualifiedName, spelling: Mapping[str, str]) -> tuple[ForeignKey, ...]:
        """Return a table's foreign keys, sorted by name; CatalogReadError if the views hide a referenced column."""
        return tuple(
            self._foreign_key(table, constraint, spelling)
            for constraint in self._of_type(table, "FOREIGN KEY")
        )

    def unique_constraints(self, table: QualifiedName) -> tuple[str, ...]:
        """Return the names of a table's UNIQUE constraints, sorted; `key_column_usage` lacks their columns."""
        return tuple(name for _, _, name in self._of_type(table, "UNIQUE"))

    def referenced_by(self, table: QualifiedName) -> tuple[Reference, ...]:
        """Return the visible foreign keys of other tables that reference this one."""
        references = [
            Reference(table=QualifiedName(catalog, *_table(rows[0])), name=_name(rows[0]))
            for row in self.constraints.get(views.table_key(table.schema, table.table), ())
            for source in self.sources.get(_constraint(self.catalog, row), ())
            for catalog, rows in [(source[0], self.columns.get(source, ()))]
            if rows
        ]
        others = (reference for reference in references if reference.table.key != table.key)
        return tuple(sorted(others, key=lambda reference: (reference.table.key, reference.name)))

    def _of_type(self, table: QualifiedName, kind: str) -> Iterable[ConstraintKey]:
        rows = self.constraints.get(views.table_key(table.schema, table.table), ())
        views.require_whole(views.TABLE_CONSTRAINTS, rows, table)
        return sorted(
            _constraint(self.catalog, row) for row in rows if str(row["constraint_type"]).upper() == kind
        )

    def _columns(self, table: QualifiedName, constraint: ConstraintKey) -> Sequence[Row]:
        columns = self.columns.get(constraint, ())
        if not columns:
            raise _unreadable(table, f"the columns of its key {constraint[2]} are not visible to you")
        views.require_whole(views.KEY_COLUMN_USAGE, columns, table)
        return columns

    def _foreign_key(
        self, table: QualifiedName, constraint: ConstraintKey, spelling: Mapping[str, str]
    ) -> ForeignKey:
        columns = self._columns(table, constraint)
        target = self.targets.get(constraint)
        if target is not None and target[0] in self.unreadable:
            reason = self.unreadable[target[0]].reason
            raise _unreadable(table, f"its foreign key {constraint[2]} points into another catalog: {reason}")
        referenced = self.columns.get(target, ()) if target else ()
        if target is None or not referenced:
            raise _unreadable(table, f"what its foreign key {constraint[2]} points at is not visible to you")
        views.require_whole(views.KEY_COLUMN_USAGE, referenced, table)
        places = {int(str(row["ordinal_position"])): str(row["column_name"]) for row in referenced}
        positions = [row["position_in_unique_constraint"] or row["ordinal_position"] for row in columns]
        if not {int(str(position)) for position in positions} <= places.keys():
            raise _unreadable(
                table, f"its foreign key {constraint[2]} points at columns that are not visible to you"
            )
        return ForeignKey(
            (_spelled(row, spelling) for row in columns),
            QualifiedName(target[0], *_table(referenced[0])),
            (places[int(str(position))] for position in positions),
            name=_name(columns[0]),
        )


def key_rows(
    catalog: str,
    constraints: Mapping[views.TableKey, Sequence[Row]],
    usage: Sequence[Row],
    references: Sequence[Row],
    *,
    tables: Iterable[views.TableKey],
    usage_elsewhere: Callable[[str], Sequence[Row]],
) -> KeyRows:
    """Combine the rows of the three views about keys.

    Args:
        usage: `key_column_usage`.
        references: `referential_constraints`.
        tables: the tables whose foreign keys are followed into other catalogs. Other tables may reference
            catalogs that the principal cannot use.
        usage_elsewhere: returns another catalog's `key_column_usage`; raises `CatalogReadError` if it is unreadable.
    """
    targets = {_constraint(catalog, row): _target(catalog, row) for row in references}
    columns = dict(_by_constraint(catalog, usage))
    unreadable: dict[str, CatalogReadError] = {}
    followed = {_constraint(catalog, row) for table in tables for row in constraints.get(table, ())}
    for other in sorted({targets[key][0] for key in followed & targets.keys()} - {catalog}):
        try:
            columns |= _by_constraint(other, usage_elsewhere(other))
        except CatalogReadError as refusal:
            unreadable[other] = refusal
    sources: dict[ConstraintKey, list[ConstraintKey]] = defaultdict(list)
    for source, target in targets.items():
        sources[target].append(source)
    return KeyRows(
        catalog=catalog,
        constraints=constraints,
        columns=columns,
        targets=targets,
        sources=sources,
        unreadable=unreadable,
    )


def _by_constraint(catalog: str, usage: Sequence[Row]) -> KeyColumns:
    grouped: dict[ConstraintKey, list[Row]] = defaultdict(list)
    for row in usage:
        grouped[_constraint(catalog, row)].append(row)
    for rows in grouped.values():
        rows.sort(key=lambda row: int(str(row["ordinal_position"] or 0)))
    return grouped


def _constraint(catalog: str, row: Row) -> ConstraintKey:
    return catalog, str(row["constraint_schema"]).lower(), str(row["constraint_name"]).lower()


def _target(catalog: str, row: Row) -> ConstraintKey:
    schema = views.spelled(row, "unique_constraint_schema", "unique_constarint_schema")
    where = row.get("unique_constraint_catalog") or catalog
    return str(where).lower(), str(schema).lower(), str(row["unique_constraint_name"]).lower()


def _table(row: Row) -> tuple[str, str]:
    return str(row["table_schema"]), str(row["table_name"])


def _name(row: Row) -> str:
    return str(row["constraint_name"])


def _spelled(row: Row, spelling: Mapping[str, str]) -> str:
    name = str(row["column_name"])
    return spelling.get(name.lower(), name)


def _unreadable(table: QualifiedName, reason: str) -> CatalogReadError:
    return CatalogReadError(
        reason,
        table=str(table),
        way_out="Ask for USE CATALOG, USE SCHEMA and SELECT on the tables that the key connects.",
    )


_IDENT = r"`(?:[^`]|``)+`"
_IDENTS = rf"\(\s*{_IDENT}(?:\s*,\s*{_IDENT})*\s*\)"
_KEY = re.compile(
    rf"\((?P<name>[^`(),]+),\s*(?P<kind>PRIMARY|FOREIGN) KEY\s*(?P<columns>{_IDENTS})"
    rf"(?:\s*REFERENCES\s*(?P<table>{_IDENT}\.{_IDENT}\.{_IDENT})\s*(?P<referenced>{_IDENTS}))?[\w\s]*\)"
)
_BETWEEN = re.compile(r"\[\s*(?:,\s*)*\]")


def described_keys(text: str) -> tuple[PrimaryKey | None, tuple[ForeignKey, ...]] | None:
    """Return the primary key and the foreign keys in a JSON description; None if any part is unknown.

    Databricks Runtime 17.3 and later has them as one text of an undocumented form (source:
    github.com/databricks/dbt-databricks, pull request 1432):

        [(pk,PRIMARY KEY (`id`)), (fk,FOREIGN KEY (`day`) REFERENCES `dev`.`gold`.`days` (`day`))]
    """
    if not _BETWEEN.fullmatch(_KEY.sub("", text).strip() or "[]"):
        return None
    primary_key, foreign_keys = None, []
    for match in _KEY.finditer(text):
        name, columns = match["name"].strip(), _idents(match["columns"])
        if match["kind"] == "PRIMARY":
            primary_key = PrimaryKey(columns, name)
        elif match["table"] is None:
            return None
        else:
            target = QualifiedName(*_idents(match["table"]))
            foreign_keys.append(ForeignKey(columns, target, _idents(match["referenced"]), name))
    by_name = sorted(foreign_keys, key=lambda key: (key.name or "").lower())
    return primary_key, tuple(by_name)


def _idents(text: str) -> list[str]:
    return [name[1:-1].replace("``", "`") for name in re.findall(_IDENT, text)]
