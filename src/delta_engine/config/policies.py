"""Policies: the key `policy` of a configuration, and `conf/drift-policy.yml` with the ignored drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

import msgspec

from delta_engine.actions.drift_policy import DriftHandling, IgnoreEntry, Severity, SeverityRule
from delta_engine.actions.policy import (
    Allowance,
    ColumnOrder,
    DestructiveKind,
    Ownership,
    Policy,
    Removed,
)
from delta_engine.config.conf_folder import DRIFT_POLICY_FILE
from delta_engine.config.consents import REASON_TO_WRITE
from delta_engine.config.variables import substitute
from delta_engine.config.yaml_documents import Document, DocumentPath, read_document
from delta_engine.errors import unknown
from delta_engine.telemetry.visible import parsed_size

_KINDS = "|".join(kind.value for kind in DestructiveKind)
_ALLOWANCE = msgspec.Meta(
    extra_json_schema={
        "anyOf": [
            {"enum": [kind.value for kind in DestructiveKind]},
            {"pattern": rf"^\s*({_KINDS})\s*:|\$\{{"},
        ]
    }
)


class PolicyDocument(msgspec.Struct):
    """Which changes a run may make.

    Args:
        allow: kinds of destructive change that this environment allows, each for all tables, or with a colon and a
            glob for some, such as `drop_column:silver.*`.
        create_schemas: whether missing schemas of models are created.
        tags: whether tags that no model declares are kept (`additive`) or removed (`full`).
        grants: whether privileges that no model declares are kept (`additive`) or revoked (`full`).
        column_order: whether a column order that differs from the model is reported or changed.
        removed_tables: whether tables that are no longer declared are kept or, with consent to `drop_table`, dropped.
        removed_functions: the same for functions, with consent to `drop_function`.
        removed_policies: the same for policies, with consent to `drop_policy`.
        removed_views: the same for views, with consent to `drop_view`.
        policies_on: the catalogs on which models may define policies; schemas and tables need no entry.
        rules: further rules, as `module:attribute`.
        max_rewrite_bytes: how much data a plan may rewrite: bytes, or a text such as `200 GB`. Without it, any amount.
        drift: whether `sync` refuses to undo drift, or undoes all of it.
        drift_from: with `drift: refuse`, the severity from which `sync` refuses; it undoes drift below.
        drift_severities: severities that replace the defaults; the first entry that matches counts.
    """

    allow: list[Annotated[str, _ALLOWANCE]] = msgspec.field(default_factory=list)
    create_schemas: bool = False
    tags: Ownership = Ownership.ADDITIVE
    grants: Ownership = Ownership.ADDITIVE
    column_order: ColumnOrder = ColumnOrder.REPORT
    removed_tables: Removed = Removed.KEEP
    removed_functions: Removed = Removed.KEEP
    removed_policies: Removed = Removed.KEEP
    removed_views: Removed = Removed.KEEP
    policies_on: list[str] = msgspec.field(default_factory=list)
    rules: list[str] = msgspec.field(default_factory=list)
    max_rewrite_bytes: int | str | None = None
    drift: DriftHandling = DriftHandling.REFUSE
    drift_from: Severity = Severity.HIGH
    drift_severities: list[SeverityRule] = msgspec.field(default_factory=list)


class _IgnoredDrift(msgspec.Struct):
    """Known drift that reports ignore.

    Args:
        resource: a glob: `table.<catalog>.<schema>.<table>`, `schema.<catalog>.<schema>`,
            `view.<catalog>.<schema>.<view>`, `function.<catalog>.<schema>.<function>` or
            `policy.<kind of scope>.<scope>.<policy>`, or the name with or without catalog and schema. Takes variables.
        fields: globs: a kind, such as `column_comment`, or a field as the report names it; `["*"]` for all.
        reason: why the drift is ignored; the report shows it.
        expires: the last day of the entry; it ends at midnight UTC after it. Without it, never.
        environments: the environments it holds in; without it, all.
    """

    resource: str
    fields: Annotated[list[str], msgspec.Meta(extra_json_schema={"minItems": 1})]
    reason: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": r"\S"})]
    expires: date | None = None
    environments: list[str] | None = None


class DriftPolicyDocument(msgspec.Struct):
    """The drift that reports ignore, `conf/drift-policy.yml`.

    Args:
        ignore_drift: known drift, for all environments.
    """

    ignore_drift: list[_IgnoredDrift]


def plan_policy(document: Document, policy: PolicyDocument) -> Policy:
    """Return the policy for plans; refuse unknown kinds of change in `allow`."""
    allowances = []
    for position, text in enumerate(policy.allow):
        try:
            allowances.append(Allowance.parse(text))
        except ValueError as error:
            raise document.error(("policy", "allow", position), str(error)) from None
    return Policy(
        allow=tuple(allowances),
        create_schemas=policy.create_schemas,
        tags=policy.tags,
        grants=policy.grants,
        column_order=policy.column_order,
        removed_tables=policy.removed_tables,
        removed_functions=policy.removed_functions,
        removed_policies=policy.removed_policies,
        removed_views=policy.removed_views,
        policies_on=tuple(policy.policies_on),
        rules=tuple(policy.rules),
        max_rewrite_bytes=_bytes(document, policy.max_rewrite_bytes),
    )


def _bytes(document: Document, written: int | str | None) -> int | None:
    """Return a size in bytes; ConfigError for other text."""
    if written is None:
        return None
    try:
        size = parsed_size(str(written))
    except ValueError as error:
        raise document.error(("policy", "max_rewrite_bytes"), str(error), "Write 200 GB.") from None
    return size


def load_ignored_drift(
    conf_dir: Path, environment: str, variables: Mapping[str, str], environments: Sequence[str]
) -> tuple[IgnoreEntry, ...]:
    """Return an environment's entries of `drift-policy.yml` in file order; empty without the file."""
    path = conf_dir / DRIFT_POLICY_FILE
    if not path.exists():
        return ()
    document = read_document(path)
    if not isinstance(document.value, dict):
        raise document.error((), "the file is not a mapping", "Begin it with the key ignore_drift.")
    entries = document.convert((), document.value, DriftPolicyDocument).ignore_drift
    ignores = [
        (entry, _ignore_entry(document, ("ignore_drift", position), entry, variables, environments))
        for position, entry in enumerate(entries)
    ]
    return tuple(
        ignore for entry, ignore in ignores if entry.environments is None or environment in entry.environments
    )


def _ignore_entry(
    document: Document,
    path: DocumentPath,
    entry: _IgnoredDrift,
    variables: Mapping[str, str],
    environments: Sequence[str],
) -> IgnoreEntry:
    if entry.reason.strip() in ("", REASON_TO_WRITE):
        raise document.error(
            (*path, "reason"), "an ignored drift needs a reason", "Write why the drift is ignored."
        )
    if not entry.fields:
        raise document.error(
            (*path, "fields"), "an ignored drift needs fields", 'Name fields, or write ["*"] for all.'
        )
    for position, name in enumerate(entry.environments or ()):
        if name not in environments:
            place = (*path, "environments", position)
            raise document.error(place, *unknown("environment", name, environments))
    location = document.location(path)
    return IgnoreEntry(
        resource=substitute(entry.resource, variables, location),
        fields=tuple(entry.fields),
        reason=entry.reason.strip(),
        expires=entry.expires,
        location=location,
    )
