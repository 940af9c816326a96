"""A process runs one command of the engine: its calls of ports take turns, meet faults, and end when it is killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from delta_engine.drift.drift_report import DriftReport
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.models import Securable, Table
from tests.builders.worlds import Kill
from tests.simulation.scenarios import Command, FaultKind

if TYPE_CHECKING:
    from tests.simulation.imports import ImportedFolder
    from tests.simulation.teams import Team
    from tests.simulation.world import World

Answer = TypeVar("Answer")

LEASE_SECONDS = 60.0
_SLOW_SECONDS = LEASE_SECONDS * 2.5


@dataclass(frozen=True)
class PortErrors:
    """How a port words faults."""

    refused: Callable[[], Exception]
    throttled: Callable[[], Exception]
    unavailable: Callable[[], Exception]
    lost: Callable[[], Exception]
    conflict: Callable[[], Exception]


@dataclass(eq=False)
class Process:
    """One run of a command.

    Attributes:
        calls: the number of its calls of ports.
        control: what stops its apply; None while it applies nothing.
        is_changing: whether it has sent a statement that changes the catalog.
        lock_ids: the ids under which it took the lock.
        report: what a `drift` reported.
        seen_grants: the grants on functions when it last read the catalog.
        read_journals: the ids of the runs whose journals it read.
        imported: what an `import` writes.
        notes: what it told the user.
    """

    world: World
    team: Team
    actor: str
    number: int
    command: Command
    calls: int = 0
    control: ApplyControl | None = None
    is_killed: bool = False
    is_changing: bool = False
    is_at_lock: bool = False
    frozen_until: float = 0.0
    began_at: float = 0.0
    models: tuple[Table, ...] = ()
    report: DriftReport | None = None
    read_journals: frozenset[str] = frozenset()
    seen_grants: frozenset[str] = frozenset()
    imported: ImportedFolder | None = None
    lock_ids: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.command.verb.value} #{self.number}"

    @property
    def declared(self) -> list[Securable]:
        """The models that it loads."""
        return [*self.models, *self.team.others]

    @property
    def holds_lock(self) -> bool:
        """Whether the lock is its own at this moment."""
        record = self.team.lock.record
        return record is not None and not record.released and record.lock_id in self.lock_ids

    @contextmanager
    def at_lock(self) -> Iterator[None]:
        """Keep the lease from being renewed in the background meanwhile."""
        self.is_at_lock = True
        try:
            yield
        finally:
            self.is_at_lock = False

    def tell(self, text: str) -> None:
        self.world.stage.tell(f"{self.name}: {text}", by=self.actor)

    def call(
        self, what: str, effect: Callable[[], Answer], errors: PortErrors, *, is_release: bool = False
    ) -> Answer:
        """Let a call of a port take its turn, and its fault happen."""
        self._require_alive()
        if self.world.stage.is_beating:
            return effect()
        self.calls += 1
        fault = next((fault.kind for fault in self.command.faults if fault.call == self.calls), None)
        if is_release and fault is FaultKind.CTRL_C:  # signals are deferred during the release
            fault = None
        self.tell(f"{what} {fault.value}" if fault else what)
        self.world.stage.turn()
        self._require_alive()
        if fault is None:
            return effect()
        return self._failing(fault, effect, errors)

    def sleep(self, seconds: float) -> None:
        """Wait as the engine waits between attempts."""
        self._require_alive()
        self.world.stage.sleep(seconds)

    def repeat(self, seconds: float, action: Callable[[], bool]) -> Callable[[], None]:
        """Renew a lease in the background: not while the process is frozen or dead, or renews it itself."""

        def beat() -> bool:
            if self.is_killed:
                return False
            is_busy = self.is_at_lock or self.world.stage.now < self.frozen_until
            return is_busy or action()

        return self.world.stage.repeat(seconds, beat)

    def _failing(self, fault: FaultKind, effect: Callable[[], Answer], errors: PortErrors) -> Answer:
        match fault:
            case FaultKind.REFUSED:
                raise errors.refused()
            case FaultKind.THROTTLED:
                raise errors.throttled()
            case FaultKind.UNAVAILABLE:
                effect()
                raise errors.unavailable()
            case FaultKind.LOST_BEFORE:
                raise errors.lost()
            case FaultKind.LOST_AFTER:
                effect()
                raise errors.lost()
            case FaultKind.CONFLICT:
                raise errors.conflict()
            case FaultKind.SLOW:
                self.sleep(_SLOW_SECONDS)
            case FaultKind.FROZEN:
                self.frozen_until = self.world.stage.now + _SLOW_SECONDS
                self.sleep(_SLOW_SECONDS)
            case FaultKind.KILLED_BEFORE:
                self._die()
            case FaultKind.KILLED_AFTER:
                effect()
                self._die()
            case FaultKind.CTRL_C:
                if self.control is None:
                    raise KeyboardInterrupt
                self.control.stop.request()
        self._require_alive()
        return effect()

    def _die(self) -> None:
        self.is_killed = True
        raise Kill

    def _require_alive(self) -> None:
        """A dead process does nothing more, whatever its handlers of errors try."""
        if self.is_killed:
            raise Kill
