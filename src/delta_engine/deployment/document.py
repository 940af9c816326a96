"""The deployment state: the records of an environment, and what its runs did.

docs/deployment-state.md explains the fields. `codec` decodes and encodes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

import msgspec

from delta_engine.actions.policy import Consent
from delta_engine.models.open_struct import Count, Moment, OpenStruct
from delta_engine.ownership.recorded import AnyRecord, Status

VERSION: Final = 2
SCHEMA_URI: Final = "urn:delta-engine:deployment-state:v2"
KEPT_WRITE_IDS: Final = 20
"""How many earlier write ids a document remembers. They identify a save whose answer was lost."""
KEPT_APPLIED_PLANS: Final = 20
"""How many applied plan files a document remembers."""

Checksum = Annotated[str, msgspec.Meta(pattern="^sha256:[0-9a-f]{64}$")]


class EnvironmentRecord(OpenStruct, frozen=True, kw_only=True):
    """The environment of the document; values of variables that name secrets are blanked."""

    name: str
    host: str
    variables: dict[str, str]


class ApplyActions(OpenStruct, frozen=True, kw_only=True):
    """How many securables the last apply created, changed and dropped, without unfinished ones."""

    added: Count
    changed: Count
    destroyed: Count


class Checkpoint(OpenStruct, frozen=True, kw_only=True):
    """How far the last apply came with one table.

    Args:
        resource: the table's key.
        status: its status after the apply.
        statements_done: how many of its statements succeeded.
        statement: the one that failed, if one did.
        error: the platform's message about it.
    """

    resource: str
    status: Status
    statements_done: Count
    statement: str | None = None
    error: str | None = None


class ApplyRecord(OpenStruct, frozen=True, kw_only=True):
    """What the last apply did; the duration is in seconds."""

    last_apply_duration: float | None
    last_apply_actions: ApplyActions
    warnings: tuple[str, ...]
    checkpoints: tuple[Checkpoint, ...]


class AppliedPlan(OpenStruct, frozen=True, kw_only=True):
    """A plan file that was applied.

    Args:
        checksum: the plan file's.
        applied_at: when the apply ended; when it began, if it was interrupted.
        applied_by: the principal that applied it.
        is_whole: whether all of it was applied.
    """

    checksum: Checksum
    applied_at: Moment
    applied_by: str
    is_whole: bool


class UsedConsent(OpenStruct, frozen=True, kw_only=True):
    """An entry of `conf/consents.yml` that allowed a change which was applied.

    Args:
        change: the kind of change, the table and its part, in lower case.
        expires: the last day of the entry, which distinguishes it from a later one for the same change.
        run: the id of the run that applied the change.
    """

    change: str
    expires: str
    run: str
    at: Moment


class DeploymentState(OpenStruct, frozen=True, kw_only=True):
    """What this engine last applied in one environment.

    Args:
        schema_uri: names the JSON schema.
        version: the format's major version.
        serial: counts the saves.
        state_id: the document's identity, which never changes; `lineage` changes with every deployed commit.
        write_id: unique per save.
        recent_write_ids: those of the latest earlier saves, newest first.
        lineage: the commit of the deployed configuration, `git:…`, or `unknown`.
        engine_version: of the engine that saved it.
        platform_version: of the platform that it deployed to.
        created_at: when the first document was saved.
        updated_at: when this one was.
        updated_by: the principal that saved it; None if an older engine did.
        synced_at: when it was last compared with the catalog.
        fence: the highest count of the lock's holders that saved it; None if only older engines did.
        environment: the environment.
        resources: by key, `table.<catalog>.<schema>.<table>` and `schema.<catalog>.<schema>`, lower case.
        metadata: what the last apply did.
        applied_plans: the plan files that were applied, newest first; only the latest are kept.
        used_consents: the consents that were used, as long as the configuration has their entries.
    """

    schema_uri: str = msgspec.field(name="$schema")
    version: Annotated[int, msgspec.Meta(ge=VERSION, le=VERSION)]
    serial: Count
    state_id: str
    write_id: str
    recent_write_ids: tuple[str, ...]
    lineage: str
    engine_version: str
    platform_version: str
    created_at: Moment
    updated_at: Moment
    updated_by: str | None = None
    synced_at: Moment | None = None
    fence: Count | None = None
    environment: EnvironmentRecord
    resources: dict[str, AnyRecord]
    metadata: ApplyRecord
    applied_plans: tuple[AppliedPlan, ...] = ()
    used_consents: tuple[UsedConsent, ...] = ()

    def with_resources(self, resources: Mapping[str, AnyRecord]) -> DeploymentState:
        """Return the deployment state with other records."""
        return self.with_values(resources=dict(resources))

    def compared(self, resources: Mapping[str, AnyRecord], *, at: datetime) -> DeploymentState:
        """Return the deployment state with the records that a comparison with the catalog leaves."""
        return self.with_values(resources=dict(resources), synced_at=at)

    def numbered(
        self, serial: int, *, write_id: str, recent_write_ids: tuple[str, ...], at: datetime
    ) -> DeploymentState:
        """Return the document that a save writes, with its records in order."""
        return self.with_values(
            serial=serial,
            write_id=write_id,
            recent_write_ids=recent_write_ids,
            updated_at=at,
            resources=dict(sorted(self.resources.items())),
        )

    def with_applied_plan(self, plan: AppliedPlan) -> DeploymentState:
        """Return the document with one more applied plan file."""
        others = (applied for applied in self.applied_plans if applied.checksum != plan.checksum)
        kept = (plan, *others)[:KEPT_APPLIED_PLANS]
        return self.with_values(applied_plans=kept)


def records_of(state: DeploymentState | None) -> Mapping[str, AnyRecord]:
    """Return the records of a deployment state; none if there is no state yet."""
    return state.resources if state is not None else {}


def consent_key(consent: Consent) -> tuple[str, str]:
    """Return the change and the last day of an entry, as `UsedConsent` has them."""
    return str(consent).lower(), str(consent.expires)
