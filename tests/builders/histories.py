"""Random histories of an environment: what its models declare, what others do, what the engine runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from hypothesis import strategies as st

from delta_engine.actions.drift_policy import DriftHandling, Severity
from delta_engine.actions.policy import ColumnOrder, Ownership
from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    PrimaryKey,
    RowFilter,
    Schema,
    Table,
)

_FEATURES = {
    "delta.columnMapping.mode": "name",
    "delta.enableTypeWidening": "true",
    "delta.feature.allowColumnDefaults": "supported",
}
"""What changes of columns need. Every table has it."""

FACETS: Mapping[str, Sequence[object]] = {
    "comment": ("", "one", "two"),
    "column comment": ("", "one"),
    "default": (None, "1", "2"),
    "required": (False, True),
    "type": ("int", "bigint"),
    "clustering": ((), ("id",), ("x",)),
    "key": (False, True),
    "reference": (False, True),
    "check": (None, "`x` > 0", "`x` > 1"),
    "mask": (None, "hide", "blank"),
    "row filter": (None, "seen", "mine"),
    "property": (None, "1", "2"),
    "tag": (None, "1", "2"),
    "column tag": (None, "1"),
    "grant": (False, True),
    "owner": (None, "lee"),
    "second column": (None, "y", "z"),  # z is y renamed
    "third column": (None, "n"),
    "struct": (
        None,
        "struct<a: int>",
        "struct<a: int, n: int>",
        "struct<a: bigint>",
        "struct<a: int comment 'one'>",
        "struct<a: int, o: int comment 'one'>",
        "struct<a: int, p: int>",  # p is o renamed
        "struct<a: int, p: int comment 'one'>",
    ),
    "is reversed": (False, True),
    "name": ("", "2"),  # what is added to the name: the table is renamed
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
    ", ".join(f"'{key}' = '{value}'" for key, value in _FEATURES.items()) + ")"
)

BY_HAND: Mapping[str, str] = {
    "comment": "COMMENT ON TABLE {t} IS 'theirs'",
    "comment like a model": "COMMENT ON TABLE {t} IS 'one'",
    "no comment": "COMMENT ON TABLE {t} IS ''",
    "column comment": "ALTER TABLE {t} ALTER COLUMN `x` COMMENT 'theirs'",
    "no column comment": "ALTER TABLE {t} ALTER COLUMN `x` COMMENT ''",
    "comment of y": "ALTER TABLE {t} ALTER COLUMN `y` COMMENT 'theirs'",
    "default": "ALTER TABLE {t} ALTER COLUMN `x` SET DEFAULT 7",
    "no default": "ALTER TABLE {t} ALTER COLUMN `x` DROP DEFAULT",
    "required": "ALTER TABLE {t} ALTER COLUMN `x` SET NOT NULL",
    "not required": "ALTER TABLE {t} ALTER COLUMN `x` DROP NOT NULL",
    "type": "ALTER TABLE {t} ALTER COLUMN `x` TYPE BIGINT",
    "type of n": "ALTER TABLE {t} ALTER COLUMN `n` TYPE BIGINT",
    "clustering": "ALTER TABLE {t} CLUSTER BY (`x`)",
    "no clustering": "ALTER TABLE {t} CLUSTER BY NONE",
    "key": "ALTER TABLE {t} ADD CONSTRAINT `{name}_theirs` PRIMARY KEY (`id`)",
    "no key": "ALTER TABLE {t} DROP CONSTRAINT `{name}_theirs`",
    "no key of the model": "ALTER TABLE {t} DROP CONSTRAINT `{name}_pk`",
    "reference": "ALTER TABLE {t} ADD CONSTRAINT `{name}_to_b` FOREIGN KEY (`id`) REFERENCES `dev`.`silver`.`b` (`id`)",
    "no reference": "ALTER TABLE {t} DROP CONSTRAINT `{name}_to_b`",
    "no reference of the model": "ALTER TABLE {t} DROP CONSTRAINT `{name}_fk`",
    "check": "ALTER TABLE {t} ADD CONSTRAINT `small` CHECK (`x` < 9)",
    "no check": "ALTER TABLE {t} DROP CONSTRAINT `small`",
    "check like a model": "ALTER TABLE {t} ADD CONSTRAINT `positive` CHECK (`x` > 5)",
    "no check of the model": "ALTER TABLE {t} DROP CONSTRAINT `positive`",
    "mask": "ALTER TABLE {t} ALTER COLUMN `x` SET MASK `dev`.`silver`.`theirs`",
    "mask like a model": "ALTER TABLE {t} ALTER COLUMN `x` SET MASK `dev`.`silver`.`hide`",
    "mask with n": "ALTER TABLE {t} ALTER COLUMN `x` SET MASK `dev`.`silver`.`theirs` USING COLUMNS (`n`)",
    "mask of n": "ALTER TABLE {t} ALTER COLUMN `n` SET MASK `dev`.`silver`.`theirs`",
    "no mask": "ALTER TABLE {t} ALTER COLUMN `x` DROP MASK",
    "row filter": "ALTER TABLE {t} SET ROW FILTER `dev`.`silver`.`theirs` ON (`x`)",
    "row filter on n": "ALTER TABLE {t} SET ROW FILTER `dev`.`silver`.`theirs` ON (`n`)",
    "row filter like a model": "ALTER TABLE {t} SET ROW FILTER `dev`.`silver`.`seen` ON (`x`)",
    "no row filter": "ALTER TABLE {t} DROP ROW FILTER",
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
    "add s": "ALTER TABLE {t} ADD COLUMNS (`s` STRUCT<`a`: INT, `n`: INT>)",
    "drop s": "ALTER TABLE {t} DROP COLUMN `s`",
    "add s.a": "ALTER TABLE {t} ADD COLUMNS (`s`.`a` INT)",
    "add s.n": "ALTER TABLE {t} ADD COLUMNS (`s`.`n` INT COMMENT 'theirs')",
    "add s.m": "ALTER TABLE {t} ADD COLUMNS (`s`.`m` INT)",
    "drop s.a": "ALTER TABLE {t} DROP COLUMN `s`.`a`",
    "drop s.n": "ALTER TABLE {t} DROP COLUMN `s`.`n`",
    "drop s.o": "ALTER TABLE {t} DROP COLUMN `s`.`o`",
    "rename s.a": "ALTER TABLE {t} RENAME COLUMN `s`.`a` TO `n`",
    "rename s.n": "ALTER TABLE {t} RENAME COLUMN `s`.`n` TO `a`",
    "rename s.o": "ALTER TABLE {t} RENAME COLUMN `s`.`o` TO `n`",
    "rename s.o like a model": "ALTER TABLE {t} RENAME COLUMN `s`.`o` TO `p`",
    "type of s.a": "ALTER TABLE {t} ALTER COLUMN `s`.`a` TYPE BIGINT",
    "comment of s.a": "ALTER TABLE {t} ALTER COLUMN `s`.`a` COMMENT 'theirs'",
    "comment of s.o": "ALTER TABLE {t} ALTER COLUMN `s`.`o` COMMENT 'theirs'",
    "no comment of s.a": "ALTER TABLE {t} ALTER COLUMN `s`.`a` COMMENT ''",
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
            said["type"],
            not said["required"],
            said["column comment"],
            default=said["default"],
            tags=_entry("t", said["column tag"]),
            mask=ColumnMask(f"dev.silver.{said['mask']}") if said["mask"] else None,
        ),
    ]
    if said["second column"]:
        former = "y" if said["second column"] == "z" else None
        columns.append(Column(said["second column"], "string", renamed_from=former))
    if said["third column"]:
        columns.append(Column(said["third column"], "int"))
    if said["struct"]:
        renamed = {"p": "o"} if " p:" in said["struct"] else {}
        columns.append(Column("s", said["struct"], renamed_fields=renamed))
    return Table(
        "dev",
        "silver",
        f"{name}{said['name']}",
        columns[::-1] if said["is reversed"] else columns,
        comment=said["comment"],
        cluster_by=said["clustering"],
        primary_key=PrimaryKey(["id"], f"{name}_pk") if said["key"] else None,
        foreign_keys=[_reference(name)] if said["reference"] else (),
        checks=[CheckConstraint("positive", said["check"])] if said["check"] else (),
        row_filter=RowFilter(f"dev.silver.{said['row filter']}", ["x"]) if said["row filter"] else None,
        table_properties={**_FEATURES, **_entry("p", said["property"])},
        tags=_entry("t", said["tag"]),
        grants={"us": ["SELECT"]} if said["grant"] else {},
        owner=said["owner"],
        renamed_from=name if said["name"] else None,
    )


def modelled_schema(facets: Mapping[str, Any]) -> Schema:
    """Return the model of the schema with some facets."""
    return Schema(
        "dev",
        "silver",
        facets.get("comment") or None,
        tags=_entry("t", facets.get("tag")),
        grants={"us": ["SELECT"]} if facets.get("grant") else {},
        owner=facets.get("owner"),
    )


def statement_by_hand(change: str, name: str, present: str) -> str:
    """Return the statement of a change to a table, by its name at first and its present one, or to the schema."""
    if name == "silver":
        return BY_HAND[change].replace(" TABLE ", " SCHEMA ", 1).format(t="`dev`.`silver`", name=name)
    return BY_HAND[change].format(t=f"`dev`.`silver`.`{present}`", name=name)


def _reference(name: str) -> ForeignKey:
    other = "a" if name == "b" else "b"
    return ForeignKey(["id"], f"dev.silver.{other}", ["id"], f"{name}_fk")


def _entry(key: str, value: str | None) -> dict[str, str]:
    return {} if value is None else {key: value}


_TABLES = "aaaaab"
"""Most steps are about one table: histories are short."""

TOPICS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "comment": (["comment"], ["comment", "comment like a model", "no comment"]),
    "column comment": (["column comment"], ["column comment", "no column comment"]),
    "default": (["default"], ["default", "no default"]),
    "required": (["required", "key"], ["required", "not required"]),
    "type": (["type"], ["type"]),
    "clustering": (["clustering"], ["clustering", "no clustering", "cluster by n"]),
    "key": (["key"], ["key", "no key", "no key of the model"]),
    "reference": (
        ["reference", "key"],
        ["reference", "no reference", "no reference of the model", "key", "no key", "drop", "create"],
    ),
    "check": (["check"], ["check", "no check", "check like a model", "no check of the model"]),
    "mask": (["mask"], ["mask", "mask like a model", "mask with n", "mask of n", "no mask", "add n"]),
    "row filter": (
        ["row filter"],
        ["row filter", "row filter like a model", "row filter on n", "no row filter", "add n"],
    ),
    "property": (["property"], ["property", "no property", "property of the platform"]),
    "tag": (["tag", "column tag"], ["tag", "another tag", "no tag", "column tag", "another column tag"]),
    "grant": (["grant", "owner"], ["grant", "no grant of the model", "owner"]),
    "x": (["column comment"], ["drop x", "rename x", "rename n", "move x", "add n"]),
    "y": (["second column"], ["drop y", "rename y", "comment of y", "move x"]),
    "n": (
        ["third column"],
        ["add n", "type of n", "add n with a comment", "drop n", "cluster by n", "rename n"],
    ),
    "fields": (
        ["struct"],
        [
            *("add s", "drop s", "add s.a", "add s.n", "add s.m", "drop s.a", "drop s.n", "drop s.o"),
            *("rename s.a", "rename s.n", "rename s.o", "rename s.o like a model"),
            *("type of s.a", "comment of s.a", "no comment of s.a", "comment of s.o"),
        ],
    ),
    "order": (["is reversed", "second column", "third column"], ["move x", "add n"]),
    "name": (["name", "comment"], ["comment", "rename x"]),
    "schema": (["comment", "tag"], ["comment", "tag"]),
    "table": (["declared"], ["drop", "create", "create with more"]),
}
"""The facets and changes by what they are about. Those of a history have to meet."""

SCHEMA: tuple[Sequence[str], Sequence[str]] = (
    ["comment", "tag", "grant", "owner"],
    [*("comment like a model", "tag", "another tag", "no tag"), *TOPICS["comment"][1], *TOPICS["grant"][1]],
)
"""The facets and changes of the schema."""

IGNORED: Mapping[str, Sequence[str]] = {
    "comment": ["table comment"],
    "column comment": ["column x comment"],
    "default": ["column x default"],
    "required": ["column x nullability"],
    "type": ["column x type"],
    "clustering": ["clustering"],
    "key": ["primary key*"],
    "reference": ["foreign key *"],
    "check": ["check *"],
    "mask": ["column x mask"],
    "row filter": ["row filter"],
    "tag": ["tag *", "column x tag *"],
    "n": ["column n"],
    "fields": ["column s.m", "column s.a *"],
    "order": ["column order"],
    "schema": ["schema comment", "tag *"],
    "table": ["table"],
}
"""The drift that a policy may ignore, by topic."""

_COMMANDS: list[Step] = [Accept(is_merged=True), Accept(is_merged=False), Revert()]
_FAULTS: list[Step] = [Sync(place, is_killed) for is_killed in (False, True) for place in range(6)]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Step], list[Step]]:
    """Draw what happens before the first sync, and after it."""
    topics = draw(st.lists(st.sampled_from(sorted(TOPICS)), min_size=1, max_size=3, unique=True))
    if "mask" in topics or "row filter" in topics:  # Databricks refuses them beside checks
        topics = [topic for topic in topics if topic != "check"]
    if "name" in topics:  # a table that is made again has one of two names
        topics = [topic for topic in topics if topic not in ("table", "reference")]
    facets = [(facet, value) for topic in topics for facet in TOPICS[topic][0] for value in FACETS[facet]]
    changes = [change for topic in topics for change in TOPICS[topic][1]]
    policies = [Configure(key, value) for key, values in POLICIES.items() for value in values]
    ignores = [Configure("ignored", pattern) for topic in topics for pattern in ("", *IGNORED.get(topic, ()))]
    declarations = [Declare(table, *facet) for table in _TABLES for facet in facets]
    by_hand = [ByHand(table, change) for table in _TABLES for change in changes]
    of_schema = [Declare("silver", facet, value) for facet in SCHEMA[0] for value in FACETS[facet]]
    if "schema" in topics:
        declarations += of_schema * 3
        by_hand += [ByHand("silver", change) for change in SCHEMA[1]] * 6
    steps = st.one_of(
        st.sampled_from(declarations),
        st.sampled_from(by_hand),
        st.sampled_from(by_hand),
        st.sampled_from([*policies, *ignores, *_COMMANDS * 3]),
        st.just(Sync()),
        st.sampled_from(_FAULTS),
    )
    tables = "aaab" if "reference" in topics else "a"
    before: list[Step] = [Declare(table, *facet) for table in tables for facet in facets]
    before += [ByHand(table, change) for table in tables for change in changes]
    others: list[Step] = [Declare("b", "key", True)] if "reference" in topics else []
    if "schema" in topics:
        others += draw(st.lists(st.sampled_from(of_schema), min_size=1, max_size=3))
    first = [draw(st.sampled_from(ignores)), *others, *draw(st.lists(st.sampled_from(before), max_size=4))]
    return first, draw(st.lists(steps, min_size=3, max_size=8))
