"""Random histories of an environment: what its models declare, what others do, what the engine runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from hypothesis import strategies as st

from delta_engine.actions.drift_policy import DriftHandling, Severity
from delta_engine.actions.policy import ColumnOrder, Ownership
from delta_engine.models import CheckConstraint, Column, PrimaryKey, Table

_MAPPED = {"delta.columnMapping.mode": "name", "delta.feature.allowColumnDefaults": "supported"}

FACETS: Mapping[str, Sequence[object]] = {
    "comment": ("", "one", "two"),
    "column comment": ("", "one"),
    "default": (None, "1", "2"),
    "required": (False, True),
    "clustering": ((), ("id",), ("x",)),
    "key": (False, True),
    "check": (None, "`x` > 0", "`x` > 1"),
    "property": (None, "1", "2"),
    "tag": (None, "1", "2"),
    "column tag": (None, "1"),
    "grant": (False, True),
    "owner": (None, "lee"),
    "second column": (None, "y", "z"),  # z is y renamed
    "third column": (None, "n"),
    "is reversed": (False, True),
    "declared": (True, False),
}
"""What models may say, the plainest first."""

POLICIES: Mapping[str, Sequence[object]] = {
    "tags": tuple(Ownership),
    "grants": tuple(Ownership),
    "column_order": tuple(ColumnOrder),
    "allow": ("everything", "nothing"),
    "handling": tuple(DriftHandling),
    "refused_from": tuple(reversed(Severity)),
}

_CREATE = "CREATE TABLE {t} (`id` BIGINT NOT NULL, `x` INT%s) USING DELTA%s TBLPROPERTIES (" + (
    ", ".join(f"'{key}' = '{value}'" for key, value in _MAPPED.items()) + ")"
)

BY_HAND: Mapping[str, str] = {
    "comment": "COMMENT ON TABLE {t} IS 'theirs'",
    "comment like a model": "COMMENT ON TABLE {t} IS 'one'",
    "no comment": "COMMENT ON TABLE {t} IS ''",
    "column comment": "ALTER TABLE {t} ALTER COLUMN `x` COMMENT 'theirs'",
    "no column comment": "ALTER TABLE {t} ALTER COLUMN `x` COMMENT ''",
    "default": "ALTER TABLE {t} ALTER COLUMN `x` SET DEFAULT 7",
    "no default": "ALTER TABLE {t} ALTER COLUMN `x` DROP DEFAULT",
    "required": "ALTER TABLE {t} ALTER COLUMN `x` SET NOT NULL",
    "not required": "ALTER TABLE {t} ALTER COLUMN `x` DROP NOT NULL",
    "clustering": "ALTER TABLE {t} CLUSTER BY (`x`)",
    "no clustering": "ALTER TABLE {t} CLUSTER BY NONE",
    "key": "ALTER TABLE {t} ADD CONSTRAINT `{name}_theirs` PRIMARY KEY (`id`)",
    "no key": "ALTER TABLE {t} DROP CONSTRAINT `{name}_theirs`",
    "no key of the model": "ALTER TABLE {t} DROP CONSTRAINT `{name}_pk`",
    "check": "ALTER TABLE {t} ADD CONSTRAINT `small` CHECK (`x` < 9)",
    "no check": "ALTER TABLE {t} DROP CONSTRAINT `small`",
    "check like a model": "ALTER TABLE {t} ADD CONSTRAINT `positive` CHECK (`x` > 5)",
    "no check of the model": "ALTER TABLE {t} DROP CONSTRAINT `positive`",
    "property": "ALTER TABLE {t} SET TBLPROPERTIES ('p' = 'theirs')",
    "no property": "ALTER TABLE {t} UNSET TBLPROPERTIES ('p')",
    "property of the platform": "ALTER TABLE {t} SET TBLPROPERTIES ('delta.lastCommitTimestamp' = '1')",
    "tag": "ALTER TABLE {t} SET TAGS ('t' = 'theirs')",
    "another tag": "ALTER TABLE {t} SET TAGS ('theirs' = '1')",
    "no tag": "ALTER TABLE {t} UNSET TAGS ('t')",
    "column tag": "ALTER TABLE {t} ALTER COLUMN `x` SET TAGS ('t' = 'theirs')",
    "another column tag": "ALTER TABLE {t} ALTER COLUMN `x` SET TAGS ('theirs' = '1')",
    "grant": "GRANT SELECT ON TABLE {t} TO `them`",
    "no grant of the model": "REVOKE SELECT ON TABLE {t} FROM `us`",
    "owner": "ALTER TABLE {t} OWNER TO `kim`",
    "add n": "ALTER TABLE {t} ADD COLUMNS (`n` INT)",
    "add n with a comment": "ALTER TABLE {t} ADD COLUMNS (`n` INT COMMENT 'theirs')",
    "drop x": "ALTER TABLE {t} DROP COLUMN `x`",
    "drop y": "ALTER TABLE {t} DROP COLUMN `y`",
    "drop n": "ALTER TABLE {t} DROP COLUMN `n`",
    "rename x": "ALTER TABLE {t} RENAME COLUMN `x` TO `n`",
    "rename y": "ALTER TABLE {t} RENAME COLUMN `y` TO `z`",
    "rename n": "ALTER TABLE {t} RENAME COLUMN `n` TO `x`",
    "move x": "ALTER TABLE {t} ALTER COLUMN `x` FIRST",
    "cluster by n": "ALTER TABLE {t} CLUSTER BY (`n`)",
    "drop": "DROP TABLE {t}",
    "create": _CREATE % ("", ""),
    "create with more": _CREATE % (" COMMENT 'theirs'", " COMMENT 'theirs' CLUSTER BY (`x`)"),
}
"""Statements of others. The catalog refuses those that do not fit."""


class Declare(NamedTuple):
    """Changes a facet of a model."""

    table: str
    facet: str
    value: object


class ByHand(NamedTuple):
    """Changes a table outside the engine."""

    table: str
    change: str


class Configure(NamedTuple):
    """Changes the policy."""

    key: str
    value: object


class Sync(NamedTuple):
    """Syncs; the statement at a place fails, or the run is killed there."""

    fails_at: int | None = None
    is_killed: bool = False


class Accept(NamedTuple):
    """Accepts all drift; the edited models are merged or thrown away."""

    is_merged: bool


class Revert(NamedTuple):
    """Reverts all drift."""


Step: TypeAlias = Declare | ByHand | Configure | Sync | Accept | Revert


def modelled(name: str, facets: Mapping[str, Any]) -> Table:
    """Return the model with some facets; all others are the plainest."""
    said: dict[str, Any] = {facet: facets.get(facet, values[0]) for facet, values in FACETS.items()}
    columns = [
        Column("id", "bigint", is_nullable=False),
        Column(
            "x",
            "int",
            not said["required"],
            said["column comment"],
            default=said["default"],
            tags=_entry("t", said["column tag"]),
        ),
    ]
    if said["second column"]:
        former = "y" if said["second column"] == "z" else None
        columns.append(Column(said["second column"], "string", renamed_from=former))
    if said["third column"]:
        columns.append(Column(said["third column"], "int"))
    return Table(
        "dev",
        "silver",
        name,
        columns[::-1] if said["is reversed"] else columns,
        comment=said["comment"],
        cluster_by=said["clustering"],
        primary_key=PrimaryKey(["id"], f"{name}_pk") if said["key"] else None,
        checks=[CheckConstraint("positive", said["check"])] if said["check"] else (),
        table_properties={**_MAPPED, **_entry("p", said["property"])},
        tags=_entry("t", said["tag"]),
        grants={"us": ["SELECT"]} if said["grant"] else {},
        owner=said["owner"],
    )


def _entry(key: str, value: str | None) -> dict[str, str]:
    return {} if value is None else {key: value}


def _each_of(choices: Mapping[str, Sequence[object]]) -> list[tuple[str, object]]:
    return [(key, value) for key, values in choices.items() for value in values]


_TABLES = "aaaaab"
"""Most steps are about one table: histories are short."""

FIRST_DECLARATIONS: st.SearchStrategy[list[Step]] = st.lists(
    st.sampled_from([Declare("a", *one) for one in _each_of(FACETS)]), max_size=4
)

_BY_HAND = st.sampled_from([ByHand(table, change) for table in _TABLES for change in BY_HAND])
_COMMANDS: list[Step] = [Accept(is_merged=True), Accept(is_merged=False), Revert()]
_FAULTS: list[Step] = [Sync(place, is_killed) for is_killed in (False, True) for place in range(6)]

HISTORIES: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.sampled_from([Declare(table, *one) for table in _TABLES for one in _each_of(FACETS)]),
        _BY_HAND,
        _BY_HAND,
        st.sampled_from([*(Configure(*one) for one in _each_of(POLICIES)), *_COMMANDS * 3]),
        st.just(Sync()),
        st.sampled_from(_FAULTS),
    ),
    min_size=3,
    max_size=8,
)
