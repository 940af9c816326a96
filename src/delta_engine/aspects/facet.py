"""Facets: each fact of a table, a column or a schema, described once.

Model files, their writer and editors, variables, recorded documents, `manages`, `leave_out` and
`import` derive from the tuples in `delta_engine.aspects`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from delta_engine.backends.capabilities import Feature
from delta_engine.errors import ConfigError
from delta_engine.models import Grants, Part, SecurableName

Model = TypeVar("Model", contravariant=True)
State = TypeVar("State", contravariant=True)
Value = TypeVar("Value")

Written: TypeAlias = "str | int | Sequence[Written] | Mapping[str, Written]"
"""A value in a model file."""

TextChange: TypeAlias = Callable[[str], str]
"""Fills variables into a text, or escapes them."""


class Place(Protocol):
    """The place of a value in a model file: it knows its spelling and its line."""

    def text(self, value: object) -> str:
        """Return a scalar as text: `true` and `7` are "true" and "7"; raises ConfigError for all else."""
        ...

    def texts(self, values: Mapping[str, object], *steps: str | int) -> dict[str, str]:
        """Return the scalars of a mapping, or of the one inside it at `steps`, as text, as `text` does."""
        ...

    def error(self, reason: str, way_out: str = "", *steps: str | int) -> ConfigError:
        """Return a refusal of the value, or of the value inside it at `steps`."""
        ...


REQUIRED: Final = "required"
"""The `default` of a facet that every model file has to write."""

SCALAR_SCHEMA: Mapping[str, Any] = {"type": ["string", "number", "boolean"]}
"""The JSON schema of a value that `Place.text` takes."""


def _same(value: Any) -> Any:
    return value


def _without_variables(value: Value, _names: TextChange, _values: TextChange) -> Value:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Generic[Value]):
    """The recorded and written form of values; many facets share one.

    Args:
        recorded_type: the type in documents, for msgspec.
        written_type: the type in model files, for msgspec.
        read: makes the model's value from the written one; raises ConfigError. None keeps the written one.
        write: makes the written value; None omits the key.
        with_texts: applies one change to the names of catalogs, schemas, tables and functions, and one to plain values.
        words: the term of the documentation for a written value.
        schema: the JSON schema of written values; None for that of `written_type`.
        choices: all values besides the absent one, if they are few; the conformance run declares each.
    """

    recorded_type: object
    encode: Callable[[Value], Any] = _same
    decode: Callable[[Any], Value] = _same
    written_type: object
    read: Callable[[Place, Any], Any] | None = None
    write: Callable[[Value], Written | None] = _same
    with_texts: Callable[[Value, TextChange, TextChange], Value] = _without_variables
    words: str
    schema: Mapping[str, Any] | None = None
    choices: tuple[Value, ...] = ()

    @property
    def has_texts(self) -> bool:
        """Whether the values may contain variables."""
        return self.with_texts is not _without_variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet(Generic[Model, State, Value]):
    """A fact of a table, a column or a schema: declared by a model and observed in the catalog.

    Args:
        argument: the model's field; None if it has the name of the key.
        declared: returns the value of a model.
        absent: the value of a model that does not declare it.
        meaning: one line of documentation; None for a fact without a key in model files.
        default: the documentation's term for the default; None for `absent`.
        written: returns the value for a model file; None for the form's own `write`.
        entry: the term of messages for one entry of a mapping or list.
        constructor: the class that Python models call for a mapping.
        takes_pair: whether Python models call the class with the key and the value of a mapping of one.
        takes_text: whether Python models take a text as it is, without the class.
        constants: the written values with a constant in `delta_engine`.
        observed: returns the catalog's value; None for an instruction to the engine, which is not recorded.
        recorded: returns the value for documents; None for the declared one.
        is_always_recorded: whether documents have the key even for an absent value.
        imported: returns the value that `import` declares for an existing object; None for the observed one.
        is_imported: whether `import` writes the key; False for what a model takes over only on purpose.
        part: the part of a table that a model has to manage to declare it.
        title: the term of refusals; empty for a fact that every model may declare.
        feature: the platform feature that it needs; None for none.
    """

    key: str
    argument: str | None = None
    declared: Callable[[Model], Value]
    absent: Value
    form: Form[Value]
    meaning: str | None = None
    default: str | None = None
    written: Callable[[Model], Written | None] | None = None
    entry: str | None = None
    constructor: str | None = None
    takes_pair: bool = False
    takes_text: bool = False
    constants: tuple[str, ...] = ()
    observed: Callable[[State], Value] | None = None
    recorded: Callable[[Model], Value] | None = None
    is_always_recorded: bool = False
    imported: Callable[[Any, State], Value] | None = None
    is_imported: bool = True
    part: Part | None = None
    title: str = ""
    feature: Feature | None = None

    @property
    def attribute(self) -> str:
        """The field of the model."""
        return self.argument or self.key

    def is_declared(self, model: Model) -> bool:
        """Whether the model differs from the default."""
        return self.declared(model) != self.absent

    def is_declared_by_any(self, models: Sequence[Model]) -> bool:
        """Whether one of the models differs from the default."""
        values = [*map(self.declared, models)]
        return values.count(self.absent) < len(values)

    def recorded_value(self, model: Model) -> Any:
        """Return the value that documents record of a model."""
        return self.form.encode((self.recorded or self.declared)(model))

    def written_value(self, model: Model) -> Written | None:
        """Return the value for a model file; None, like the written form of `absent`, omits the key."""
        return self.form.write(self.declared(model)) if self.written is None else self.written(model)

    def imported_value(self, name: SecurableName | None, state: State) -> Value:
        """Return the value that `import` declares for an existing object."""
        if self.imported is not None:
            return self.imported(name, state)
        return self.absent if self.observed is None else self.observed(state)


def written_part(part: Any, short: str | None = None) -> Any:
    """Return a part as a mapping without defaults, name first, or only the value of `short` if that suffices."""
    if part is None:
        return None
    settings = ((field.name, getattr(part, field.name), field.default) for field in fields(part))
    values = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value, default in settings
        if value != default
    }
    if short is not None and list(values) == [short] and values[short]:
        return values[short]
    return {**({"name": values["name"]} if "name" in values else {}), **values}


def _changed(texts: Mapping[str, str], change: TextChange) -> dict[str, str]:
    return {key: change(value) for key, value in texts.items()}


def _grants(place: Place, grants: Mapping[str, list[str] | str]) -> Mapping[str, list[str] | str]:
    for principal, privileges in grants.items():
        if isinstance(privileges, str):
            raise place.error(
                f"the grants of {principal!r} must be a list", f"Write [{privileges}].", principal
            )
    return grants


TEXT: Form[str] = Form(recorded_type=str, written_type=str, words="string")
OPTIONAL_TEXT: Form[str | None] = Form(recorded_type=str | None, written_type=str | None, words="string")
FLAG: Form[bool] = Form(recorded_type=bool, written_type=bool, words="`true` or `false`")


def written_names(names: tuple[str, ...]) -> str | list[str] | None:
    """Return former names as model files and documents have them: a text, or a list of several."""
    if len(names) > 1:
        return list(names)
    return names[0] if names else None


def _former_names(names: str | Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)


NAMES: Form[tuple[str, ...]] = Form(
    recorded_type=tuple[str, ...], written_type=list[str], write=list, words="list"
)
EXACT_TEXTS: Form[Mapping[str, str]] = Form(
    recorded_type=dict[str, str], encode=dict, written_type=dict[str, str], write=dict, words="mapping"
)
TEXTS: Form[Mapping[str, str]] = Form(
    recorded_type=dict[str, str],
    encode=dict,
    written_type=dict[str, Any],
    read=lambda place, values: place.texts(values),
    write=dict,
    with_texts=lambda texts, _names, values: _changed(texts, values),
    words="mapping",
    schema={"type": "object", "additionalProperties": SCALAR_SCHEMA},
)
"""Texts by key; scalars of other types are taken as they are spelled."""

NAME: Form[str | None] = Form(
    recorded_type=str | None,
    written_type=str | None,
    with_texts=lambda name, names, _values: None if name is None else names(name),
    words="string",
)
"""The name of a table, which may hold variables."""

FORMER_NAMES: Form[tuple[str, ...]] = Form(
    recorded_type=str | tuple[str, ...] | None,
    encode=written_names,
    decode=_former_names,
    written_type=str | list[str] | None,
    read=lambda _place, names: _former_names(names),
    write=written_names,
    words="string or list",
)
"""The former names of a column, the latest first."""

FORMER_TABLE_NAMES: Form[tuple[str, ...]] = replace(
    FORMER_NAMES, with_texts=lambda former, names, _values: tuple(map(names, former))
)
"""The former names of a table, which may hold variables."""

FORMER_FIELD_NAMES: Form[Mapping[str, tuple[str, ...]]] = Form(
    recorded_type=dict[str, str | tuple[str, ...]],
    encode=lambda fields: {path: written_names(names) for path, names in fields.items()},
    decode=lambda fields: {path: _former_names(names) for path, names in fields.items()},
    written_type=dict[str, str | list[str]],
    read=lambda _place, fields: {path: _former_names(names) for path, names in fields.items()},
    write=lambda fields: {path: written_names(names) or "" for path, names in fields.items()},
    words="mapping",
)
"""The former names of fields by path, each with the latest first."""

FILLED_TEXT: Form[str | None] = Form(
    recorded_type=str | None,
    written_type=str | None,
    with_texts=lambda text, _names, values: None if text is None else values(text),
    words="string",
)
"""A principal or a path, which may hold variables."""

GRANTS: Form[Grants] = Form(
    recorded_type=dict[str, tuple[str, ...]],
    encode=dict,
    written_type=dict[str, list[str] | str],
    read=_grants,
    write=lambda grants: {principal: list(privileges) for principal, privileges in grants.items()},
    with_texts=lambda grants, _names, values: {values(name): granted for name, granted in grants.items()},
    words="mapping",
    schema={"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
)
