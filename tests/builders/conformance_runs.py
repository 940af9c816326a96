"""Whole conformance runs on a platform in memory, with a clock of their own."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from delta_engine.backends.capabilities import DATABRICKS, Capabilities
from delta_engine.errors import StatementError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.orchestrate.backend import Backend, databricks_backend
from delta_engine.tools.conformance.report import ConformanceReport, GroupReport, ProbeReport
from delta_engine.tools.conformance.run import ConformanceRun, Prepared, prepare
from delta_engine.tools.conformance.statement_log import StatementLog
from tests.fakes.conformance_platform import TARGET, ConformancePlatform

RUN_ID = "0123abcd"
LOCATION = "s3://bucket/scratch"
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


@dataclass
class Clock:
    """A clock that passes only while something waits, or while a statement runs."""

    now: float = 0.0
    waits: list[float] = field(default_factory=list)

    def seconds(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@dataclass
class Rig:
    platform: ConformancePlatform = field(default_factory=ConformancePlatform)
    run_id: str = RUN_ID
    has_listing: bool = True
    capabilities: Capabilities = DATABRICKS
    external_location: str = LOCATION
    clock: Clock = field(default_factory=Clock)
    progress: list[tuple[int, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = StatementLog(self.clock.seconds)
        self.control = ApplyControl(wait=self.clock.wait, seconds=self.clock.seconds)

    @property
    def backend(self) -> Backend:
        listing = self.platform if self.has_listing else None
        return databricks_backend(
            self.log.through(self.platform),
            parallelism=1,
            listing=listing,
            capabilities=self.capabilities,
        )

    def prepared(self, target: str = TARGET) -> Prepared:
        return prepare(self.backend, self.log, target, self.run_id, external_location=self.external_location)

    def run(self, groups: Collection[str] = ()) -> ConformanceReport:
        """Run everything; or, to be faster, the named groups and the probes."""
        prepared = self.prepared()
        if groups:
            some = tuple(group for group in prepared.groups if group.name in groups)
            prepared = replace(prepared, groups=some)
        run = ConformanceRun(
            backend=self.backend,
            log=self.log,
            prepared=prepared,
            control=self.control,
            on_progress=lambda *progress: self.progress.append(progress),
            now=lambda: STARTED,
        )
        return run.run()


def refusing(
    is_meant: Callable[[str], bool],
    error_class: str | None = "INSUFFICIENT_PERMISSIONS",
    message: str = "ask ann",
    sql_state: str | None = "42501",
) -> Callable[[str], None]:
    def fault(sql: str) -> None:
        if is_meant(sql):
            raise StatementError(message, sql=sql, error_class=error_class, sql_state=sql_state)

    return fault


def group_of(report: ConformanceReport, name: str) -> GroupReport:
    (group,) = [group for group in report.groups if group.name == name]
    return group


def probe_of(report: ConformanceReport, name: str) -> ProbeReport:
    (probe,) = [probe for probe in report.probes if probe.name == name]
    return probe
