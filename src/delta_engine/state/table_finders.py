"""Finds the tables that exist: folders with a Delta log, or tables of Spark's catalogs."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.spark_catalogs import catalog_way_out
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import (
    QualifiedName,
    SchemaName,
    ViewName,
)
from delta_engine.models.functions import FunctionName
from delta_engine.sql.queries import (
    sql_show_schemas,
    sql_show_tables,
    sql_show_views,
)
from delta_engine.state import interpretation
from delta_engine.state.audits import NO_AUDIT, Audit
from delta_engine.telemetry.visible import has_half_a_character

_SESSION_CATALOG: Final = "spark_catalog"
_NOTHING_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
"""Why a path leads nowhere. No folder has a name that the file system refuses as too long."""

SchemaPair: TypeAlias = tuple[str, str]
"""A catalog and a schema, in lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTables:
    """The tables in some schemas.

    Args:
        existing: the requested tables that exist, in their order.
        others: all other tables, sorted by name.
        refusals: why some requested tables cannot be addressed.
        audits: of all these tables, by `QualifiedName.key`.
    """

    existing: tuple[QualifiedName, ...]
    others: tuple[QualifiedName, ...]
    refusals: tuple[CatalogReadError, ...] = ()
    audits: Mapping[str, Audit] = field(default_factory=dict, compare=False)


class FolderFinder:
    """Finds tables by path: a table is a folder with a Delta log, a schema is a folder."""

    def __init__(self, addressing: PathAddressing) -> None:
        self._addressing = addressing

    def missing_schemas(self, schemas: set[SchemaPair]) -> Mapping[SchemaPair, str | None]:
        """Return the pairs that have no folder; see `_missing`."""
        absent = set()
        for catalog, schema in schemas:
            folder = self._addressing.warehouse / catalog / schema
            with _listing(f"schema {catalog}.{schema}", folder):
                if not _is_folder(folder):
                    absent.add((catalog, schema))
        return _missing(absent, self.schemas)

    def schemas(self, catalog: str) -> set[str]:
        """Return the folders in a catalog's folder that can be schemas; see `_can_be_a_name`."""
        folder = self._addressing.warehouse / catalog
        with _listing(f"catalog {catalog}", folder):
            if not _is_folder(folder):
                return set()
            return {path.name for path in folder.iterdir() if _can_be_a_name(path.name) and path.is_dir()}

    def find(self, tables: Sequence[QualifiedName]) -> FoundTables:
        """Return the folders that have a Delta log, and refusals of folders with other content."""
        existing: list[QualifiedName] = []
        refusals: list[CatalogReadError] = []
        for table in tables:
            try:
                if self._exists(table, self._addressing.folder(table)):
                    existing.append(table)
            except CatalogReadError as refusal:
                refusals.append(refusal)
            except OSError as error:
                refusals.append(_unreadable_folder(table, error))
        found_tables = _found(tables, existing, self.listed({schema_of(table) for table in tables}))
        addressed = (*found_tables.existing, *found_tables.others)
        return replace(
            found_tables,
            refusals=(*refusals, *found_tables.refusals),
            audits={table.key: _audit(self._addressing.folder(table)) for table in addressed},
        )

    def listed(self, schemas: set[tuple[str, str]]) -> list[QualifiedName]:
        """Return the folders that may be tables; see `_can_be_a_name`."""
        return [
            QualifiedName(catalog, schema, folder.name)
            for catalog, schema in sorted(schemas)
            for folder in self._folders(catalog, schema)
            if _can_be_a_name(folder.name) and _may_be_a_table(folder)
        ]

    def views(self, _schemas: set[SchemaPair]) -> list[ViewName]:
        """Return nothing: no folder is a view."""
        return []

    def _folders(self, catalog: str, schema: str) -> list[Path]:
        folder = self._addressing.warehouse / catalog / schema
        with _listing(f"schema {catalog}.{schema}", folder):
            return sorted(folder.iterdir())

    def _exists(self, table: QualifiedName, folder: Path) -> bool:
        if _has_delta_log(folder):
            return True
        if occupant := _occupant(folder):
            raise interpretation.not_a_delta_table(table, f"{occupant} ({folder})")
        return False


class CatalogFinder:
    """Finds tables by name: one listing per schema.

    Tables are addressed in lower case, and some catalogs are case-sensitive: the engine cannot manage a table there
    that another tool named with upper-case letters.
    """

    def __init__(self, runner: SqlRunner, classes: Mapping[str, str] = MappingProxyType({})) -> None:
        self._runner = runner
        self._classes = classes

    def missing_schemas(self, schemas: set[SchemaPair]) -> Mapping[SchemaPair, str | None]:
        """Return the pairs that their catalog does not list; see `_missing`."""
        return _missing(schemas, self.schemas)

    def schemas(self, catalog: str) -> set[str]:
        """Return the schemas that a catalog lists."""
        return interpretation.listed_schemas(
            self._list(sql_show_schemas(catalog), catalog, f"catalog {catalog!r}")
        )

    def find(self, tables: Sequence[QualifiedName]) -> FoundTables:
        """Return the listed tables of any format; the others without those that cannot be addressed."""
        listed = self.listed({schema_of(table) for table in tables})
        present = {name.key for name in listed if str(name) == name.key}
        return _found(tables, [table for table in tables if table.key in present], listed)

    def listed(self, schemas: set[tuple[str, str]]) -> list[QualifiedName]:
        """Return the listed tables of any format, spelled as in the catalog."""
        return [
            QualifiedName(catalog, schema, interpretation.unquoted(str(row["tableName"])))
            for catalog, schema in sorted(schemas)
            for row in self._list(sql_show_tables(catalog, schema), catalog, f"schema {catalog}.{schema}")
            if row["namespace"]  # temporary views have no schema
        ]

    def views(self, schemas: set[SchemaPair]) -> list[ViewName]:
        """Return the views of schemas of Spark's session catalog, which alone has views; `listed` has them, too."""
        return [
            ViewName(catalog, schema, interpretation.unquoted(str(row["viewName"])))
            for catalog, schema in sorted(schemas)
            if catalog == _SESSION_CATALOG
            for row in self._list(sql_show_views(catalog, schema), catalog, f"schema {catalog}.{schema}")
            if not row["isTemporary"]
        ]

    def _list(self, sql: str, catalog: str, listed: str) -> Sequence[Mapping[str, object]]:
        try:
            return self._runner.run(sql)
        except StatementError as error:
            raise CatalogReadError(
                f"{listed} cannot be listed: {error.first_line}",
                way_out=catalog_way_out(error, catalog, self._classes.get(catalog.lower())),
            ) from error


