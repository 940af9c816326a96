"""Functions as the catalog has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from delta_engine.models import Column, Grants
from delta_engine.models.functions import Function, FunctionLanguage, Parameter
from delta_engine.models.parts import read_only, set_fields, to_grants, to_items
from delta_engine.models.types import DataType
from delta_engine.sql.functions import submitted_body
from delta_engine.state.audits import NO_AUDIT, Audit


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionState:
    """One function as the catalog has it.

    Args:
        exists: False for a missing function; all other fields are then empty.
        returns: None for a missing function.
        body: as the platform shows it; None if it hides the body from the principal.
        is_deterministic: None if the platform shows nothing.
        owner: None if the platform has no owners, or shows none.
        grants: the privileges granted on the function itself, by principal.
        tags: empty where the platform does not show them.
        shows_tags: whether the platform shows tags.
    """

    columns: ClassVar[tuple[Column, ...]] = ()
    exists: bool = True
    returns: DataType | None = None
    body: str | None = None
    parameters: tuple[Parameter, ...] = ()
    language: FunctionLanguage = FunctionLanguage.SQL
    is_deterministic: bool | None = None
    comment: str = ""
    owner: str | None = None
    grants: Grants = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    shows_tags: bool = field(default=True, compare=False)
    audit: Audit = field(default=NO_AUDIT, compare=False)

    def __post_init__(self) -> None:
        set_fields(
            self,
            parameters=to_items(self.parameters, Parameter, "parameters"),
            grants=to_grants(self.grants),
            tags=read_only(self.tags),
        )

    @property
    def signature(self) -> tuple[DataType, ...]:
        """The types of the parameters; see `Function.signature`."""
        return tuple(parameter.data_type for parameter in self.parameters)


ABSENT_FUNCTION = FunctionState(exists=False)


def function_state_of(function: Function) -> FunctionState:
    """Return the state of a function that is exactly as its model declares it."""
    return FunctionState(
        returns=function.returns,
        body=submitted_body(function),
        parameters=function.parameters,
        language=function.language,
        is_deterministic=function.is_deterministic,
        comment=function.comment,
        owner=function.owner,
        grants=function.grants,
        tags=function.tags,
    )
