"""What must hold in every story: one class for each invariant, with its sentence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.cli.terminal import ExitCode
from delta_engine.deployment.document import DeploymentState
from delta_engine.models import Table
from delta_engine.ownership.recorded import Status, is_of_table, status_of
from delta_engine.plan_files.document import PlanFile
from tests.cases.ownership_ledger import parts_of
from tests.simulation.scenarios import FUNCTION, RENAMED, Verb

if TYPE_CHECKING:
    from tests.simulation.processes import Process
    from tests.simulation.teams import Team
    from tests.simulation.world import World

Parts: TypeAlias = Mapping[str, str]
"""The values of a table's parts, as the ledger of ownership names them."""

_LONGEST_RUN_SECONDS = 3600.0


class Changed(NamedTuple):
    """What a statement changed in a table; None for a table that does not exist."""

    table: str
    before: Parts | None
    after: Parts | None
    sql: str

    @property
    def gone(self) -> list[str]:
        """The parts that are gone."""
        return [part for part in self.before or {} if part not in (self.after or {})]

    @property
    def is_rename(self) -> bool:
        return " RENAME " in self.sql


class Invariant:
    """Gets every event. A method returns how the invariant is broken, None if it is not."""

    def __init__(self, world: World) -> None:
        self.world = world

    def on_sent(self, process: Process, sql: str) -> str | None:
        """A process sends a statement that changes the catalog."""
        return None

    def on_journaled(self, process: Process) -> str | None:
        """A process has journaled what it is about to do, or what it did."""
        return None

    def on_changed(self, process: Process | None, change: Changed) -> str | None:
        """A statement of a process, or of a person, changed a table."""
        return None

    def on_granted(
        self, process: Process | None, lost: frozenset[str], now: frozenset[str], sql: str
    ) -> str | None:
        """A statement changed the grants on functions; `now` are those after it."""
        return None

    def on_saved(self, process: Process, state: DeploymentState) -> str | None:
        """The store has replaced the document."""
        return None

    def on_applied(self, process: Process, file: PlanFile) -> str | None:
        """A plan file was applied, and its run ended well."""
        return None

    def on_ended(self, process: Process, code: ExitCode | None) -> str | None:
        """A command ended; without an exit code if it was killed."""
        return None

    def at_end(self) -> str | None:
        """The story is over, and the last syncs are done."""
        return None


class OneRunChangesAtATime(Invariant):
    """A statement is sent only by the run that holds the lock at that moment."""

    def on_sent(self, process: Process, sql: str) -> str | None:
        record = process.team.lock.record
        if process.holds_lock:
            return None
        holder = record.holder.who if record is not None and not record.released else "no run"
        return f"{process.actor} {process.name} sends a statement, and {holder} holds the lock"


class NoSaveIsLost(Invariant):
    """A document replaces exactly the one that its run has read, so that each save is in the next one."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._last: dict[Team, DeploymentState] = {}

    def on_saved(self, process: Process, state: DeploymentState) -> str | None:
        last, self._last[process.team] = self._last.get(process.team), state
        if last is None or (state.serial == last.serial + 1 and last.write_id in state.recent_write_ids):
            return None
        return f"{process.actor} {process.name} saves serial {state.serial} over {last.serial} of another run"


class RunsAreRecorded(Invariant):
    """A run that changed the catalog and ends with exit code 0 has saved its record after its last statement."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._savers: set[Process] = set()

    def on_sent(self, process: Process, sql: str) -> str | None:
        self._savers.discard(process)
        return None

    def on_saved(self, process: Process, state: DeploymentState) -> str | None:
        self._savers.add(process)
        return None

    def on_ended(self, process: Process, code: ExitCode | None) -> str | None:
        if code is ExitCode.DONE and process.is_changing and process not in self._savers:
            return f"{process.actor} {process.name} ends well, and recorded nothing"
        return None


