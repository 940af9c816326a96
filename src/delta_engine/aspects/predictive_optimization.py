"""Predictive optimization: whether Databricks maintains a managed table, or the tables of a schema, by itself.

Compared if the model names a setting. An object without a setting inherits from its schema, catalog or account (docs:
"Predictive optimization for Unity Catalog managed tables").
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Final, Literal

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, ValueAction, takes_manage, takes_modify, value_aspect
from delta_engine.aspects.facet import Facet, Form
from delta_engine.backends.capabilities import Feature
from delta_engine.models import OPTIMIZATION_SETTINGS, Part, Schema, Table
from delta_engine.sql.governance import sql_set_predictive_optimization
from delta_engine.state.states import SchemaState, TableState

_INHERIT: Final = "inherit"
"""The setting of an object without a setting, and of a new object."""


class ChangePredictiveOptimization(ValueAction[str, str | None]):
    """Enable or disable predictive optimization, or inherit it again."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.SET_TABLE_PROPERTIES
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE


def _own(setting: str | None) -> str | None:
    return None if setting == _INHERIT else setting


_FORM: Form[str | None] = Form(
    recorded_type=str | None,
    written_type=Literal[OPTIMIZATION_SETTINGS] | None,
    words="`enable`, `disable` or `inherit`",
    choices=OPTIMIZATION_SETTINGS,
)

FACET: Facet[Table | Schema, TableState | SchemaState, str | None] = Facet(
    key="predictive_optimization",
    declared=lambda model: model.predictive_optimization,
    absent=None,
    form=_FORM,
    meaning="whether Databricks [maintains](#predictive-optimization) it automatically",
    default="unmanaged",
    observed=lambda state: state.predictive_optimization,
    imported=lambda _name, state: _own(state.predictive_optimization),
    part=Part.PROPERTIES,
    title="predictive optimization",
    feature=Feature.PREDICTIVE_OPTIMIZATION,
)

ASPECT: Aspect[ChangePredictiveOptimization, Table | Schema, TableState | SchemaState] = value_aspect(
    ChangePredictiveOptimization,
    FACET,
    replace(
        takes_modify("ENABLE, DISABLE, INHERIT PREDICTIVE OPTIMIZATION"),
        of_schemas=takes_manage(
            "ALTER SCHEMA … PREDICTIVE OPTIMIZATION",
            "Predictive optimization",
            "ownership of the schema; `MANAGE` may transfer it",
        ),
    ),
    name="predictive optimization",
    is_same=lambda setting, other: setting == (other or _INHERIT),
    statement=sql_set_predictive_optimization,
    described=lambda setting: setting,
    drift_kind=DriftKind.PROPERTY,
    is_in_history=False,
    completes_create=True,
)
