"""Writes models as YAML or Python text that loads as exactly these models.

Comments and SQL expressions stay verbatim. In names and values, where the loader fills in variables, `${` becomes
`$${`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from delta_engine import models
from delta_engine.config.model_text import (
    LISTS,
    MAX_LINE_LENGTH,
    Call,
    Code,
    arguments,
    column_call,
    fields_of,
    key_text,
    literal,
    python_text,
    written_values,
)
from delta_engine.config.variables import escaped, spelled
from delta_engine.config.yaml_text import indented, list_item, pair
from delta_engine.models import Securable, Table, View
from delta_engine.telemetry.visible import joined


def yaml_models(models: Iterable[Securable], variables: Mapping[str, str]) -> str:
    """Return a model file that loads as these models with these variables.

    Derived key names are None. A catalog with the value of a variable is written as that variable, preferably
    `catalog`; a schema only as the variable `schema`.
    """
    by_kind = _by_kind(models)
    lists = by_kind.items() if by_kind else [("tables", [])]
    return "\n".join(
        _yaml_list(key, [_yaml_model(model, variables) for model in listed]) for key, listed in lists
    )


def query_text(view: View, variables: Mapping[str, str]) -> str:
    """Return the content of a file that loads as the query of a view with these variables."""
    return f"{spelled(view, catalog_text(view.catalog_name, variables)).query}\n"


def python_models(models: Iterable[Securable], variables: Mapping[str, str]) -> str:
    """Return a Python module whose `tables(variables)` gives these models; the arguments are those of `yaml_models`."""
    by_kind = _by_kind(models) or {"tables": []}
    calls = [_python_model(model, variables) for listed in by_kind.values() for model in listed]
    classes = sorted(LISTS[key].model.__name__ for key in by_kind)
    return (
        f'"""Models of {joined(by_kind)} that exist, as they were found."""\n\n'
        "from __future__ import annotations\n\n"
        "from collections.abc import Mapping\n\n"
        f"{_import({*classes, *_public_names(calls)})}\n\n\n"
        f"def tables(variables: Mapping[str, str]) -> list[{' | '.join(classes)}]:\n"
        '    """Return the models, for an environment\'s variables."""\n'
        f"    return {python_text(calls, indent=4, reserved=len('return '))}\n"
    )


def _by_kind(models: Iterable[Securable]) -> dict[str, list[Securable]]:
    """Return the models by their keys in a file, in the order of the kinds."""
    models = [*models]
    lists = {key: [model for model in models if type(model) is kind.model] for key, kind in LISTS.items()}
    return {key: listed for key, listed in lists.items() if listed}


def _yaml_list(key: str, models: Sequence[str]) -> str:
    if not models:
        return f"{pair(key, [])}\n"
    return f"{key}:\n" + "\n".join(f"{indented(list_item(model))}\n" for model in models)


def _yaml_model(model: Securable, variables: Mapping[str, str]) -> str:
    fields = fields_of(model)
    values = written_values(fields, spelled(model, catalog_text(model.catalog_name, variables)))
    for field in fields:
        if field.attribute == "schema_name" and _stands_for("schema", field.declared(model), variables):
            values[field.key] = "${schema}"
    return "\n".join(key_text(key, value) for key, value in values.items())


def _python_model(model: Securable, variables: Mapping[str, str]) -> Call:
    fields = fields_of(model)
    written = spelled(model, catalog_text(model.catalog_name, variables))
    codes: dict[str, Code] = dict(arguments(fields, written))
    if isinstance(written, Table):
        codes["columns"] = [column_call(column) for column in written.columns]
    named = {"catalog_name": _catalog_variable(model.catalog_name, variables), "schema_name": "schema"}
    for field in fields:
        if field.attribute in named:
            name, variable = field.declared(model), named[field.attribute]
            codes[field.attribute] = literal(escaped(name))
            # The loader fills variables into what a Python model returns, too: a value with a `${` would be
            # read as one more variable.
            if variable is not None and _stands_for(variable, name, variables) and "${" not in name:
                codes[field.attribute] = f"variables[{literal(variable)}]"
    return Call(type(model).__name__, list(codes.items()), is_spread=True)


def catalog_text(name: str, variables: Mapping[str, str]) -> str:
    """Return a catalog as a file spells it: as the variable with its value, preferably `catalog`."""
    variable = _catalog_variable(name, variables)
    return escaped(name) if variable is None else f"${{{variable}}}"


def _catalog_variable(name: str, variables: Mapping[str, str]) -> str | None:
    candidates = [variable for variable in sorted(variables) if _stands_for(variable, name, variables)]
    return "catalog" if "catalog" in candidates else next(iter(candidates), None)


def _stands_for(variable: str, name: str, variables: Mapping[str, str]) -> bool:
    can_be_referred_to = variable == variable.strip() and "}" not in variable
    return can_be_referred_to and bool(name) and variables.get(variable) == name


def _public_names(code: Code) -> Iterator[str]:
    match code:
        case str():
            parts: Sequence[Code] = ()
            if code in models.__all__:
                yield code
        case Call():
            yield code.function
            parts = [part[1] if isinstance(part, tuple) else part for part in code.arguments]
        case Mapping():
            parts = list(code.values())
        case _:
            parts = code
    for part in parts:
        yield from _public_names(part)


def _import(names: set[str]) -> str:
    line = f"from delta_engine import {', '.join(sorted(names))}"
    if len(line) <= MAX_LINE_LENGTH:
        return line
    listed = "".join(f"    {name},\n" for name in sorted(names))
    return f"from delta_engine import (\n{listed})"
