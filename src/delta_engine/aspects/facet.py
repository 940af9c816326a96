"""Facets: each fact of a table, a column or a schema, described once.

Model files, their writer and editors, variables, the recorded documents, fingerprints, `manages`, `leave_out` and
`import` follow from these descriptions, by walking the tuples in `delta_engine.aspects`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from delta_engine.backends.capabilities import Feature
from delta_engine.errors import ConfigError
from delta_engine.models import Grants, Part, QualifiedName, SchemaName

Model = TypeVar("Model", contravariant=True)
State = TypeVar("State", contravariant=True)
Value = TypeVar("Value")

Written: TypeAlias = "str | int | Sequence[Written] | Mapping[str, Written]"
"""A value in a model file."""

TextChange: TypeAlias = Callable[[str], str]
"""Fills variables into a text, or escapes them."""


class Place(Protocol):
    """The place of a value in a model file: it knows how the value is written there, and its line."""

    def text(self, value: object) -> str:
        """Return a scalar as text: `true` and `7` are "true" and "7"; raises ConfigError for all else."""
        ...

    def texts(self, values: Mapping[str, object]) -> dict[str, str]:
        """Return the scalars of a mapping as text, as `text` does."""
        ...

    def error(self, reason: str, way_out: str = "", *steps: str | int) -> ConfigError:
        """Return a refusal of the value, or of what the steps lead to inside it."""
        ...


def _same(value: Any) -> Any:
    return value


def _as_read(_place: Place, value: Any) -> Any:
    return value


def _without_variables(value: Value, _names: TextChange, _values: TextChange) -> Value:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Generic[Value]):
    """How the values of facets are recorded and written; many facets share one.

    Args:
        recorded_type: the type in documents, for msgspec.
        encode: makes the recorded value.
        decode: makes the model's value from the recorded one.
        written_type: the type in model files, for msgspec.
        read: makes the model's value from the written one; raises ConfigError.
        write: makes the written value; None for none.
        with_texts: changes the texts into which variables are filled: those that are names of catalogs, schemas,
            tables or functions, and those that are plain values.
        words: what the documentation calls a written value.
    """

    recorded_type: object
    encode: Callable[[Value], Any] = _same
    decode: Callable[[Any], Value] = _same
    written_type: object
    read: Callable[[Place, Any], Any] = _as_read
    write: Callable[[Value], Written | None] = _same
    with_texts: Callable[[Value, TextChange, TextChange], Value] = _without_variables
    words: str

    @property
    def has_texts(self) -> bool:
        """Whether variables are filled into the values."""
        return self.with_texts is not _without_variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet(Generic[Model, State, Value]):
    """A fact of a table, a column or a schema: what a model declares and the catalog has.

    Args:
        key: its key in model files and documents.
        argument: the model's field; None for one that is named like the key.
        declared: returns a model's value.
        absent: the value of a model that does not declare it.
        form: how values are written and recorded.
        meaning: one line of documentation; None for a fact that no model file has a key for.
        default: the word of the documentation for the value where the key is left out; None for `absent`.
        written: returns what a model file says; None for how the form writes the value.
        entry: what messages call one entry of a mapping or list.
        constructor: the class that Python models call for a mapping.
        short: the argument of the constructor that may stand alone in a model file.
        constants: the written values that Python models name by a constant of `delta_engine`.
        observed: returns the catalog's value; None for an instruction to the engine, which is not recorded either.
        recorded: returns the value that documents record of a model; None for the declared one.
        is_always_recorded: whether documents have the key even where the value is absent.
        imported: returns the value that `import` declares for an existing object; None for the observed one.
        is_imported: whether `import` declares it at all.
        part: the part of a table that a model has to manage to declare it.
        title: what refusals call it; empty for a fact that every model may declare.
        feature: what a platform needs to have; None for what every platform has.
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
    short: str | None = None
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
        """The model's field."""
        return self.argument or self.key

    def is_declared(self, model: Model) -> bool:
        """Whether a model says something other than what holds without it."""
        return self.declared(model) != self.absent

    def recorded_value(self, model: Model) -> Any:
        """Return what documents record of a model."""
        return self.form.encode((self.recorded or self.declared)(model))

    def written_value(self, model: Model) -> Written | None:
        """Return what a model file says; None leaves the key out, and so does the written form of `absent`."""
        return self.form.write(self.declared(model)) if self.written is None else self.written(model)

    def imported_value(self, name: QualifiedName | SchemaName | None, state: State) -> Value:
        """Return what `import` declares for an object that exists."""
        if self.imported is not None:
            return self.imported(name, state)
        return self.absent if self.observed is None else self.observed(state)


def written_part(part: Any, short: str | None = None) -> Any:
    """Return a part of a model, such as a key, as a mapping without defaults: a name of its own comes first.

    Args:
        part: a dataclass, or None for None.
        short: the field whose value may stand alone.
    """
    if part is None:
        return None
    found = ((field.name, getattr(part, field.name), field.default) for field in fields(part))
    values = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value, default in found
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
            raise place.error(f"the grants of {principal!r} are a list", f"Write [{privileges}].", principal)
    return grants


TEXT: Form[str] = Form(recorded_type=str, written_type=str, words="text")
OPTIONAL_TEXT: Form[str | None] = Form(recorded_type=str | None, written_type=str | None, words="text")
FLAG: Form[bool] = Form(recorded_type=bool, written_type=bool, words="`true` or `false`")
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
)
"""Texts by key; scalars of other types are taken as they are spelled."""

NAME: Form[str | None] = Form(
    recorded_type=str | None,
    written_type=str | None,
    with_texts=lambda name, names, _values: None if name is None else names(name),
    words="text",
)
"""The name of a table, which may hold variables."""

FILLED_TEXT: Form[str | None] = Form(
    recorded_type=str | None,
    written_type=str | None,
    with_texts=lambda text, _names, values: None if text is None else values(text),
    words="text",
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
)