class RecordsWhatWas(Invariant):
    """The record of a healthy table declares nothing that the catalog never had."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._seen: set[tuple[str, str, str]] = set()

    def on_changed(self, process: Process | None, change: Changed) -> str | None:
        self._seen |= {(_at_first(change.table), *item) for item in (change.after or {}).items()}
        return None

    def on_saved(self, process: Process, state: DeploymentState) -> str | None:
        for record in state.resources.values():
            if not is_of_table(record) or record.applied is None or status_of(record) is not Status.HEALTHY:
                continue
            for part, value in parts_of(record.applied.model).items():
                if (_at_first(record.name.key), part, value) not in self._seen:
                    return f"{record.name} is recorded with {part} = {value!r}, which it never had"
        return None


class LossesHaveConsent(Invariant):
    """A run that drops a table, a column, a mask or a row filter has the consent that names it.

    RESTORE needs none: it is refused where others wrote rows since, so that what it takes has no values of theirs.
    """

    def on_changed(self, process: Process | None, change: Changed) -> str | None:
        is_restore = change.sql.startswith("RESTORE")
        if process is None or process.command.has_consent or change.is_rename or is_restore:
            return None
        lost = [part for part in change.gone if _is_column(part) or _is_protection(part)]
        return (
            f"{process.actor} {process.name} drops {lost[0]} of {change.table} without consent"
            if lost
            else None
        )


class OthersKeepTheirParts(Invariant):
    """A sync removes no tag or grant that others made and no model ever declared, and no such check without consent.

    A model is declared once a run has journaled that it applies it.
    """

    _KINDS: Final = ("tag", "grant", "check")

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._theirs: set[tuple[str, str]] = set()
        self._declared: set[tuple[str, str]] = set()

    def on_journaled(self, process: Process) -> str | None:
        self._declared |= {
            (_at_first(model.key), part) for model in process.models for part in parts_of(model)
        }
        return None

    def on_changed(self, process: Process | None, change: Changed) -> str | None:
        gone = {(change.table, part) for part in change.gone}
        lost = sorted(
            item for item in self._theirs & gone if (_at_first(item[0]), item[1]) not in self._declared
        )
        if process is not None and process.command.has_consent:
            lost = [item for item in lost if not item[1].startswith("check ")]
        self._theirs -= gone
        if process is None:
            new = () if change.is_rename else (change.after or {}).keys() - (change.before or {}).keys()
            self._theirs |= {(change.table, part) for part in new if part.split()[0] in self._KINDS}
            return None
        if lost and process.command.verb in (Verb.SYNC, Verb.APPLY) and not change.is_rename:
            return f"{process.actor} {process.name} removes {lost[0][1]} of {change.table}, which others made"
        return None


class TeamsKeepToTheirTables(Invariant):
    """A run changes only tables of its team."""

    def on_changed(self, process: Process | None, change: Changed) -> str | None:
        name = change.table.rpartition(".")[2].rstrip("2")
        if process is None or change.before == change.after or name in process.team.facets:
            return None
        return f"{process.actor} {process.name} of {process.team.name} changes {change.table}"


class GrantsSurviveReplacements(Invariant):
    """A run that ends well has given back the grants of others that it saw on a function and that it replaced.

    No statement protects those that others give between the read and the replacement. A run that fails in between
    loses them: the next one does not know of them.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._lost: dict[Process, frozenset[str]] = {}

    def on_granted(
        self, process: Process | None, lost: frozenset[str], now: frozenset[str], sql: str
    ) -> str | None:
        if process is not None and sql.startswith("CREATE OR REPLACE"):
            seen = frozenset(grant for grant in lost & process.seen_grants if not grant.endswith(" to us"))
            self._lost[process] = self._lost.get(process, frozenset()) | seen
        there = now if process is not None else now | lost  # what people revoke is not lost
        self._lost = {run: grants - there for run, grants in self._lost.items()}
        return None

    def on_ended(self, process: Process, code: ExitCode | None) -> str | None:
        lost = sorted(self._lost.pop(process, frozenset()))
        return f"{process.actor} {process.name} lost {lost[0]}" if lost and code is ExitCode.DONE else None


