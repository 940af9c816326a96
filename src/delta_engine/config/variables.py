"""Variables: `${name}` takes the environment's value; `$${` writes a literal `${`.

The engine fills them into names (of tables, functions and principals), values of properties and tags, and paths.
Comments are text and SQL expressions are code, so both stay unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from delta_engine.aspects import COLUMN_FACETS
from delta_engine.aspects.facet import Facet, TextChange
from delta_engine.config.model_text import fields_of
from delta_engine.errors import ConfigError, SourceLocation, unknown
from delta_engine.models import NO_SUBJECT, Securable, Subject, Table, subject

SomeModel = TypeVar("SomeModel", bound=Securable)

_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)\}")
_OF_ENVIRONMENT = re.compile(r"\$\{env:(\w+)\}")


def substitute(
    text: str, variables: Mapping[str, str], location: SourceLocation | None, of: Subject = NO_SUBJECT
) -> str:
    """Return the text with variables filled in; refuse undefined ones. `of` names the model that has the text."""

    def value(reference: re.Match[str]) -> str:
        if reference[0] == "$${":
            return "${"
        name = reference[1].strip()
        if name not in variables:
            reason, way_out = unknown("variable", name, variables)
            raise ConfigError(reason, **of, location=location, way_out=way_out)
        return variables[name]

    return _REFERENCE.sub(value, text)


def substitute_but_secrets(text: str, variables: Mapping[str, str], location: SourceLocation | None) -> str:
    """Return the text with variables filled in, except `${env:NAME}`: settings never hold secrets."""
    kept = {f"env:{name}": f"${{env:{name}}}" for name in _OF_ENVIRONMENT.findall(text)}
    return substitute(text, {**variables, **kept}, location)


def secrets_in(
    settings: Mapping[str, str],
    environ: Mapping[str, str],
    locate: Callable[[str], SourceLocation | None] = lambda _key: None,
) -> dict[str, str]:
    """Return the settings that take `${env:NAME}`, with the values; ConfigError if a variable is not set.

    `locate` returns the place of a setting.
    """
    with_references = {key: text for key, text in settings.items() if _OF_ENVIRONMENT.search(text)}
    for key, text in with_references.items():
        for name in _OF_ENVIRONMENT.findall(text):
            if not environ.get(name):
                raise ConfigError(
                    f"backend.spark uses ${{env:{name}}}, but the environment variable {name} is not set",
                    location=locate(key),
                    way_out="Set it from your secret store when you run the command.",
                )
    return {
        key: _OF_ENVIRONMENT.sub(lambda match: environ[match[1]], text)
        for key, text in with_references.items()
    }


def fill_in(model: SomeModel, variables: Mapping[str, str]) -> SomeModel:
    """Return a model with variables filled in; refuse undefined ones."""
    about, place = subject(model.qualified_name), model.declared_at

    def fill(text: str) -> str:
        return substitute(text, variables, place, about)

    try:
        return with_texts(model, names=fill, values=fill)
    except ValueError as error:  # a variable made a name of another form
        raise ConfigError(str(error), **about, location=place) from None


def spelled(model: SomeModel, catalog: str, others: Mapping[str, str] = MappingProxyType({})) -> SomeModel:
    """Return a model as a file spells it, so that `fill_in` restores the model.

    Args:
        catalog: the file's spelling of the model's catalog.
        others: the file's spellings of other catalogs.
    """
    spellings = {
        f"{name}.": f"{spelling}." for name, spelling in {**others, model.catalog_name: catalog}.items()
    }

    def name(text: str) -> str:
        prefix = next((prefix for prefix in spellings if prefix != "." and text.startswith(prefix)), "")
        return f"{spellings.get(prefix, '')}{escaped(text.removeprefix(prefix))}"

    return with_texts(model, names=name, values=escaped)


def spellings_in(text: str, variables: Mapping[str, str]) -> Mapping[str, str]:
    """Return the references of a text to variables, by their values."""
    return {variables[name]: f"${{{name}}}" for name in sorted(variables) if f"${{{name}}}" in text}


def escaped(text: str) -> str:
    """Return text that `substitute` turns back into this text."""
    return text.replace("${", "$${")


def escaped_but_secrets(text: str) -> str:
    """Return text that `substitute_but_secrets` turns back into this text."""
    return re.sub(r"\$(\$\{env:\w+\})", r"\1", escaped(text))


def with_texts(model: SomeModel, *, names: TextChange, values: TextChange) -> SomeModel:
    """Return a model with the texts changed that may contain variables.

    `names` changes the names of securables, also in queries. `values` changes properties, tags, principals and paths.
    """
    changed = _changed(fields_of(model), model, names, values)
    if isinstance(model, Table):
        columns = model.columns
        if any(facet.is_declared_by_any(columns) for facet in _FACETS_WITH_TEXTS):
            changes = ((column, _changed(_FACETS_WITH_TEXTS, column, names, values)) for column in columns)
            changed["columns"] = tuple(
                replace(column, **texts) if texts else column for column, texts in changes
            )
    return replace(model, **changed)


def _changed(
    facets: Iterable[Facet[Any, Any, Any]], model: object, names: TextChange, values: TextChange
) -> dict[str, Any]:
    declared = ((facet, facet.declared(model)) for facet in facets)
    return {
        facet.attribute: facet.form.with_texts(value, names, values)
        for facet, value in declared
        if value != facet.absent
    }


_FACETS_WITH_TEXTS = tuple(facet for facet in COLUMN_FACETS if facet.form.has_texts)
