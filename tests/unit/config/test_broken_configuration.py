"""Configuration and model files that are broken in one place: they are loaded or refused, with the place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_engine.errors import RefusalGroup, RefusedError
from delta_engine.orchestrate.project import load_project
from tests.builders.broken_documents import broken_copies, nested

CONFIG: Final = {
    "environment": "dev",
    "backend": {"type": "databricks", "leave_out": []},
    "variables": {"catalog": "dev"},
    "models": {"python": [], "yaml": ["conf/models/*.yml"]},
    "state_backend": {
        "type": "hybrid",
        "local": {"path": "state"},
        "remote": {"type": "s3", "bucket": "states", "prefix": "a/b", "region": "eu-central-1"},
        "cache": {"enabled": True, "max_age_seconds": 300},
        "lock": {"type": "dynamodb", "table": "locks"},
    },
    "policy": {
        "allow": ["drop_column:silver.*"],
        "create_schemas": True,
        "tags": "full",
        "drift_severities": [{"severity": "high", "fields": ["comment"], "tables": ["*"]}],
    },
    "drift": {"fail_on": "low", "history_table": "dev.ops.history"},
    "apply": {"parallelism": 4},
    "defaults": {"table_properties": {"delta.appendOnly": "true"}},
}

MODELS: Final = {
    "schemas": [
        {"catalog": "${catalog}", "name": "silver", "tags": {"a": "b"}, "grants": {"all": ["USE SCHEMA"]}}
    ],
    "tables": [
        {
            "catalog": "${catalog}",
            "schema": "silver",
            "name": "orders",
            "comment": "x",
            "columns": [
                {"name": "id", "type": "bigint", "nullable": False, "comment": "x", "tags": {"a": "b"}},
                {"name": "a", "type": "struct<b:int>", "renamed_from": "x", "renamed_fields": {"b": "y"}},
                {"name": "t", "type": "timestamp", "default": "now()"},
                {"name": "c", "type": "date", "generated_as": "cast(t as date)"},
            ],
            "properties": {
                "delta.columnMapping.mode": "name",
                "delta.feature.allowColumnDefaults": "supported",
            },
            "primary_key": {"columns": ["id"], "rely": True},
            "foreign_keys": [
                {"columns": ["id"], "references": "gold.x", "referenced_columns": ["id"], "name": "to_x"}
            ],
            "checks": {"positive": "id > 0"},
            "cluster_by": ["id"],
        },
        {
            "catalog": "${catalog}",
            "schema": "silver",
            "name": "masked",
            "columns": [
                {"name": "id", "type": "bigint", "identity": {"start": 1}},
                {"name": "a", "type": "string", "mask": {"function": "dev.silver.f", "using_columns": []}},
                {"name": "day", "type": "date"},
            ],
            "partitioned_by": ["day"],
            "tags": {"team": "retail"},
            "row_filter": {"function": "dev.silver.f", "columns": ["id"]},
            "owner": "admins",
            "grants": {"readers": ["SELECT"]},
        },
        {"catalog": "dev", "schema": "silver", "name": "theirs", "manages": ["comments", "tags"]},
    ],
}

DRIFT_POLICY: Final = {
    "ignore_drift": [
        {
            "resource": "table.${catalog}.silver.*",
            "fields": ["comment"],
            "reason": "x",
            "expires": "2030-01-01",
            "environments": ["dev"],
        }
    ]
}

FILES: Final = {"dev.yml": CONFIG, "models/m.yml": MODELS, "drift-policy.yml": DRIFT_POLICY}

BROKEN: Final = [
    (name, what, broken) for name, document in FILES.items() for what, broken in broken_copies(document)
]


def refusals(files: Mapping[str, str]) -> tuple[RefusedError, ...]:
    """Return what is refused of a configuration folder with these files."""
    with TemporaryDirectory() as folder:
        conf = Path(folder) / "conf"
        (conf / "models").mkdir(parents=True)
        for name, text in files.items():
            (conf / name).write_text(text)
        try:
            load_project(conf, "dev")
        except RefusalGroup as group:
            return tuple(group.refusals)
        except RefusedError as refused:
            return (refused,)
    return ()


def test_the_files_are_loaded_while_nothing_is_broken() -> None:
    assert refusals({name: json.dumps(document) for name, document in FILES.items()}) == ()


@given(st.sampled_from(BROKEN))
def test_every_broken_file_is_loaded_or_refused_with_its_place(case: tuple[str, str, Any]) -> None:
    name, what, broken = case
    found = refusals({name: json.dumps(document) for name, document in (FILES | {name: broken}).items()})
    assert all(refused.location for refused in found), what


@pytest.mark.parametrize("depth", [100, 1_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_files_without_end_are_refused(brackets: str, depth: int) -> None:
    texts = {name: json.dumps(document) for name, document in FILES.items()}
    (refused,) = refusals(texts | {"dev.yml": nested(brackets, depth)})
    assert refused.location