def schema_of(name: QualifiedName | SchemaName | FunctionName | ViewName) -> SchemaPair:
    """Return the catalog and the schema of a name."""
    return name.catalog.lower(), name.schema.lower()


def _found(
    requested: Sequence[QualifiedName], existing: Sequence[QualifiedName], listed: Sequence[QualifiedName]
) -> FoundTables:
    """Return wanted tables that exist, other listed ones, and refusals of wanted ones that are spelled otherwise."""
    requested_keys, present = ({table.key for table in tables} for tables in (requested, existing))
    odd = {name.key: name for name in listed if str(name) != name.key}
    hidden = [table for table in requested if table.key in odd and table.key not in present]
    others = [name for name in listed if str(name) == name.key and name.key not in requested_keys]
    return FoundTables(
        existing=tuple(existing),
        others=tuple(sorted(others, key=str)),
        refusals=tuple(_spelled_otherwise(table, odd[table.key]) for table in hidden),
    )


def _missing(
    schemas: set[SchemaPair], list_schemas: Callable[[str], set[str]]
) -> Mapping[SchemaPair, str | None]:
    """Return the schemas that no catalog lists, each with the spelling under which it lists one, if it does.

    Some catalogs, such as open-source Unity Catalog, are case-sensitive: a second schema in lower case would be a twin.
    """
    listed = {catalog: list_schemas(catalog) for catalog in {catalog for catalog, _ in schemas}}
    absent = sorted(pair for pair in schemas if pair[1] not in listed[pair[0]])
    return {
        (catalog, schema): min((name for name in listed[catalog] if name.lower() == schema), default=None)
        for catalog, schema in absent
    }


def _spelled_otherwise(table: QualifiedName, listed: QualifiedName) -> CatalogReadError:
    return CatalogReadError(
        f"it exists as {listed.table!r}, and tables are addressed in lower case",
        table=str(table),
        way_out="Rename it, or remove its model.",
    )


@contextmanager
def _listing(listed: str, folder: Path) -> Iterator[None]:
    """Refuse a schema or catalog whose folder cannot be listed."""
    try:
        yield
    except OSError as error:
        raise CatalogReadError(
            f"{listed} cannot be listed: {error.strerror} ({folder})",
            way_out="Restore the folder, or the permission to read it.",
        ) from error


def _can_be_a_name(name: str) -> bool:
    """Whether a folder can be a table or schema: its name is in UTF-8 and has no dot (`orders.bak` is a copy)."""
    return "." not in name and not has_half_a_character(name)


def _has_delta_log(folder: Path) -> bool:
    """Whether a folder has a Delta log; OSError if it cannot be read. `Path.glob` would hide that."""
    try:
        with os.scandir(folder / "_delta_log") as files:
            return any(file.name.endswith(".json") for file in files)
    except OSError as error:
        if error.errno not in _NOTHING_THERE:
            raise
        return False


def _is_folder(folder: Path) -> bool:
    """Whether a folder exists; OSError if that cannot be read."""
    try:
        return stat.S_ISDIR(folder.stat().st_mode)
    except OSError as error:
        if error.errno not in _NOTHING_THERE:
            raise
        return False


def _occupant(folder: Path) -> str:
    """Return what is in the place of a table without a log; empty if CREATE TABLE can make the table there."""
    if _is_folder(folder):
        log = folder / "_delta_log"
        if log.exists() and not log.is_dir():
            return "a folder whose _delta_log is a file"
        return "a folder of other files" if any(path != log for path in folder.iterdir()) else ""
    if not os.path.lexists(folder):
        return ""
    return "a file" if folder.exists() else f"a link to {folder.readlink()}, which does not exist"


def _may_be_a_table(folder: Path) -> bool:
    """Whether a folder has a Delta log, or cannot be read: a later read refuses that table by its name."""
    try:
        return _has_delta_log(folder)
    except OSError:
        return True


def _unreadable_folder(table: QualifiedName, error: OSError) -> CatalogReadError:
    return CatalogReadError(
        f"its folder cannot be read: {error.strerror} ({error.filename})",
        table=str(table),
        way_out="Restore the permission to read it.",
    )


def _audit(folder: Path) -> Audit:
    """Return the time of a table's first commit, which Delta removes after the log's retention time."""
    try:
        seconds = (folder / "_delta_log" / "00000000000000000000.json").stat().st_mtime
    except OSError:
        return NO_AUDIT
    return Audit(created_at=datetime.fromtimestamp(seconds, timezone.utc))
