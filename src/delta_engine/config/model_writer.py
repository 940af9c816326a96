"""Writes models as text: a YAML model file, or a Python module, that loads as exactly these tables.

What stands in comments is written as it is; in names and property values, where the loader fills in
variables, `${` becomes `$${`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delta_engine.config.python_text import Call, Code, literal, python_text
from delta_engine.config.yaml_emitter import Value, emit_block, flow
from delta_engine.models import Column, PrimaryKey, Table
from delta_engine.sql import sql_data_type


def yaml_models(tables: Sequence[Table], variables: Mapping[str, str]) -> str:
    """Return a model file.

    Args:
        tables: the tables, names filled in; a primary key's derived name is left None.
        variables: the environment's variables. A catalog that is one's value is written as that variable,
            `catalog` before all others; a schema only as one named `schema`.

    Returns:
        Text that gives these tables when loaded with these variables.
    """
    if not tables:
        return emit_block({"tables": flow([])})
    entries = [emit_block({"tables": [_yaml_table(table, variables)]}) for table in tables]
    return "tables:\n" + "\n".join(entry.removeprefix("tables:\n") for entry in entries)


def python_models(tables: Sequence[Table], variables: Mapping[str, str]) -> str:
    """Return a Python module whose function `tables` takes the environment's variables.

    Args:
        tables: the tables, names filled in; a primary key's derived name is left None.
        variables: the environment's variables, used as in `yaml_models`.

    Returns:
        Text that gives these tables when loaded as `module:tables` with these variables.
    """
    calls = [_python_table(table, variables) for table in tables]
    used = ["Column", "PrimaryKey", "Table"]
    if not any(isinstance(_key_value(table), Mapping) for table in tables):
        used.remove("PrimaryKey")
    if not any(table.columns for table in tables):
        used.remove("Column")
    return (
        '"""Models of tables that exist, as they were found."""\n\n'
        "from __future__ import annotations\n\n"
        "from collections.abc import Mapping\n\n"
        f"from delta_engine import {', '.join(used)}\n\n\n"
        "def tables(variables: Mapping[str, str]) -> list[Table]:\n"
        '    """Return the models, for an environment\'s variables."""\n'
        f"    return {python_text(calls, indent=4, reserved=len('return '))}\n"
    )


def column_fields(column: Column) -> dict[str, Value]:
    """Return what a model file says of a column, in order, defaults left out."""
    fields: dict[str, Value] = {"name": column.name, "type": sql_data_type(column.data_type)}
    if not column.is_nullable:
        fields["nullable"] = False
    if column.comment:
        fields["comment"] = column.comment
    return fields


def primary_key_value(key: PrimaryKey) -> Value:
    """Return a key as a model file says it: a list of columns, or a mapping where that is not all."""
    if key.name is None and not key.rely and key.columns:
        return list(key.columns)
    named = {} if key.name is None else {"name": key.name}
    trusted = {"rely": True} if key.rely else {}
    return {**named, "columns": list(key.columns), **trusted}


def column_call(column: Column) -> Call:
    """Return the call that makes a column in a Python model."""
    arguments: list[Code | tuple[str, Code]] = [
        literal(column.name),
        literal(sql_data_type(column.data_type)),
    ]
    if not column.is_nullable:
        arguments.append(("is_nullable", "False"))
    if column.comment:
        arguments.append(("comment", literal(column.comment)))
    return Call("Column", arguments)


def escape_variables(text: str) -> str:
    """Return text that the loader, which fills in variables, reads as this text."""
    return text.replace("${", "$${")


def _yaml_table(table: Table, variables: Mapping[str, str]) -> dict[str, object]:
    catalog = _catalog_variable(table.catalog_name, variables)
    schema = _schema_variable(table.schema_name, variables)
    entry: dict[str, object] = {
        "catalog": escape_variables(table.catalog_name) if catalog is None else f"${{{catalog}}}",
        "schema": escape_variables(table.schema_name) if schema is None else f"${{{schema}}}",
        "name": escape_variables(table.table_name),
    }
    if table.comment:
        entry["comment"] = table.comment
    entry["columns"] = [flow(column_fields(column)) for column in table.columns] or flow([])
    if table.table_properties:
        entry["properties"] = _escaped(table.table_properties)
    if table.primary_key is not None:
        entry["primary_key"] = flow(primary_key_value(table.primary_key))
    if table.cluster_by:
        entry["cluster_by"] = flow(list(table.cluster_by))
    return entry


def _python_table(table: Table, variables: Mapping[str, str]) -> Call:
    catalog = _catalog_variable(table.catalog_name, variables)
    schema = _schema_variable(table.schema_name, variables)
    arguments: list[Code | tuple[str, Code]] = [
        ("catalog_name", _python_name(table.catalog_name, catalog)),
        ("schema_name", _python_name(table.schema_name, schema)),
        ("table_name", literal(escape_variables(table.table_name))),
        ("columns", [column_call(column) for column in table.columns]),
    ]
    if table.comment:
        arguments.append(("comment", literal(table.comment)))
    if table.table_properties:
        properties = _escaped(table.table_properties)
        arguments.append(
            ("table_properties", {literal(key): literal(value) for key, value in properties.items()})
        )
    if table.primary_key is not None:
        arguments.append(("primary_key", _python_key(table.primary_key)))
    if table.cluster_by:
        arguments.append(("cluster_by", [literal(name) for name in table.cluster_by]))
    return Call("Table", arguments, is_spread=True)


def _python_key(key: PrimaryKey) -> Code:
    columns: Code = [literal(name) for name in key.columns]
    if not isinstance(primary_key_value(key), Mapping):
        return columns
    arguments: list[Code | tuple[str, Code]] = [columns]
    if key.name is not None:
        arguments.append(("name", literal(key.name)))
    if key.rely:
        arguments.append(("rely", "True"))
    return Call("PrimaryKey", arguments)


def _python_name(name: str, variable: str | None) -> str:
    # The loader fills variables into what a Python model returns, too: a value with a `${` would be
    # read as one more variable.
    if variable is None or "${" in name:
        return literal(escape_variables(name))
    return f"variables[{literal(variable)}]"


def _catalog_variable(name: str, variables: Mapping[str, str]) -> str | None:
    candidates = [variable for variable in sorted(variables) if _stands_for(variable, name, variables)]
    return "catalog" if "catalog" in candidates else next(iter(candidates), None)


def _schema_variable(name: str, variables: Mapping[str, str]) -> str | None:
    return "schema" if _stands_for("schema", name, variables) else None


def _stands_for(variable: str, name: str, variables: Mapping[str, str]) -> bool:
    can_be_referred_to = variable == variable.strip() and "}" not in variable
    return can_be_referred_to and bool(name) and variables.get(variable) == name


def _escaped(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: escape_variables(value) for key, value in properties.items()}


def _key_value(table: Table) -> Value | None:
    return None if table.primary_key is None else primary_key_value(table.primary_key)
