"""The default rules for models: what may be declared, before anything is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from delta_engine.aspects.clustering import can_cluster
from delta_engine.aspects.table_features import COLUMN_MAPPING_MODE
from delta_engine.constraints.naming import MAX_NAME_LENGTH
from delta_engine.constraints.stored_keys import PROPERTY_PREFIX
from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, Part, Table
from delta_engine.sql import sql_data_type
from delta_engine.state.states import SECRET_KEY
from delta_engine.types import forgotten_clause


class ValidTableNames:
    """Catalog, schema and table names follow Unity Catalog's rules (docs: "Names", object names)."""

    FORBIDDEN = re.compile(r"[\s./`\x00-\x1f\x7f-\x9f]|\$\{")

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse empty and over-long names, and characters that Unity Catalog does not store."""
        for model in models:
            for part, name in (
                ("catalog", model.catalog_name),
                ("schema", model.schema_name),
                ("table", model.table_name),
            ):
                reason = _name_problem(name, self.FORBIDDEN)
                if reason:
                    yield InvalidModelError(
                        f"{part} name {name!r} {reason}",
                        table=str(model.qualified_name),
                        location=model.declared_at,
                        way_out="Use letters, digits and underscores.",
                    )


class UniqueTables:
    """No two models describe one table; names compare as Unity Catalog stores them, in lower case."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse the second and every further model of a table."""
        first: dict[str, Table] = {}
        for model in models:
            earlier = first.setdefault(model.qualified_name.key, model)
            if earlier is not model:
                place = f" at {earlier.declared_at}" if earlier.declared_at else ""
                yield InvalidModelError(
                    f"it is declared twice, first{place}",
                    table=str(model.qualified_name),
                    location=model.declared_at,
                    way_out="Remove one of the two.",
                )


class RenamedTables:
    """A table is renamed within its schema, from a name that no model has, and no two from one."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse `renamed_from` that would move a table, or take another one's."""
        declared = {model.qualified_name.key for model in models}
        taken: dict[str, Table] = {}
        for model in models:
            if model.renamed_from is None:
                continue
            former = replace(model.qualified_name, table=model.renamed_from).key
            reason = ""
            if _name_problem(model.renamed_from, ValidTableNames.FORBIDDEN):
                reason = "is not a table's name in the same schema"
            elif former in declared:
                reason = "is the name of a declared table"
            elif taken.setdefault(former, model) is not model:
                reason = f"is where {taken[former].qualified_name} comes from"
            if reason:
                yield InvalidModelError(
                    f"renamed_from {model.renamed_from!r} {reason}",
                    table=str(model.qualified_name),
                    location=model.declared_at,
                    way_out="Correct it, or leave it out.",
                )


class TablesHaveColumns:
    """A table needs at least one column."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse tables without columns, unless somebody else sees to those."""
        for model in models:
            if not model.columns and model.is_about(Part.COLUMNS):
                yield InvalidModelError(
                    "it has no columns",
                    table=str(model.qualified_name),
                    location=model.declared_at,
                    way_out="Declare at least one.",
                )


class ValidColumnNames:
    """Column names are ones that Delta can store.

    Without column mapping Delta refuses ` ,;{}()=` and white space, as Parquet does; dots and backticks
    are refused with them because readers trip over them.
    """

    _NEVER = re.compile(r"[\x00-\x1f\x7f-\x9f]|\$\{")
    _NEEDS_MAPPING = re.compile(r"[ ,;{}()=.`]")

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse names that cannot be stored, or cannot without column mapping."""
        for model in models:
            mode = model.effective_table_properties.get(COLUMN_MAPPING_MODE, "none")
            for column in model.columns:
                reason, way_out = _name_problem(column.name, self._NEVER), "Rename it."
                if not reason and mode == "none" and self._NEEDS_MAPPING.search(column.name):
                    reason = "has a character that Delta stores only with column mapping"
                    way_out = f"Rename it, or set the property {COLUMN_MAPPING_MODE}: name."
                if reason:
                    yield _column_refusal(model, column, f"its name {reason}", way_out)


class DuplicateColumnNames:
    """Column names are unique without regard to case."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse every column whose name an earlier column has."""
        for model in models:
            seen: set[str] = set()
            for column in model.columns:
                if column.key in seen:
                    yield _column_refusal(
                        model,
                        column,
                        "the table has this column twice (names compare without case)",
                        "Rename or remove one of the two.",
                    )
                seen.add(column.key)


