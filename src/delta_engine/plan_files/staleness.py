"""What has moved since a plan was made: two plan files of one command, the reviewed one and what it would be now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest

import msgspec

from delta_engine.plan_files.document import DeploymentFingerprint, PlanFile, TableFingerprint
from delta_engine.plan_files.errors import Move, MoveKind


def moves(reviewed: PlanFile, current: PlanFile) -> tuple[Move, ...]:
    """Return what is not as it was; with nothing of that, whether the statements are the same."""
    then, now = reviewed.fingerprints, current.fingerprints
    found = (
        *_tables(then.tables, now.tables),
        *_schemas(then.schemas, now.schemas),
        *_models(reviewed.models, current.models),
        *_models(reviewed.declared_schemas, current.declared_schemas),
        *_policy(reviewed, current),
        *_deployment_state(then.deployment_state, now.deployment_state),
    )
    return found or tuple(_statements(reviewed, current))


def _tables(then: Mapping[str, TableFingerprint], now: Mapping[str, TableFingerprint]) -> Iterator[Move]:
    """Yield tables that moved; one that only one of both has looked at is the models' business."""
    for name in sorted({*then} & {*now}):
        before, after = then[name], now[name]
        if before.state is None and after.state is not None:
            yield Move(MoveKind.TABLE_APPEARED, name)
        elif before.state is not None and after.state is None:
            yield Move(MoveKind.TABLE_DROPPED, name)
        elif _is_another(before, after):
            yield Move(MoveKind.TABLE_RECREATED, name, _ids(before, after))
        elif before.state != after.state:
            yield Move(MoveKind.TABLE_ALTERED, name)


def _is_another(before: TableFingerprint, after: TableFingerprint) -> bool:
    """Whether a table of the same name is another one; what is not known on both sides says nothing."""
    if before.table_id is not None and after.table_id is not None:
        return before.table_id != after.table_id
    if before.created_at is not None and after.created_at is not None:
        return before.created_at != after.created_at
    return False


def _ids(before: TableFingerprint, after: TableFingerprint) -> str:
    if before.table_id is None or after.table_id is None:
        return f"created {before.created_at}, now {after.created_at}"
    return f"id {before.table_id}, now {after.table_id}"


def _schemas(then: Mapping[str, str | None], now: Mapping[str, str | None]) -> Iterator[Move]:
    for name in sorted({*then} & {*now}):
        before, after = then[name], now[name]
        if before == after:
            continue
        if before is None:
            yield Move(MoveKind.SCHEMA_APPEARED, name)
        elif after is None:
            yield Move(MoveKind.SCHEMA_DROPPED, name)
        else:
            yield Move(MoveKind.SCHEMA_ALTERED, name)


def _models(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Move]:
    for name in sorted({*then, *now}):
        if name not in now:
            yield Move(MoveKind.MODEL_REMOVED, name)
        elif name not in then:
            yield Move(MoveKind.MODEL_ADDED, name)
        elif then[name] != now[name]:
            yield Move(MoveKind.MODEL_CHANGED, name)


def _policy(reviewed: PlanFile, current: PlanFile) -> Iterator[Move]:
    then, now = msgspec.structs.asdict(reviewed.policy), msgspec.structs.asdict(current.policy)
    for field in then:
        if then[field] != now[field]:
            yield Move(MoveKind.POLICY_CHANGED, field, f"{_said(then[field])}, now {_said(now[field])}")


def _said(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "nothing"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _deployment_state(
    then: DeploymentFingerprint | None, now: DeploymentFingerprint | None
) -> Iterator[Move]:
    if then == now:
        return
    if then is None or now is None:
        detail = "it was empty, and is not any more" if then is None else "it is gone"
    elif then.state_id != now.state_id:
        detail = f"it is another one, {now.state_id} instead of {then.state_id}"
    elif then.serial != now.serial:
        detail = f"from serial {then.serial} to serial {now.serial}"
    else:
        detail = f"it is at serial {now.serial} still, and a run that did not end has left a journal"
    yield Move(MoveKind.DEPLOYMENT_STATE_MOVED, detail)


def _statements(reviewed: PlanFile, current: PlanFile) -> Iterator[Move]:
    """Yield the first statement that is not the same."""
    pairs = zip_longest(reviewed.statements, current.statements)
    for number, (then, now) in enumerate(pairs, start=1):
        if then != now:
            before, after = (one.sql if one else "nothing" for one in (then, now))
            detail = f"statement {number} is, in the file: {before}\n    and would be: {after}"
            yield Move(MoveKind.STATEMENTS_CHANGED, detail)
            return
