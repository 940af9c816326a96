"""Variables: `${name}` takes the environment's value; `$${` writes a literal `${`.

They are filled into names (of tables, functions and principals), values of properties and tags, and paths. Never
into comments, which are text, nor into SQL expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from delta_engine.backends.environment_secrets import OF_ENVIRONMENT
from delta_engine.config.documents import unknown
from delta_engine.errors import ConfigError, SourceLocation
from delta_engine.models import Column, Schema, Table

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


def substitute_but_secrets(text: str, variables: Mapping[str, str], location: SourceLocation | None) -> str:
    """Return the text with its variables filled in, but for `${env:NAME}`: settings never hold secrets.

    Raises:
        ConfigError: a variable is not defined.
    """
    kept = {f"env:{name}": f"${{env:{name}}}" for name in OF_ENVIRONMENT.findall(text)}
    return substitute(text, {**variables, **kept}, location)


def fill_in(table: Table, variables: Mapping[str, str]) -> Table:
    """Return a model with its variables filled in.

    Raises:
        ConfigError: a variable is not defined.
    """
    name = str(table.qualified_name)

    def fill(text: str) -> str:
        return substitute(text, variables, table.declared_at, name)

    return with_texts(table, names=fill, values=fill)


def fill_in_schema(schema: Schema, variables: Mapping[str, str]) -> Schema:
    """Return a schema with its variables filled in; raises as `fill_in` does."""

    def fill(text: str) -> str:
        return substitute(text, variables, schema.declared_at)

    return _with_schema_texts(schema, fill)


def spelled(table: Table, catalog: str) -> Table:
    """Return a model as a file spells it: `fill_in`, with the right variables, gives the model back.

    Args:
        table: the model, variables filled in.
        catalog: how the file spells the table's catalog, in names that begin with it as well.
    """
    prefix = f"{table.catalog_name}."

    def name(text: str) -> str:
        is_within = bool(table.catalog_name) and text.startswith(prefix)
        return f"{catalog}.{escaped(text.removeprefix(prefix))}" if is_within else escaped(text)

    return replace(with_texts(table, names=name, values=escaped), catalog_name=catalog)


def spelled_schema(schema: Schema, catalog: str) -> Schema:
    """Return a schema as a file spells it; the arguments are those of `spelled`."""
    return replace(_with_schema_texts(schema, escaped), catalog_name=catalog)


def escaped(text: str) -> str:
    """Return text that is this text once variables have been filled in."""
    return text.replace("${", "$${")


def with_texts(table: Table, *, names: Callable[[str], str], values: Callable[[str], str]) -> Table:
    """Return a model with the texts changed into which variables are filled.

    Args:
        table: the model.
        names: changes the names of catalogs, schemas, tables and functions.
        values: changes the values of properties and tags, principals and paths.
    """
    return replace(
        table,
        catalog_name=names(table.catalog_name),
        schema_name=names(table.schema_name),
        table_name=names(table.table_name),
        columns=tuple(_with_column_texts(column, names, values) for column in table.columns),
        table_properties=_changed(table.table_properties, values),
        foreign_keys=tuple(replace(key, references=names(key.references)) for key in table.foreign_keys),
        tags=_changed(table.tags, values),
        row_filter=table.row_filter and replace(table.row_filter, function=names(table.row_filter.function)),
        owner=None if table.owner is None else values(table.owner),
        grants={values(principal): privileges for principal, privileges in table.grants.items()},
        location=None if table.location is None else values(table.location),
        renamed_from=None if table.renamed_from is None else names(table.renamed_from),
    )


def _with_schema_texts(schema: Schema, change: Callable[[str], str]) -> Schema:
    return replace(
        schema,
        catalog_name=change(schema.catalog_name),
        schema_name=change(schema.schema_name),
        tags=_changed(schema.tags, change),
        owner=None if schema.owner is None else change(schema.owner),
        grants={change(principal): privileges for principal, privileges in schema.grants.items()},
    )


def _with_column_texts(column: Column, names: Callable[[str], str], values: Callable[[str], str]) -> Column:
    if not column.tags and column.mask is None:
        return column
    mask = column.mask and replace(column.mask, function=names(column.mask.function))
    return replace(column, tags=_changed(column.tags, values), mask=mask)


def _changed(texts: Mapping[str, str], change: Callable[[str], str]) -> dict[str, str]:
    return {key: change(value) for key, value in texts.items()}
