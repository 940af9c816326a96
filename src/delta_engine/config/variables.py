"""Variables: `${name}` takes the environment's value; `$${` writes a literal `${`.

They are filled into names, property values and paths, never into comments: a comment is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from delta_engine.config.documents import unknown
from delta_engine.errors import ConfigError, SourceLocation
from delta_engine.models import Table

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
    """Return a model with variables filled into its names and property values.

    Raises:
        ConfigError: a variable is not defined.
    """
    name = str(table.qualified_name)

    def fill(text: str) -> str:
        return substitute(text, variables, table.location, name)

    return replace(
        table,
        catalog_name=fill(table.catalog_name),
        schema_name=fill(table.schema_name),
        table_name=fill(table.table_name),
        table_properties=_filled(table.table_properties, fill),
    )


def _filled(properties: Mapping[str, str], fill: Callable[[str], str]) -> dict[str, str]:
    return {key: fill(value) for key, value in properties.items()}