class NewColumnsAreMasked(Invariant):
    """A column that a run creates has its mask from the first moment.

    A revert and an undo bring back what was applied: masks that only newer models declare come with the next sync. So
    do masks that a run dropped whose save failed.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._dropped: dict[Team, set[tuple[str, str]]] = defaultdict(set)

    def on_saved(self, process: Process, state: DeploymentState) -> str | None:
        self._dropped[process.team].clear()
        return None

    def on_changed(self, process: Process | None, change: Changed) -> str | None:
        if process is None or change.is_rename:
            return None
        masked = _masked(process.models, change.table)
        dropped = self._dropped[process.team]
        dropped |= {(change.table, column) for column in _unmasked(change)}
        if process.command.verb in (Verb.REVERT, Verb.UNDO):
            state = process.team.documents.state()
            records = filter(is_of_table, state.resources.values() if state else ())
            masked &= _masked([record.applied.model for record in records if record.applied], change.table)
            masked -= {column for table, column in dropped if table == change.table}
        for column in sorted(masked):
            is_new = column not in (change.before or {}) and column in (change.after or {})
            if is_new and f"{column} mask" not in (change.after or {}):
                return f"{process.actor} {process.name} creates {column} of {change.table} without its mask"
        return None


class EndsAsDocumented(Invariant):
    """Every run ends with a documented exit code, without a traceback, in bounded time."""

    def on_ended(self, process: Process, code: ExitCode | None) -> str | None:
        seconds = self.world.stage.now - process.began_at
        if seconds > _LONGEST_RUN_SECONDS:
            return f"{process.actor} {process.name} took {seconds:.0f} s"
        return None


class KilledRunsAreExplained(Invariant):
    """The run after a killed one continues it or explains it, and no journal is left at the end."""

    def on_saved(self, process: Process, state: DeploymentState) -> str | None:
        included = {state.write_id, *state.recent_write_ids}
        left = [
            run_id
            for run_id, lines in process.team.journals.entries.items()
            if run_id not in included and 0 in lines and run_id in process.read_journals
        ]
        told = [note for note in process.notes if "did not end" in note or "was ignored" in note]
        if len(told) < len(left):
            return f"{process.actor} {process.name} does not tell of {len(left)} killed runs"
        return None

    def at_end(self) -> str | None:
        left = [run_id for team in self.world.teams for run_id in team.journals.entries]
        return f"{len(left)} journals are left" if left else None


class FilesAreAppliedOnce(Invariant):
    """A plan file that was applied changes nothing when it is applied again."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._applied: set[str] = set()

    def on_applied(self, process: Process, file: PlanFile) -> str | None:
        if str(file.checksum) in self._applied and process.is_changing:
            return f"{process.actor} {process.name} applies a file again"
        self._applied.add(str(file.checksum))
        return None


class OwnChangesAreNoDrift(Invariant):
    """No drift is reported of what only runs have changed, whatever failed.

    The record knows what views may show late after a run, and tables tell the rest of themselves. No record knows this
    of a table that a run is changing. A statement that takes effect after another run took the lock over is drift: its
    run ends with an error that says so. A table whose second read fails is reported as unreadable. A table that a
    killed run renamed is reported with its new name to models that do not know it. Views may show the row filter and
    masks of a table that a run dropped on a new one of its name, if they did not when that was made: the record of
    the dropped table went with it.
    """

    _TOLD_BY_TABLES: Final = ("tables", "columns", "table_constraints")
    _LEFT_BY_DROPPED: Final = frozenset({DriftKind.ROW_FILTER, DriftKind.COLUMN_MASK})

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._touched: set[str] = set()
        self._changing: set[Process] = set()
        self._protected_at: dict[str, float] = {}
        self._left_by_dropped: dict[str, tuple[float, float]] = {}
        self._made_at: dict[str, float] = {}

    def on_sent(self, process: Process, sql: str) -> str | None:
        self._changing.add(process)
        return None

    def on_changed(self, process: Process | None, change: Changed) -> str | None:
        if process is None or not process.holds_lock:  # also for a move of columns, which are no parts
            self._touched.add(change.table.rstrip("2"))
        elif not change.is_rename:
            self._follow(change)
        return None

    def _follow(self, change: Changed) -> None:
        """Follow from when to when a view may show a row filter or mask of a table that runs drop and make again."""
        now, table = self.world.stage.now, change.table
        if change.before is None:
            self._made_at[table] = now
        if change.after is None:
            if table in self._protected_at:
                longest = max((lag.seconds for lag in self.world.lags), default=0.0)
                self._left_by_dropped[table] = (self._protected_at.pop(table) + longest, now + longest)
        elif any(map(_is_protection, change.after)):
            self._protected_at.setdefault(table, now)

    def on_granted(
        self, process: Process | None, lost: frozenset[str], now: frozenset[str], sql: str
    ) -> str | None:
        if process is None or not process.holds_lock:
            self._touched.add(f"dev.silver.{FUNCTION}")
        return None

    def on_ended(self, process: Process, code: ExitCode | None) -> str | None:
        has_lag = any(lag.view not in self._TOLD_BY_TABLES for lag in self.world.lags)
        self._changing.discard(process)
        if process.report is None or (self._changing and has_lag):
            return None
        for resource in (*process.report.drifted, *process.report.deleted):
            kinds = {finding.kind for finding in resource.findings}
            if process.command.faults and kinds == {DriftKind.TABLE_UNREADABLE}:
                continue
            name = resource.resource.partition(".")[2]
            is_renamed = any(note.startswith(f"{name}: it was renamed to") for note in process.report.notes)
            if kinds == {DriftKind.TABLE_DELETED} and is_renamed:
                continue
            if kinds <= self._LEFT_BY_DROPPED and self._may_show_dropped(name, process.began_at):
                continue
            if name.rstrip("2") not in self._touched:
                return f"{process.actor} {process.name} reports what runs did: {resource}"
        return None

    def _may_show_dropped(self, table: str, moment: float) -> bool:
        """Whether a view may show, after a moment, what a run dropped, and did not when the table was made again."""
        first, last = self._left_by_dropped.get(table, (0.0, 0.0))
        return self._made_at.get(table, 0.0) < first and moment < last


