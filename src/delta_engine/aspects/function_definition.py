"""The definition of a function, which CREATE OR REPLACE changes as a whole: nothing else changes body or comment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

import msgspec

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, takes_manage
from delta_engine.aspects.facet import FLAG, OPTIONAL_TEXT, REQUIRED, TEXT, Facet, Form, Place
from delta_engine.aspects.whole_definitions import (
    DefinitionPart,
    definition_aspect,
    shown_text,
)
from delta_engine.models import Function, FunctionLanguage, Parameter
from delta_engine.models.open_struct import OpenStruct
from delta_engine.models.type_forms import to_data_type
from delta_engine.models.type_text import type_schema
from delta_engine.models.types import DataType, is_same_type
from delta_engine.sql.functions import (
    function_securable,
    sql_create_function,
    sql_set_function_tag,
    submitted_body,
    submitted_text,
)
from delta_engine.sql.governance import sql_grant, sql_set_owner
from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.sql.text import shown_type
from delta_engine.state.function_states import FunctionState


@dataclass(frozen=True, slots=True)
class FunctionUse:
    """A use of a function by the mask of a column, by the row filter of a table, or by another function for them.

    Args:
        table: its key; empty for the unknown tables that a policy may reach.
        column: its key; None for the rows.
        policy: the policy that calls it, in lower case; empty for the table's own filter or mask.
        is_before: whether the function is used there before the plan.
        is_after: whether it is used there afterwards.
    """

    table: str
    column: str | None
    policy: str = ""
    is_before: bool = True
    is_after: bool = True

    def __str__(self) -> str:
        if not self.table:
            return f"policy {self.policy}"
        what = f"the rows of {self.table}" if self.column is None else f"{self.table}.{self.column}"
        return f"{what} (policy {self.policy})" if self.policy else what


@dataclass(frozen=True, slots=True)
class ReplaceFunction:
    """Replace the definition of a function. What reads through it may see other values or rows than before.

    Args:
        parts: the keys of the facets that differ.
        uses: where it is used, before or after the plan.
        left: the keys of functions that it calls before the plan and not afterwards, directly or not.
        gained: those that it calls afterwards and not before.
        read_by: the views that call it.
    """

    phase: ClassVar[Phase] = Phase.REPLACE_DEFINITION
    desired: Function
    observed: FunctionState = field(hash=False)
    parts: tuple[str, ...]
    uses: tuple[FunctionUse, ...] = field(default=(), compare=False)
    left: frozenset[str] = field(default=frozenset(), compare=False)
    gained: frozenset[str] = field(default=frozenset(), compare=False)
    read_by: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError(f"{self.desired.qualified_name} has this definition already")

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """None if only the comment changes."""
        return SAFE if self.parts == (COMMENT_FACET.key,) else (Hazard.BREAKS_READERS,)

    @property
    def changes_body(self) -> bool:
        """Whether it may return something else than before."""
        defaults, others = (
            [(parameter.key, parameter.default) for parameter in parameters]
            for parameters in (self.desired.parameters, self.observed.parameters)
        )
        is_other = any(key in self.parts for key in (BODY_FACET.key, LANGUAGE_FACET.key))
        return is_other or (PARAMETERS_FACET.key in self.parts and defaults != others)

    @property
    def changes_signature(self) -> bool:
        """Whether it takes parameters of other types, which CREATE OR REPLACE refuses."""
        types, others = self.desired.signature, self.observed.signature
        return len(types) != len(others) or not all(map(is_same_type, types, others))

    @property
    def changes_result(self) -> bool:
        """Whether it returns another type."""
        return RETURNS_FACET.key in self.parts


class ParameterDefinition(OpenStruct, frozen=True, kw_only=True):
    """A parameter; the type as SQL."""

    name: str
    type: str
    default: str | None = None
    comment: str = ""


class WrittenParameter(msgspec.Struct, forbid_unknown_fields=True):
    """A parameter of a function.

    Args:
        name: its name; compares without case.
        type: its SQL type.
        default: the SQL expression for calls without the argument; without it, the argument is mandatory.
        comment: its comment; empty means none.
    """

    name: str
    type: Annotated[str, msgspec.Meta(extra_json_schema=dict(type_schema()))]
    default: str | None = None
    comment: str = ""


def _read_language(place: Place, name: str) -> FunctionLanguage:
    languages = {language.value: language for language in FunctionLanguage}
    if name.lower() not in languages:
        reason = f"the engine does not manage functions in {name!r}"
        raise place.error(
            reason, f"Use one of: {', '.join(languages)}. Or create the function with your own job."
        )
    return languages[name.lower()]


def _define_parameters(parameters: Sequence[Parameter]) -> tuple[ParameterDefinition, ...]:
    return tuple(
        ParameterDefinition(
            name=parameter.name,
            type=shown_type(parameter.data_type),
            default=parameter.default,
            comment=parameter.comment,
        )
        for parameter in parameters
    )


def _as_parameters(definitions: Sequence[ParameterDefinition | WrittenParameter]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(parameter.name, parameter.type, parameter.default, parameter.comment)
        for parameter in definitions
    )


def _is_same_parameters(parameters: Sequence[Parameter], others: Sequence[Parameter]) -> bool:
    return len(parameters) == len(others) and all(map(_is_same_parameter, parameters, others))


def _is_same_parameter(parameter: Parameter, other: Parameter) -> bool:
    return (
        parameter.key == other.key
        and is_same_type(parameter.data_type, other.data_type)
        and _submitted_default(parameter) == _submitted_default(other)
        and parameter.comment == other.comment
    )


def _submitted_default(parameter: Parameter) -> str | None:
    return None if parameter.default is None else with_portable_literals(parameter.default.strip())


def _shown_parameters(parameters: Sequence[Parameter]) -> str | None:
    return ", ".join(map(_shown_parameter, parameters)) or None


def _shown_parameter(parameter: Parameter) -> str:
    default = "" if parameter.default is None else f" = {shown_text(parameter.default)}"
    comment = f" {parameter.comment!r}" if parameter.comment else ""
    return f"{parameter.name} {shown_type(parameter.data_type)}{default}{comment}"


def _is_same_returns(data_type: DataType | None, other: DataType | None) -> bool:
    return data_type == other or (
        data_type is not None and other is not None and is_same_type(data_type, other)
    )


def _replacement(action: ReplaceFunction) -> Iterator[str]:
    """Yield the replacement, and what gives back all grants, tags and the owner, which it may lose.

    Whether it does is not documented (docs/assumptions.md). What was not lost stays as it is.
    """
    name, observed = action.desired.qualified_name, action.observed
    yield sql_create_function(action.desired, replaces=True)
    for principal, privileges in observed.grants.items():
        yield sql_grant(function_securable(name), privileges, principal)
    for key, value in observed.tags.items():
        yield sql_set_function_tag(name, key, value)
    if observed.owner is not None:
        yield sql_set_owner(function_securable(name), observed.owner)


_TYPE: Form[DataType | None] = Form(
    recorded_type=str | None,
    encode=lambda data_type: None if data_type is None else shown_type(data_type),
    decode=lambda text: None if text is None else to_data_type(text),
    written_type=str,
    write=lambda data_type: None if data_type is None else shown_type(data_type),
    words="string",
    schema=type_schema(),
)

_LANGUAGE: Form[FunctionLanguage] = Form(
    recorded_type=str,
    encode=lambda language: language.value,
    decode=FunctionLanguage,
    written_type=str,
    read=_read_language,
    write=lambda language: language.value,
    words="`sql` or `python`",
    schema={"enum": [language.value for language in FunctionLanguage]},
    choices=(FunctionLanguage.PYTHON,),
)

PARAMETERS_FACET: Facet[Function, FunctionState, tuple[Parameter, ...]] = Facet(
    key="parameters",
    declared=lambda model: model.parameters,
    observed=lambda state: state.parameters,
    absent=(),
    form=Form(
        recorded_type=tuple[ParameterDefinition, ...],
        encode=_define_parameters,
        decode=_as_parameters,
        written_type=list[WrittenParameter],
        read=lambda _place, written: _as_parameters(written),
        write=lambda parameters: [*map(msgspec.to_builtins, _define_parameters(parameters))],
        words="list of mappings",
    ),
    meaning="its parameters, each with `name`, `type` and optionally `default` and `comment`",
    entry="parameter",
    constructor="Parameter",
)

RETURNS_FACET: Facet[Function, FunctionState, DataType | None] = Facet(
    key="returns",
    declared=lambda model: model.returns,
    observed=lambda state: state.returns,
    absent=None,
    form=_TYPE,
    meaning="the [type](#types) of its result",
    default=REQUIRED,
)

LANGUAGE_FACET: Facet[Function, FunctionState, FunctionLanguage] = Facet(
    key="language",
    declared=lambda model: model.language,
    observed=lambda state: state.language,
    absent=FunctionLanguage.SQL,
    form=_LANGUAGE,
    meaning="the language of its body: `sql` or `python`",
    default="`sql`",
)

DETERMINISTIC_FACET: Facet[Function, FunctionState, bool | None] = Facet(
    key="deterministic",
    argument="is_deterministic",
    declared=lambda model: model.is_deterministic,
    observed=lambda state: state.is_deterministic,
    absent=None,
    form=Form(recorded_type=bool | None, written_type=bool | None, words=FLAG.words),
    meaning="whether it always returns the same result for the same arguments",
    default="the platform decides",
    imported=lambda _name, _state: None,  # platforms show one for every function
)

BODY_FACET: Facet[Function, FunctionState, str | None] = Facet(
    key="body",
    declared=lambda model: model.body,
    observed=lambda state: None if state.body is None else submitted_text(state.language, state.body),
    absent="",
    form=Form(
        recorded_type=str,
        encode=lambda body: body or "",
        written_type=str,
        write=lambda body: body or None,
        words="string",
    ),
    meaning="a SQL expression or query without RETURN, or the statements of a Python function",
    default="the content of `body_file`",
    written=lambda model: None if model.body_file is not None else model.body or None,
    recorded=submitted_body,
    imported=lambda _name, state: state.body or "",
)

BODY_FILE_FACET: Facet[Function, FunctionState, str | None] = Facet(
    key="body_file",
    declared=lambda model: model.body_file,
    absent=None,
    form=OPTIONAL_TEXT,
    meaning="the file with its body instead of `body`, relative to the model file",
    default="none",
)

COMMENT_FACET: Facet[Function, FunctionState, str] = Facet(
    key="comment",
    declared=lambda model: model.comment,
    observed=lambda state: state.comment,
    absent="",
    form=TEXT,
    meaning="its comment; empty means none",
)

_SIGNATURE: Final = DriftKind.FUNCTION_SIGNATURE
_PARTS: Final = (
    DefinitionPart(
        facet=PARAMETERS_FACET,
        drift_kind=_SIGNATURE,
        is_same=_is_same_parameters,
        described=_shown_parameters,
    ),
    DefinitionPart(
        facet=RETURNS_FACET,
        drift_kind=_SIGNATURE,
        is_same=_is_same_returns,
        described=_TYPE.encode,
    ),
    DefinitionPart(
        facet=LANGUAGE_FACET, drift_kind=DriftKind.FUNCTION_BODY, described=lambda language: language.value
    ),
    DefinitionPart(
        facet=DETERMINISTIC_FACET,
        drift_kind=_SIGNATURE,
        described=lambda flag: None if flag is None else str(flag).lower(),
        is_managed=lambda flag: flag is not None,
        may_be_hidden=True,
    ),
    DefinitionPart(
        facet=BODY_FACET, drift_kind=DriftKind.FUNCTION_BODY, described=shown_text, may_be_hidden=True
    ),
    DefinitionPart(facet=COMMENT_FACET, drift_kind=DriftKind.FUNCTION_COMMENT, described=shown_text),
)

ASPECT: Aspect[ReplaceFunction, Function, FunctionState] = definition_aspect(
    ReplaceFunction,
    _PARTS,
    {
        ReplaceFunction: takes_manage(
            "CREATE OR REPLACE FUNCTION", "CREATE FUNCTION (SQL and Python)", "ownership of the function"
        )
    },
    name="function definition",
    statements=_replacement,
)
