"""The end of a story, when faults have stopped: what two syncs, an undo and a report of drift must bring."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from delta_engine.actions.drift_policy import DriftHandling, DriftPolicy
from delta_engine.cli.terminal import ExitCode
from delta_engine.errors import RefusedError
from delta_engine.models import QualifiedName
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.ownership.recorded import is_of_table
from delta_engine.sql.text import sql_name
from tests.cases.ownership_ledger import Parts, is_inside, parts_of
from tests.simulation.scenarios import ByHand, Command, Edit, Verb
from tests.simulation.teams import Team
from tests.simulation.world import World

_NAME = "zoe"
_MOST_SYNCS = 2

_BY_HAND: Final = re.compile(r"by hand: (ALTER TABLE \S+ DROP CONSTRAINT `[^`]+`)")
"""What a refusal tells the user to run."""

_BOTH_EXIST: Final = re.compile(r"it is renamed from (\S+), and both tables exist")
"""Refuses a rename whose old table an older checkout created again. The user drops the table that this names."""

_BOTH_COLUMNS: Final = re.compile(
    r"table (\S+), column (\S+): it is renamed from \S+, and the table has both columns"
)
"""Refuses a rename whose new column a run added before its model named the former one. The user drops the new one."""

_NEW_KEYS: Final = re.compile(r"ADD CONSTRAINT `(\w+)_pk`")
"""Says in what is left which key a table shall have, by the table that had it first."""

_RENAMED_FIELD: Final = "column s.a: it was renamed to 's.n' outside the engine"
"""Refuses a plan that would drop a renamed field. If the table has both fields, a revert is refused as well."""


def play_finale(world: World) -> None:
    """Play the end of a story."""
    world.drift_policy = DriftPolicy(handling=DriftHandling.REVERT)
    world.lags = ()
    world.stage.play({_NAME: partial(_act, world)})
    if world.judge.finding is None:
        world.judge.at_end()


def _act(world: World) -> None:
    for team in world.teams:
        if any(part.team == world.teams.index(team) for part in world.scenario.parts):
            _converge(world, team)
    if world.scenario.last_edits:
        _undo(world)
    if world.scenario.last_changes:
        _report(world)


def _converge(world: World, team: Team) -> None:
    """When faults stop and the advice of refusals is followed, at most two syncs bring a plan without changes."""
    for name in team.facets:  # as refusals say: a type is not narrowed, a renamed column is renamed back
        if world.has_wide_column(name):
            world.commit(team, _NAME, Edit(name, "type", "bigint"))
    if _ran(world, team, Verb.SYNC) is ExitCode.REFUSED:
        is_reverted = _ran(world, team, Verb.REVERT) is not ExitCode.REFUSED
        for name in team.facets:  # where the history does not show the rename, people rename the column back
            table = QualifiedName("dev", "silver", world.present_name(name))
            parts = _tables(world).get(table.key, {})
            if "column n" in parts and "column x" in parts and not is_reverted:
                # a run that did not know of the rename added x again, without values: the refusal says to drop it
                drop = f"ALTER TABLE {sql_name(table)} DROP COLUMN x"
                if not world.run_by_hand(drop, "as the refusal says"):
                    world.run_by_hand(f"ALTER TABLE {sql_name(table)} CLUSTER BY NONE", "before the drop")
                    world.run_by_hand(drop, "as the refusal says")
                world.change_by_hand(ByHand(name, "rename n"))
            elif "column n" in parts and "column x" not in parts:
                world.change_by_hand(ByHand(name, "rename n"))
            elif (
                parts and "column x" not in parts
            ):  # a column that comes back has no values, so it takes NULL
                world.commit(team, _NAME, Edit(name, "required", False))
            has_both_fields = {"column s.a", "column s.n"} <= parts.keys()
            if has_both_fields and not is_reverted and _RENAMED_FIELD in _left_to_do(world, team):
                # a run added s.a again, without values: the refusal of the revert says to drop it
                world.run_by_hand(f"ALTER TABLE {sql_name(table)} DROP COLUMN s.a", "as the refusal says")
                world.change_by_hand(ByHand(name, "rename s.n"))
        _follow(world, _left_to_do(world, team))
    codes, left = _synced(world, team)
    if _BOTH_EXIST.search(left):  # only the first sync saw that a killed run had created the old table
        _follow(world, left)
        codes, left = _synced(world, team)
    if _drop_old_table(world, team, left):
        codes, left = _synced(world, team)
    if left or codes[-1] is not ExitCode.DONE:
        ends = [code and int(code) for code in codes]
        world.judge.find("Converges", f"after syncs that end with {ends}, a plan has {left}")


def _follow(world: World, refusals: str) -> None:
    """Run the statements that refusals tell users to run."""
    old_tables = map(_sql, _BOTH_EXIST.findall(refusals))
    new_columns = _BOTH_COLUMNS.findall(refusals)
    for sql in (
        *_BY_HAND.findall(refusals),
        *(f"DROP TABLE {name}" for name in old_tables),
        *(f"ALTER TABLE {_sql(table)} DROP COLUMN {column}" for table, column in new_columns),
    ):
        world.run_by_hand(sql, "as the refusal says")


def _sql(table: str) -> str:
    return sql_name(QualifiedName.of_key(table))


def _drop_old_table(world: World, team: Team, left: str) -> bool:
    """Drop a table that a run with older models created again after its rename: its key has the name.

    Return whether there was one.
    """
    declared = {model.key for model in team.models}
    names = [
        name
        for name in _NEW_KEYS.findall(left)
        if f"dev.silver.{name}" in world.catalog.tables.keys() - declared
    ]
    return any(
        world.run_by_hand(f"DROP TABLE `dev`.`silver`.`{name}`", "no model declares it") for name in names
    )


def _synced(world: World, team: Team) -> tuple[list[ExitCode | None], str]:
    """Sync until a plan has nothing left, twice at most; return the exit codes, and what is left."""
    codes: list[ExitCode | None] = []
    left = ""
    while len(codes) < _MOST_SYNCS and (not codes or left or codes[-1] is not ExitCode.DONE):
        codes.append(_ran(world, team, Verb.SYNC))
        left = _left_to_do(world, team)
    return codes, left


def _undo(world: World) -> None:
    """An undo brings back what was declared before the run and takes back what the run added, or is refused.

    What the record declared before and others had removed was repaired by the run, and stays. What its baseline kept
    and others had removed may come back in place of what the run set: a known gap.
    """
    team = world.teams[0]
    before, statements = _tables(world), len(world.catalog.statements)
    state = team.documents.state()
    records = [*filter(is_of_table, state.resources.values() if state else ())]
    applied = [record.applied.model for record in records if record.applied is not None]
    kept = [record.baseline for record in records if record.baseline is not None]
    recorded = {(model.key, part) for model in (*applied, *kept) for part in parts_of(model)}
    repaired = {model.key for model in applied} - before.keys()
    declared = {(model.key, part) for model in team.models for part in parts_of(model)}
    code = _ran(world, team, Verb.SYNC, *world.scenario.last_edits)
    if code is not ExitCode.DONE or len(world.catalog.statements) == statements:
        return
    if _ran(world, team, Verb.UNDO) is not ExitCode.DONE:
        return
    now = _tables(world)
    for table, part in sorted((key, part) for state in (before, now) for key in state for part in state[key]):
        value, value_now = before.get(table, {}).get(part), now.get(table, {}).get(part)
        is_repaired = table in repaired or (table, part) in recorded
        is_added = value is None and not part.startswith("property delta.") and not is_repaired
        is_ours = (table, part) in declared or is_added
        if value != value_now and is_ours:
            world.judge.find(
                "UndoBringsBack", f"an undo leaves {part} of {table}: {value!r}, now {value_now!r}"
            )


def _report(world: World) -> None:
    """What a person changed of the declared parts is reported by the next drift."""
    declared = {model.key: parts_of(model) for model in world.teams[0].models}
    before = _tables(world)
    for change in world.scenario.last_changes:
        world.change_by_hand(change)
    process = world.started(world.teams[0], _NAME, Command(Verb.DRIFT))
    if world.ended(process) is not ExitCode.DONE or process.report is None:
        world.judge.find("DriftIsReported", "drift does not end well")
        return
    reported = {
        (resource.resource.partition(".")[2], _named(finding.field))
        for resource in (*process.report.drifted, *process.report.deleted)
        for finding in resource.findings
    }
    now = _tables(world)
    for key, parts in declared.items():
        if key not in now:
            if key in before and (key, "table") not in reported:
                world.judge.find("DriftIsReported", f"{key} is gone, and no drift")
            continue
        for part, value in parts.items():
            is_changed = before.get(key, {}).get(part) == value != now[key].get(part)
            columns = value.split(", ") if part == "clustering" else []  # it follows a renamed column
            shown = (part, *(f"column {column}" for column in columns))
            if is_changed and not any(_is_reported(key, each, reported) for each in shown):
                world.judge.find(
                    "DriftIsReported", f"{part} of {key} is {now[key].get(part)!r}, and no drift"
                )


def _is_reported(key: str, part: str, reported: set[tuple[str, str]]) -> bool:
    """Whether a part is reported, or the table or column that it is inside."""
    fields = {field for table, field in reported if table == key}
    return part in fields or "table" in fields or is_inside(part, fields)


def _named(field: str) -> str:
    """Return a field of a report as the ledger names the part."""
    if field.startswith("primary key"):
        return "primary key"
    return field if " " in field or field in ("clustering", "table", "owner") else f"property {field}"


def _ran(world: World, team: Team, verb: Verb, *edits: Edit) -> ExitCode | None:
    return world.run(team, _NAME, Command(verb, edits, has_consent=True))


def _left_to_do(world: World, team: Team) -> str:
    """Return what a plan would still do or refuse; empty for nothing."""
    process = world.started(team, _NAME, Command(Verb.PLAN, has_consent=True))
    try:
        planned = plan_unlocked(world.environment(process), process.declared, allow_cached=False)
    except RefusedError as refusal:
        return str(refusal)
    refusals = " | ".join(map(str, planned.refusals))
    return refusals or ", ".join(
        statement.sql for step in planned.compiled.steps for statement in step.statements
    )


def _tables(world: World) -> dict[str, Parts]:
    return {key: parts_of(stored.state) for key, stored in world.catalog.tables.items()}