class PrimaryKeyColumnsNotNull:
    """The columns of a primary key exist, once each, and are NOT NULL."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse keys over absent, repeated or nullable columns."""
        for model in models:
            if model.primary_key is None:
                continue
            if not model.primary_key.columns:
                yield InvalidModelError(
                    "its primary key has no columns",
                    table=str(model.qualified_name),
                    location=model.declared_at,
                    way_out="Name them, or leave the key out.",
                )
            missing, nullable = unfit_key_columns(model)
            repeated = [
                name
                for name, count in Counter(map(str.lower, model.primary_key.columns)).items()
                if count > 1
            ]
            for columns, reason, way_out in (
                (missing, "are not columns of the table", "Declare them, or correct the key."),
                (repeated, "stand in it twice", "Name each column once."),
                (nullable, "are nullable", "Declare them with nullable: false (is_nullable=False)."),
            ):
                if columns:
                    yield InvalidModelError(
                        f"primary key columns ({', '.join(columns)}) {reason}",
                        table=str(model.qualified_name),
                        column=columns[0],
                        location=model.declared_at,
                        way_out=way_out,
                    )


class ClusteringColumnsFit:
    """Tables are clustered by at most four columns, which exist, once each, of types that have an order."""

    MOST = 4

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse clustering that the platform would refuse (Databricks documentation, "Use liquid clustering")."""
        for model in models:
            for reason, column, way_out in self._problems(model):
                yield InvalidModelError(
                    reason,
                    table=str(model.qualified_name),
                    column=column,
                    location=model.declared_at,
                    way_out=way_out,
                )

    def _problems(self, model: Table) -> Iterator[tuple[str, str | None, str]]:
        types = {column.key: column.data_type for column in model.columns}
        if len(model.cluster_by) > self.MOST:
            yield f"cluster_by has {len(model.cluster_by)} columns", None, f"Name {self.MOST} at most."
        for place, name in enumerate(model.cluster_by):
            data_type = types.get(name.lower())
            if data_type is None:
                yield "cluster_by names no column of the table", name, "Declare it, or correct cluster_by."
            elif name.lower() in map(str.lower, model.cluster_by[:place]):
                yield "stands in cluster_by twice", name, "Name each column once."
            elif not can_cluster(data_type):
                kind = sql_data_type(data_type)
                yield (
                    f"cannot be clustered by: its type is {kind}",
                    name,
                    "Cluster by numbers, texts or dates.",
                )


class ReadableProperties:
    """Property keys are ones whose value can be read back, and not the engine's own.

    Values of keys that look like secrets or addresses are hidden (`states.SECRET_KEY`): they could never be compared.
    """

    _NO_PROPERTIES = ("clusterbyauto", "clusteringcolumns")

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse keys that Spark redacts and keys under the engine's prefixes."""
        for model in models:
            for key in model.effective_table_properties:
                reason = ""
                if SECRET_KEY.search(key):
                    reason = "cannot be managed: Spark hides the values of such keys"
                elif key.lower() in self._NO_PROPERTIES:
                    reason = "is how clustering is stored, not a property to set"
                elif key.lower().startswith((PROPERTY_PREFIX, "delta.constraints.")):
                    reason = "is how constraints are stored, not a property to set"
                if reason:
                    yield InvalidModelError(
                        f"property {key!r} {reason}",
                        table=str(model.qualified_name),
                        location=model.declared_at,
                        way_out="Rename or remove it. Credentials never belong into a property.",
                    )


