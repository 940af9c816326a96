"""Golden cases: folders with a model, an observed state, and what must come of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delta_engine.actions import TablePlan
from delta_engine.compile.planner import TablePlanner
from delta_engine.config.model_files import load_models
from delta_engine.config.settings import BackendType, Settings
from delta_engine.config.state_backend import default_state_backend
from delta_engine.errors import SourceLocation
from delta_engine.models import Column, PrimaryKey, Table
from delta_engine.policy import Policy
from delta_engine.state.states import ABSENT, CatalogState, TableState

FOLDER = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class GoldenCase:
    """One folder under `golden/`."""

    folder: Path

    @property
    def model(self) -> Table:
        """The one model of `desired.yml`."""
        (model,) = load_models(settings_for(self.folder, yaml="desired.yml"))
        return model

    @property
    def state(self) -> TableState:
        """The state of `observed.json`, where null is an absent table."""
        return state_from_json(json.loads((self.folder / "observed.json").read_text("utf-8")))

    @property
    def last_applied(self) -> dict[str, Table]:
        """The model of `last_applied.yml` by its key; empty for tables that were never applied."""
        if not (self.folder / "last_applied.yml").exists():
            return {}
        (model,) = load_models(settings_for(self.folder, yaml="last_applied.yml"))
        return {model.qualified_name.key: model}

    def plan(self) -> TablePlan:
        """Return the plan for the case."""
        model = self.model
        state = CatalogState(tables={model.qualified_name.key: self.state})
        return TablePlanner().plan([model], state, self.last_applied)


def golden_cases() -> list[GoldenCase]:
    """Return all cases, sorted by name."""
    return [GoldenCase(path.parent) for path in sorted(FOLDER.glob("*/desired.yml"))]


def settings_for(project_dir: Path, *, yaml: str, **variables: str) -> Settings:
    """Return settings of a project that has YAML models and nothing else."""
    return Settings(
        environment="test",
        project_dir=project_dir,
        backend=BackendType.EMBEDDED,
        warehouse=project_dir / "warehouse",
        spark={},
        variables={"catalog": "dev", **variables},
        python_models=(),
        yaml_models=(yaml,),
        default_table_properties={},
        policy=Policy(),
        parallelism=1,
        state_backend=default_state_backend(project_dir),
        location=SourceLocation("conf/test.yml", 1),
    )


def state_from_json(document: Any) -> TableState:
    """Return the state that a JSON document describes."""
    if document is None:
        return ABSENT
    key = document.get("primary_key")
    return TableState(
        columns=tuple(
            Column(c["name"], c["type"], c.get("nullable", True), c.get("comment", ""))
            for c in document["columns"]
        ),
        table_comment=document.get("comment", ""),
        table_properties=document.get("properties", {}),
        primary_key=PrimaryKey(key["columns"], key["name"]) if key else None,
        cluster_by=tuple(document.get("cluster_by", ())),
    )
