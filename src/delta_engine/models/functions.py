"""Functions that a team declares: SQL and Python scalar functions of Unity Catalog.

A body is opaque text. `sql.functions` spells it, and `sql.function_bodies` reads what it uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import ClassVar, Final

from delta_engine.errors import InvalidModelError, SourceLocation
from delta_engine.models.columns import Column, calling_line
from delta_engine.models.parts import (
    NO_GRANTS,
    NOTHING,
    Grants,
    NameInSchema,
    set_fields,
    to_flag,
    to_grants,
    to_items,
    to_optional_text,
    to_text,
    to_texts,
)
from delta_engine.models.repetitions import Repetition, repeated
from delta_engine.models.type_forms import TypeLike, to_data_type
from delta_engine.models.types import DataType, first_unsupported


class FunctionName(NameInSchema):
    """The name of a function."""

    __slots__ = ()
    kind: ClassVar[str] = "function"


@unique
class FunctionLanguage(Enum):
    """The language of a function's body."""

    SQL = "sql"
    PYTHON = "python"


_OTHER_LANGUAGES: Final = ("scala", "java", "r", "javascript")
"""Languages of functions elsewhere: a session's functions, and other platforms."""


@dataclass(frozen=True, slots=True, init=False)
class Parameter:
    """A parameter of a function.

    Args:
        data_type: a SQL type string, a pyspark `DataType`, or a canonical type.
        default: the SQL expression for calls without the argument; None makes the argument mandatory.
        comment: the empty string means no comment.
    """

    name: str
    data_type: DataType
    default: str | None = None
    comment: str = ""

    def __init__(self, name: str, data_type: TypeLike, default: str | None = None, comment: str = "") -> None:
        set_fields(
            self,
            name=to_text(name, "name"),
            data_type=to_data_type(data_type),
            default=to_optional_text(default, "default", name),
            comment=to_text(comment, "comment", name),
        )

    @property
    def key(self) -> str:
        """The name in lower case, by which parameters compare."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, init=False)
class Function:
    """A declared function.

    Args:
        catalog_name: the raw name; may hold `${variables}` until the configuration replaces them.
        returns: the type of the result, in the forms that a parameter's type may have.
        body: a SQL expression or query without RETURN, or the statements of a Python function. Empty while it still has
            to be read from `body_file`.
        body_file: the file with the body, relative to the file that declares the function; None for an inline body.
        is_deterministic: None lets the platform decide.
        comment: the empty string means no comment.
        owner: None leaves the owner unmanaged.
        grants: privileges by principal; other principals are unmanaged, unless the policy says otherwise.
        declared_at: the place of the declaration; by default the calling line of Python.

    Raises:
        InvalidModelError: the engine does not manage a type; or, without `declared_at`, two parameters share a name.
        TypeError: an argument has the wrong type.
        ValueError: the engine does not manage functions in the language, or a text has an unpaired surrogate.
    """

    columns: ClassVar[tuple[Column, ...]] = ()
    catalog_name: str
    schema_name: str
    function_name: str
    returns: DataType
    body: str = ""
    parameters: tuple[Parameter, ...] = ()
    language: FunctionLanguage = FunctionLanguage.SQL
    body_file: str | None = field(default=None, compare=False)
    is_deterministic: bool | None = None
    comment: str = ""
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    owner: str | None = None
    grants: Grants = field(default_factory=dict, hash=False)
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)

    def __init__(
        self,
        catalog_name: str,
        schema_name: str,
        function_name: str,
        returns: TypeLike,
        body: str = "",
        parameters: Iterable[Parameter] = (),
        *,
        language: FunctionLanguage | str = FunctionLanguage.SQL,
        body_file: str | None = None,
        is_deterministic: bool | None = None,
        comment: str = "",
        tags: Mapping[str, str] = NOTHING,
        owner: str | None = None,
        grants: Mapping[str, Iterable[str]] = NO_GRANTS,
        declared_at: SourceLocation | None = None,
    ) -> None:
        set_fields(
            self,
            catalog_name=to_text(catalog_name, "catalog_name", function_name),
            schema_name=to_text(schema_name, "schema_name", function_name),
            function_name=to_text(function_name, "function_name"),
            returns=to_data_type(returns),
            body=to_text(body, "body", function_name),
            parameters=to_items(parameters, Parameter, "parameters", function_name),
            language=to_language(language, function_name),
            body_file=to_optional_text(body_file, "body_file", function_name),
            is_deterministic=(
                None
                if is_deterministic is None
                else to_flag(is_deterministic, "is_deterministic", function_name)
            ),
            comment=to_text(comment, "comment", function_name),
            tags=to_texts("tags", tags),
            owner=to_optional_text(owner, "owner", function_name),
            grants=to_grants(grants),
            declared_at=declared_at or calling_line(),
        )
        _refuse_unsupported_types(self)
        if declared_at is None and self.declared_at is not None:  # files are judged as a whole, by the rules
            _refuse_repetitions(self)

    @property
    def qualified_name(self) -> FunctionName:
        """The raw three-part name."""
        return FunctionName(self.catalog_name, self.schema_name, self.function_name)

    @property
    def key(self) -> str:
        """The dotted name in lower case, by which functions compare."""
        return self.qualified_name.key

    @property
    def signature(self) -> tuple[DataType, ...]:
        """The types of the parameters: CREATE OR REPLACE accepts no others (docs: "CREATE FUNCTION")."""
        return tuple(parameter.data_type for parameter in self.parameters)


def to_language(value: FunctionLanguage | str, of: str) -> FunctionLanguage:
    """Return a language by its name in any case; ValueError for one in which the engine manages no functions."""
    if isinstance(value, FunctionLanguage):
        return value
    name = to_text(value, "language", of).lower()
    languages = {language.value: language for language in FunctionLanguage}
    if name not in languages:
        reason = (
            "the engine does not manage such functions"
            if name in _OTHER_LANGUAGES
            else "the engine does not know it"
        )
        raise ValueError(f"language of {of!r} is {value!r}: {reason}. Write {' or '.join(languages)}")
    return languages[name]


def repeated_parameters(parameters: Iterable[Parameter]) -> Iterator[Repetition]:
    """Yield each name that several parameters have; names compare without case."""
    for name in repeated(parameter.name for parameter in parameters):
        reason = f"it has parameter {name!r} twice (names ignore case)"
        yield Repetition(reason, "Rename or remove one of them.")


def _refuse_unsupported_types(model: Function) -> None:
    """Raise `InvalidModelError` for the first type that the engine does not manage; tables are named as such."""
    places = [*((f"parameter {parameter.name}", parameter.data_type) for parameter in model.parameters)]
    for place, data_type in [*places, ("result", model.returns)]:
        if unsupported := first_unsupported(data_type):
            is_table = unsupported.text.strip().lower().startswith("table")
            reason = "the engine does not manage table functions" if is_table else unsupported.reason
            raise InvalidModelError(
                f"function {model.qualified_name}, {place}: type {unsupported.text!r} cannot be used: {reason}",
                location=model.declared_at,
                way_out=_fix_of_type(unsupported.meant, is_table=is_table),
            )


def _fix_of_type(meant: str, *, is_table: bool) -> str:
    if is_table:
        return "Declare a view, or create the function with your own job."
    return f"Did you mean {meant!r}?" if meant else "Use a Spark SQL type, such as bigint or decimal(18,2)."


def _refuse_repetitions(model: Function) -> None:
    for reason, way_out, _ in repeated_parameters(model.parameters):
        raise InvalidModelError(
            f"function {model.qualified_name}: {reason}", location=model.declared_at, way_out=way_out
        )
