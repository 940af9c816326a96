"""A team: a project with its newest models, and the deployment state, the journals and the lock of its environment."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from delta_engine.models import Function, Table
from delta_engine.models.functions import Parameter
from delta_engine.plan_files.document import PlanFile
from delta_engine.validation.validator import PlanValidator
from tests.builders.histories import modelled
from tests.simulation.ports import Documents, Journals, LockRecordOfAll
from tests.simulation.scenarios import BODIES, FUNCTION, MOVED, Edit
from tests.simulation.volumes import Volume, VolumeDocuments, VolumeJournals, VolumeLock


class Team:
    """The owner of a project.

    Attributes:
        facets: what the newest models declare, by the names of tables.
        function: what the newest model of the function declares; nothing before a commit is about it.
        plan_files: the files of all plans, in order.
    """

    def __init__(self, name: str, facets: dict[str, dict[str, object]], is_on_databricks: bool) -> None:
        self.name = name
        self.facets = facets
        self.function: dict[str, Any] = {}
        self.plan_files: list[PlanFile] = []
        volume = Volume()
        self.documents = VolumeDocuments(volume) if is_on_databricks else Documents()
        self.journals = VolumeJournals(volume) if is_on_databricks else Journals()
        self.lock = VolumeLock(volume) if is_on_databricks else LockRecordOfAll()

    @property
    def models(self) -> list[Table]:
        """The newest models of tables."""
        return models_of(self.facets)

    @property
    def others(self) -> tuple[Function, ...]:
        """The newest models of functions: one, once a commit is about it."""
        return (_function(**self.function),) if self.function else ()

    def commit(self, edit: Edit) -> bool:
        """Change a model; return whether the models are valid with the change."""
        if edit.table == FUNCTION:
            self.function = {"body": BODIES[0], **self.function, edit.facet: edit.value}
            return True
        former = self.facets[edit.table]
        name = {"name": former["name"]} if former.get("name") else {}  # a table is not renamed back
        new_name = {"name": "2"} if edit.facet == MOVED else {}
        facets = {**self.facets, edit.table: {**former, edit.facet: edit.value, **name, **new_name}}
        is_valid = _are_valid(tuple((name, tuple(sorted(said.items()))) for name, said in facets.items()))
        self.facets = facets if is_valid else self.facets
        return is_valid


def models_of(facets: dict[str, dict[str, Any]]) -> list[Table]:
    """Return the models of tables that are declared."""
    return [
        _modelled(name, tuple(sorted(facets_of_table.items())))
        for name, facets_of_table in facets.items()
        if facets_of_table.get("declared", True)
    ]


@cache
def _modelled(name: str, facets: tuple[tuple[str, object], ...]) -> Table:
    model, said = modelled(name, dict(facets)), dict(facets)
    return replace(model, renamed_from=()) if said.get(MOVED) else model


@cache
def _are_valid(facets: tuple[tuple[str, tuple[tuple[str, object], ...]], ...]) -> bool:
    models = models_of({name: dict(said) for name, said in facets})
    names = {model.key for model in models}
    parents = {key.references for model in models for key in model.foreign_keys}
    return parents <= names and not any(PlanValidator().model_violations(models))


@cache
def _function(body: str, grant: bool = False) -> Function:
    return Function(
        "dev",
        "silver",
        FUNCTION,
        "bigint",
        body,
        [Parameter("n", "bigint")],
        grants={"us": ["EXECUTE"]} if grant else {},
    )