class KeepsNestedClauses:
    """NOT NULL and COMMENT on a field inside a column stand only where the platform keeps them."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse what Delta refuses or Spark forgets."""
        for model in models:
            for column in model.columns:
                forgotten = forgotten_clause(column.data_type)
                if forgotten:
                    field, clause = forgotten
                    yield _column_refusal(
                        model,
                        column,
                        f"its field {field} cannot have {clause}: NOT NULL is not kept within arrays and "
                        "maps, and neither it nor COMMENT in a column with char or varchar inside",
                        f"Leave {clause} out there.",
                    )


class DeclaresOnlyWhatItManages:
    """A model that manages some parts of a table declares nothing of the others."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse what would be ignored."""
        for model in models:
            for what, part in _declared_parts(model):
                if not model.is_about(part):
                    yield InvalidModelError(
                        f"it declares {what}, and does not manage {part.value}",
                        table=str(model.qualified_name),
                        location=model.declared_at,
                        way_out=f"Add {part.value} to manages, or leave {what} out.",
                    )


def unfit_key_columns(model: Table) -> tuple[list[str], list[str]]:
    """Return the columns of a model's key that are (missing, nullable)."""
    if model.primary_key is None:
        return [], []
    by_key = {column.key: column for column in model.columns}
    names = model.primary_key.columns
    missing = [name for name in names if name.lower() not in by_key]
    nullable = [name for name in names if name.lower() in by_key and by_key[name.lower()].is_nullable]
    return missing, nullable


def _declared_parts(model: Table) -> Iterator[tuple[str, Part]]:
    """Yield what a model says, and to which part of a table it belongs; the columns themselves belong to many."""
    columns = model.columns
    for what, part, is_declared in (
        ("renamed_from", Part.COLUMNS, model.renamed_from or any(one.renamed_from for one in columns)),
        ("defaults", Part.COLUMNS, any(one.default is not None for one in columns)),
        ("generated columns", Part.COLUMNS, any(one.generated_as or one.identity for one in columns)),
        ("partitioned_by", Part.COLUMNS, model.partitioned_by),
        ("a location", Part.COLUMNS, model.location),
        ("comments", Part.COMMENTS, model.comment or any(one.comment for one in columns)),
        ("properties", Part.PROPERTIES, model.table_properties),
        ("a primary key", Part.CONSTRAINTS, model.primary_key),
        ("foreign keys", Part.CONSTRAINTS, model.foreign_keys),
        ("checks", Part.CONSTRAINTS, model.checks),
        ("clustering", Part.CLUSTERING, model.cluster_by or model.clusters_automatically),
        ("tags", Part.TAGS, model.tags or any(one.tags for one in columns)),
        ("a row filter", Part.ROW_FILTERS, model.row_filter),
        ("column masks", Part.ROW_FILTERS, any(one.mask for one in columns)),
        ("an owner", Part.OWNER, model.owner),
        ("grants", Part.GRANTS, model.grants),
    ):
        if is_declared:
            yield what, part


def forbidden_in_names(name: str) -> str:
    """Return what is wrong with the name of a catalog, schema or table; empty if nothing is."""
    return _name_problem(name, ValidTableNames.FORBIDDEN)


def _name_problem(name: str, forbidden: re.Pattern[str]) -> str:
    if not name:
        return "is empty"
    if len(name) > MAX_NAME_LENGTH:
        return f"is longer than {MAX_NAME_LENGTH} characters"
    found = forbidden.search(name)
    return f"has a character that is not allowed here: {found[0]!r}" if found else ""


def _column_refusal(model: Table, column: Column, reason: str, way_out: str) -> InvalidModelError:
    return InvalidModelError(
        reason,
        table=str(model.qualified_name),
        column=column.name,
        location=column.declared_at or model.declared_at,
        way_out=way_out,
    )
