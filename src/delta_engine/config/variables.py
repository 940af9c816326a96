"""Variables: `${name}` takes the environment's value; `$${` writes a literal `${`.

They are filled into names (of tables, functions and principals), values of properties and tags, and paths. Never
into comments, which are text, nor into SQL expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from delta_engine.config.documents import unknown
from delta_engine.errors import ConfigError, SourceLocation
from delta_engine.models import Column, Table

_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)\}")


def substitute(
    text: str, variables: Mapping[str, str], location: SourceLocation | None, table: str | None = None
) -> str:
    """Return the text with its variables filled in.

    Raises:
        ConfigError: a variable is not defined.
    """

    def value(reference: re.Match[str]) -> str:
        if reference[0] == "$${":
            return "${"
        name = reference[1].strip()
        if name not in variables:
            reason, way_out = unknown("variable", name, variables)
            raise ConfigError(reason, table=table, location=location, way_out=way_out)
        return variables[name]

    return _REFERENCE.sub(value, text)


def fill_in(table: Table, variables: Mapping[str, str]) -> Table:
    """Return a model with its variables filled in.

    Raises:
        ConfigError: a variable is not defined.
    """
    name = str(table.qualified_name)

    def fill(text: str) -> str:
        return substitute(text, variables, table.declared_at, name)

    return replace(
        table,
        catalog_name=fill(table.catalog_name),
        schema_name=fill(table.schema_name),
        table_name=fill(table.table_name),
        columns=tuple(_filled_column(column, fill) for column in table.columns),
        table_properties=_filled(table.table_properties, fill),
        foreign_keys=tuple(replace(key, references=fill(key.references)) for key in table.foreign_keys),
        tags=_filled(table.tags, fill),
        row_filter=table.row_filter and replace(table.row_filter, function=fill(table.row_filter.function)),
        owner=None if table.owner is None else fill(table.owner),
        grants={fill(principal): privileges for principal, privileges in table.grants.items()},
        location=None if table.location is None else fill(table.location),
        renamed_from=None if table.renamed_from is None else fill(table.renamed_from),
    )


def _filled_column(column: Column, fill: Callable[[str], str]) -> Column:
    if not column.tags and column.mask is None:
        return column
    mask = column.mask and replace(column.mask, function=fill(column.mask.function))
    return replace(column, tags=_filled(column.tags, fill), mask=mask)


def _filled(texts: Mapping[str, str], fill: Callable[[str], str]) -> dict[str, str]:
    return {key: fill(value) for key, value in texts.items()}