class ImportsOnlyRead(Invariant):
    """An import sends no statement, and saves no document."""

    def on_sent(self, process: Process, sql: str) -> str | None:
        return f"{process.actor} {process.name} sends {sql}" if process.imported else None

    def on_saved(self, process: Process, state: DeploymentState) -> str | None:
        return f"{process.actor} {process.name} saves serial {state.serial}" if process.imported else None


class ImportsAreWhole(Invariant):
    """The files that an import writes are whole, load again, and say what the catalog showed, however it ends."""

    def on_ended(self, process: Process, code: ExitCode | None) -> str | None:
        fault = process.imported.fault(code) if process.imported else None
        return f"{process.actor} {process.name} {fault}" if fault else None


class MovesRename(Invariant):
    """A move sends no statement, and gives the record of a table its new name, and changes nothing else of it.

    A killed run whose journal it reads may have changed the record.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._last: dict[Team, DeploymentState] = {}
        self._savers: set[Process] = set()

    def on_sent(self, process: Process, sql: str) -> str | None:
        return f"{process.actor} {process.name} sends {sql}" if process.command.verb is Verb.MOVE else None

    def on_saved(self, process: Process, state: DeploymentState) -> str | None:
        last, self._last[process.team] = self._last.get(process.team, state), state
        if process.command.verb is not Verb.MOVE:
            return None
        self._savers.add(process)
        records = {record.name.key for record in state.resources.values()}
        former, name = f"dev.silver.{RENAMED}", f"dev.silver.{RENAMED}2"
        if former in records or name not in records:
            return f"{process.actor} {process.name} records {sorted(records)}"
        if process.read_journals:
            return None
        before, after = _recorded_parts(last, former), _recorded_parts(state, name)
        if before != after:
            return f"{process.actor} {process.name} records {after}, and it was {before}"
        return None

    def on_ended(self, process: Process, code: ExitCode | None) -> str | None:
        is_move = process.command.verb is Verb.MOVE and code is ExitCode.DONE
        return f"{process.name} records nothing" if is_move and process not in self._savers else None


def _recorded_parts(state: DeploymentState, key: str) -> list[Parts]:
    """Return what a record of a table says was applied, and what was there before."""
    record = next(filter(is_of_table, (each for each in state.resources.values() if each.name.key == key)))
    models = (record.applied.model if record.applied else None, record.baseline)
    return [parts_of(model) if model else {} for model in models]


def _at_first(key: str) -> str:
    """Return the key that a table had at first: models and people rename some."""
    return key.rstrip("2")


def _masked(models: Iterable[Table], key: str) -> set[str]:
    return {
        f"column {column.name}"
        for model in models
        for column in model.columns
        if model.key == key and column.mask
    }


def _unmasked(change: Changed) -> set[str]:
    """Return the columns that are left without the mask that they had."""
    before, after = change.before or {}, change.after or {}
    return {column for column in after if f"{column} mask" in before.keys() - after.keys()}


def _is_protection(part: str) -> bool:
    return part == "row filter" or part.endswith(" mask")


def _is_column(part: str) -> bool:
    return part.startswith("column ") and " " not in part.removeprefix("column ")


ALL: Final = (
    ImportsOnlyRead,
    OneRunChangesAtATime,
    NoSaveIsLost,
    RunsAreRecorded,
    RecordsWhatWas,
    LossesHaveConsent,
    OthersKeepTheirParts,
    GrantsSurviveReplacements,
    NewColumnsAreMasked,
    EndsAsDocumented,
    KilledRunsAreExplained,
    FilesAreAppliedOnce,
    OwnChangesAreNoDrift,
    TeamsKeepToTheirTables,
    ImportsAreWhole,
    MovesRename,
)
