"""The doctor's checks: packages, the deployed commit, the platform, stores, catalogs, the plan, and rights.

A store must honour conditional writes, or two runs could overwrite each other's documents.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from delta_engine.actions import TablePlan
from delta_engine.aspects.aspect import Right
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.config.settings import Settings
from delta_engine.config.state_backend import DatabricksState, S3State
from delta_engine.config.whole_files import write_atomically
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.errors import ConflictError, StoreError
from delta_engine.deployment.stores.s3 import S3Folder
from delta_engine.deployment.stores.volume_files import VolumeFiles
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import DISTRIBUTION, RefusedError, engine_version
from delta_engine.models import QualifiedName, SchemaName
from delta_engine.report.plan_tree import plan_summary
from delta_engine.sql.governance import sql_grant
from delta_engine.sql.tables import sql_create_schema
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.states import CatalogState
from delta_engine.state.unity_catalog.information_schema import (
    OF_SCHEMAS,
    OF_TABLES,
    SCHEMATA,
    TABLES,
    SystemView,
)
from delta_engine.state.unity_catalog.routines import OF_FUNCTIONS
from delta_engine.state.unity_catalog.views import VIEWS
from delta_engine.telemetry.visible import counted
from delta_engine.tools.doctor.report import Check, Topic
from delta_engine.tools.doctor.statuses import status_of
from delta_engine.validation.needed_rights import (
    Need,
    SecurableObject,
    Verdict,
    functions_of,
    locations_of,
    merged,
    rights_at_hand,
    securable,
)

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

_RUNTIME: Final = re.compile(r"databricks runtime (\d+)\.(\d+)")
_UNKNOWN_RUNTIME: Final = "databricks runtime unknown"
_ONE_BY_ONE: Final = "each changed column needs its own statement"
_COSTS: Final = (
    ((16, 2), "a table is described with two statements instead of one (16.2)"),
    ((16, 3), f"{_ONE_BY_ONE} (16.3)"),
    ((17, 3), "keys are read only from information_schema, which may lag (in DESCRIBE … AS JSON: 17.3)"),
)
"""The costs of runtimes before each version (docs.databricks.com: "DESCRIBE TABLE", "ALTER TABLE … ALTER COLUMN")."""

_MOST_SKEW_SECONDS: Final = 60.0
CLOCK_QUERY: Final = "SELECT unix_micros(current_timestamp()) AS micros"

FILE_NAMES_QUERY: Final = (
    "SELECT java_method('java.lang.System', 'getProperty', 'sun.jnu.encoding') AS encoding"
)

SCRATCH_NAME: Final = ".delta-engine-doctor"
"""The name prefix of scratch files; each is deleted after it was read back."""

_CONTENT: Final = b"delta-engine doctor"
_CONDITIONS: Final = "runs could overwrite each other's files: the store cannot hold a deployment state"

_VIEW_COLUMNS: Final = SystemView(
    name="columns", columns=("table_name", "column_name"), schema_column="table_schema"
)

_QUERIED: Final[Mapping[str, Sequence[str]]] = {
    **{view.name: view.columns for view in (SCHEMATA, TABLES, *OF_SCHEMAS, *OF_TABLES, *OF_FUNCTIONS, VIEWS)},
    "catalogs": ("catalog_name", "catalog_owner"),
    "catalog_privileges": ("catalog_name", "grantee", "privilege_type"),
}
"""The columns that the reader names, by view. Views without columns are read whole: spellings vary by workspace."""

_OTHER_PROJECT: Final = "delta-engine"
"""The name of another project on the public package index, and of this one up to version 0.2."""


def extras_of(settings: Settings) -> frozenset[str]:
    """Return the engine's extras that an environment needs."""
    place = settings.state_backend.place
    is_databricks = settings.backend.is_databricks
    needed = {
        "databricks": is_databricks or isinstance(place, DatabricksState),
        "s3": isinstance(place, S3State),
        "local": not is_databricks,
    }
    return frozenset(extra for extra, is_needed in needed.items() if is_needed)


def engine_check(installed: Callable[[str], str]) -> Check:
    """Return the engine's version, or that another project is installed that has the same import name and command.

    Args:
        installed: returns the version of a package or raises PackageNotFoundError.
    """
    try:
        other = installed(_OTHER_PROJECT)
    except PackageNotFoundError:
        return Check.ok(Topic.PACKAGES, DISTRIBUTION, engine_version())
    return Check.missing(
        Topic.PACKAGES,
        DISTRIBUTION,
        f"the package {_OTHER_PROJECT} {other} is installed, too: an old release of this engine, or another project. "
        "Python may import its code instead",
        f"pip uninstall -y {_OTHER_PROJECT} {DISTRIBUTION}, and install the engine's wheel again.",
    )


def package_checks(
    requirements: Iterable[str], extras: Collection[str], installed: Callable[[str], str]
) -> Iterator[Check]:
    """Yield whether required packages are installed; `installed` returns a version or raises PackageNotFoundError."""
    from packaging.requirements import Requirement

    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield _package_check(requirement.name, requirement.specifier, installed)


def _package_check(name: str, versions: SpecifierSet, installed: Callable[[str], str]) -> Check:
    from packaging.version import InvalidVersion, Version

    way_out = f"pip install '{name}{versions}'; in the bundle: the job's environment, `dependencies`."
    try:
        version = installed(name)
        is_right = not versions or versions.contains(Version(version), prereleases=True)
    except PackageNotFoundError:
        return Check.missing(Topic.PACKAGES, name, "not installed", way_out)
    except InvalidVersion:
        finding = f"{version!r} is installed, which cannot be compared with {versions}"
        return Check.unknown(Topic.PACKAGES, name, finding, way_out)
    if is_right:
        return Check.ok(Topic.PACKAGES, name, version)
    return Check.missing(Topic.PACKAGES, name, f"{version} is installed, but {versions} is needed", way_out)


def lineage_check(lineage: str) -> Check:
    """Return whether the deployed commit is known; `lineage` is `git:<commit>` or `unknown`."""
    if lineage.removeprefix("git:") not in ("", "unknown"):
        return Check.ok(Topic.LINEAGE, "project", lineage)
    return Check.unknown(
        Topic.LINEAGE,
        "project",
        "no commit: the project is not in a Git repository, or git is not installed",
        "Run the engine from a clone, or deploy the bundle from a clone, so that runs record the commit.",
    )


def platform_check(version: str) -> Check:
    """Return the platform's version with the costs of an older runtime; plans refuse what it lacks."""
    if version == _UNKNOWN_RUNTIME:  # the engine then sends what every runtime accepts
        return Check.unknown(Topic.PLATFORM, "version", f"{version}; {_ONE_BY_ONE}")
    runtime = _RUNTIME.match(version)
    costs = [
        cost for since, cost in _COSTS if runtime is not None and (int(runtime[1]), int(runtime[2])) < since
    ]
    return Check.ok(Topic.PLATFORM, "version", "; ".join((version, *costs)))


def clock_check(runner: SqlRunner, now: Callable[[], float]) -> Check:
    """Return whether the platform and `now` (seconds since 1970) agree: histories and drift are compared by time."""
    before = now()
    (row,) = runner.run(CLOCK_QUERY)
    after = now()
    skew = int(str(row["micros"])) / 1_000_000 - (before + after) / 2
    error = (after - before) / 2
    finding = (
        f"the platform's clock is {abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}, ± {error:.1f} s"
    )
    if abs(skew) - error > _MOST_SKEW_SECONDS:
        return Check.missing(Topic.CLOCK, "clock", finding, "Synchronize the clock of this machine with NTP.")
    if error > _MOST_SKEW_SECONDS:
        return Check.unknown(
            Topic.CLOCK, "clock", finding, "Run the command again, because the answer took too long."
        )
    return Check.ok(Topic.CLOCK, "clock", finding)


def file_names_check(runner: SqlRunner) -> Check:
    """Return whether Spark and Python name files in UTF-8, so that both find the folders of tables beyond ASCII."""
    (row,) = runner.run(FILE_NAMES_QUERY)
    java, python = str(row["encoding"]), sys.getfilesystemencoding()
    if java.upper() == python.upper() == "UTF-8":
        return Check.ok(Topic.WAREHOUSE, "file names", "Spark and Python name files in UTF-8")
    finding = f"Spark names files in {java} and Python in {python}: tables whose names are not ASCII fail"
    return Check.missing(Topic.WAREHOUSE, "file names", finding, "Set LC_ALL=C.UTF-8 before Spark starts.")


def folder_check(topic: Topic, folder: Path) -> Check:
    """Return whether files of a folder can be replaced atomically; remove folders that had to be created."""
    created = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SCRATCH_NAME
    try:
        for content in (b"first", b"second"):
            write_atomically(path, content)
        is_replaced = path.read_bytes() == b"second"
    finally:
        path.unlink(missing_ok=True)
        with suppress(OSError):  # another process has begun to use it
            for parent in created:
                parent.rmdir()
    if is_replaced:
        return Check.ok(topic, str(folder), "files can be written and replaced")
    way_out = "Use a local disk: this file system does not replace files atomically."
    return Check.missing(topic, str(folder), "a replaced file has its old content", way_out)


def volume_check(files: VolumeFiles, volume: str) -> Check:
    """Return whether a volume can write, read, protect and delete a scratch file; may raise StoreError."""
    path = f"{volume}/{SCRATCH_NAME}-{uuid4().hex}"
    try:
        with suppress(ConflictError):  # a hidden retry of this very upload
            files.upload(path, _CONTENT, overwrite=False)
        fault = _volume_fault(files, path)
    except StoreError:
        with suppress(StoreError):
            files.delete(path)
        raise
    files.delete(path)
    if not fault:
        finding = "a scratch file was written, read back, not overwritten, and deleted"
        return Check.ok(Topic.STATE, volume, finding)
    way_out = "Use another volume, and report it: Unity Catalog's volumes refuse to overwrite."
    return Check.missing(Topic.STATE, volume, fault, way_out)


def _volume_fault(files: VolumeFiles, path: str) -> str:
    if files.read(path) != _CONTENT:
        return "a written file returns another content"
    try:
        files.upload(path, b"overwritten", overwrite=False)
    except ConflictError:
        return ""
    return f"a file was overwritten in spite of a condition: {_CONDITIONS}"


def bucket_check(folder: S3Folder) -> Check:
    """Return whether a bucket honours conditional writes, using scratch objects; may raise StoreError."""
    ignored = folder.probe.ignored_condition()
    if not ignored:
        return Check.ok(Topic.STATE, folder.location(""), "conditional writes are honoured")
    finding = f"the endpoint ignores {ignored}: {_CONDITIONS}"
    return Check.missing(Topic.STATE, folder.location(""), finding, "Use another endpoint.")


def document_check(deployment: Deployment) -> Check:
    """Return whether the deployment state and its journals are readable; raises DeltaEngineError if they are not."""
    state = deployment.peek_replayed()
    finding = f"serial {state.serial}" if state else "not there yet; the first sync creates it"
    return Check.ok(Topic.STATE, deployment.repository.location, finding)


def lock_check(deployment: Deployment) -> Check:
    """Return whether the lock is readable, without taking it; raises DeltaEngineError if it is not."""
    holder = deployment.lock.holder()
    return Check.ok(Topic.LOCK, deployment.lock.location, f"held by {holder}" if holder else "free")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogUse:
    """The declared tables, the engine's own tables and the schemas that an environment uses in one catalog.

    Catalog and schema names are in lower case. `created` holds the schemas that a sync creates if they are missing.
    """

    catalog: str
    tables: tuple[QualifiedName, ...]
    schemas: tuple[str, ...]
    created: frozenset[str] = frozenset()


def catalog_uses(
    declared: Sequence[QualifiedName],
    schemas: Sequence[SchemaName],
    own: Sequence[QualifiedName],
    *,
    creates_schemas: bool,
) -> tuple[CatalogUse, ...]:
    """Return an environment's use of each catalog, sorted by name.

    Args:
        schemas: those that are declared, and those of declared functions.
    """
    own_schemas = {(name.catalog.lower(), name.schema.lower()) for name in own}
    names: Sequence[QualifiedName | SchemaName] = (*declared, *schemas)
    declared_schemas = {(name.catalog.lower(), name.schema.lower()) for name in names}
    return tuple(
        CatalogUse(
            catalog=catalog,
            tables=tuple(name for name in (*declared, *own) if name.catalog.lower() == catalog),
            schemas=tuple(sorted(schema for of, schema in declared_schemas | own_schemas if of == catalog)),
            created=frozenset(schema for of, schema in declared_schemas if of == catalog and creates_schemas),
        )
        for catalog in sorted({catalog for catalog, _ in declared_schemas | own_schemas})
    )


def catalog_checks(
    use: CatalogUse, observed: CatalogState, refusals: Sequence[RefusedError]
) -> Iterator[Check]:
    """Yield the missing catalogs and schemas, and the unreadable tables."""
    read = [table for table in use.tables if observed.tables.get(table.key) is not None]
    count = sum(observed.table(table).exists for table in read)
    finding = f"it can be read; {counted(count, 'table')} of {len(use.tables)} there"
    yield Check.ok(Topic.CATALOGS, f"catalog {use.catalog}", finding)
    missing = {schema for _, schema in observed.missing_schemas}
    for schema in use.schemas:
        subject = f"schema {use.catalog}.{schema}"
        if schema not in missing:
            yield Check.ok(Topic.CATALOGS, subject, "exists")
        elif schema in use.created:
            yield Check.ok(Topic.CATALOGS, subject, "does not exist; the next sync creates it")
        else:
            create = sql_create_schema(use.catalog, schema)
            way_out = f"{create}. If it exists: GRANT {Right.USE_SCHEMA.privilege} on it."
            finding = "does not exist, or is not visible to this identity"
            yield Check.missing(Topic.CATALOGS, subject, finding, way_out)
    for refusal in refusals:
        yield Check(
            topic=Topic.CATALOGS,
            subject=f"table {refusal.table}",
            status=status_of(refusal),
            found=refusal.reason,
            way_out=refusal.way_out,
        )


def view_check(runner: SqlRunner, catalog: str) -> Check:
    """Return whether the views of a catalog have the columns that the reader names; may raise StatementError."""
    subject = f"{catalog}.information_schema"
    listed: dict[str, set[str]] = defaultdict(set)
    for row in runner.run(_VIEW_COLUMNS.query(catalog, ["information_schema"])):
        listed[str(row["table_name"]).lower()].add(str(row["column_name"]).lower())
    if not listed:
        finding = "the views do not list themselves, so their columns are unknown"
        return Check.unknown(Topic.VIEWS, subject, finding)
    lacking = [
        f"{view}.{column}" if view in listed else view
        for view, columns in _QUERIED.items()
        for column in ((set(columns) - listed[view]) if view in listed else [""])
    ]
    if not lacking:
        finding = f"{len(_QUERIED)} views have the columns that the reader asks for"
        return Check.ok(Topic.VIEWS, subject, finding)
    way_out = "Report it with this output: the reader asks for these columns."
    return Check.missing(Topic.VIEWS, subject, f"not there: {', '.join(sorted(lacking))}", way_out)


def plan_checks(planned: PlannedRun, *, is_recorded: bool) -> Iterator[Check]:
    """Yield the pending changes and the refusals of a sync; `is_recorded` if the plan used the deployment state."""
    without = "" if is_recorded else " (planned without the deployment state)"
    yield Check.ok(Topic.PLAN, "sync", f"{plan_summary(planned.plan)}{without}")
    for refusal in planned.refusals:
        finding = f"refused: {str(refusal).removesuffix(refusal.way_out).strip()}"
        yield Check(
            topic=Topic.PLAN,
            subject="sync",
            status=status_of(refusal),
            found=finding,
            way_out=refusal.way_out,
        )


def unchecked_rights(plan: TablePlan, observed: CatalogState, principal: str) -> Iterator[Check]:
    """Yield the rights of a plan that the doctor cannot check: on functions that were not read, and on locations."""
    finding = "the plan needs this right, but the doctor does not check it"
    for function in functions_of(plan):
        if function.key not in observed.functions:
            grant = securable(function).grant(Right.EXECUTE, principal)
            subject = f"{Right.EXECUTE.privilege} on function {function}"
            yield Check.unknown(Topic.RIGHTS, subject, finding, f"If it is missing: {grant}")
    for location in locations_of(plan):
        grant = sql_grant("EXTERNAL LOCATION `<name>`", ["CREATE EXTERNAL TABLE"], principal)
        subject = f"CREATE EXTERNAL TABLE on the external location of {location}"
        way_out = f"If it is missing, with the name of that location: {grant}"
        yield Check.unknown(Topic.RIGHTS, subject, finding, way_out)


def basic_needs(
    uses: Sequence[CatalogUse], own: Sequence[QualifiedName], observed: CatalogState
) -> Iterator[Need]:
    """Yield the rights for reading the catalogs, as far as they are readable, and for the engine's own tables."""
    for use in uses:
        yield Need(securable=SecurableObject((use.catalog,)), right=Right.USE_CATALOG)
        for schema in use.schemas:
            if f"{use.catalog}.{schema}" in observed.schema_states:
                above = SecurableObject((use.catalog, schema))
                yield Need(securable=above, right=Right.USE_SCHEMA, owners_above=True)
    for table in (table for use in uses for table in use.tables):
        if _exists(table, observed):
            yield Need(securable=securable(table), right=Right.SELECT)
    for table in own:
        above = SecurableObject((table.catalog, table.schema))
        if _exists(table, observed):
            yield Need(securable=securable(table), right=Right.MODIFY, statements=("its rows",))
        elif above.levels[0] in observed.schema_states:
            yield Need(securable=above, right=Right.CREATE_TABLE, statements=(f"CREATE TABLE {table}",))


def _exists(table: QualifiedName, observed: CatalogState) -> bool:
    return table.key in observed.tables and observed.table(table).exists


def right_checks(reader: PrincipalReader, needed: Sequence[Need], observed: CatalogState) -> Iterator[Check]:
    """Yield whether the identity has each right, as far as it can see; may raise StatementError."""
    at_hand = rights_at_hand(reader, needed, observed)
    name = at_hand.principal.name
    for need in merged(needed):
        statements = f" for {', '.join(need.statements)}" if need.statements else ""
        subject = f"{need.right.privilege} on {need.securable}"
        grant = need.securable.grant(need.right, name)
        match at_hand.verdict(need):
            case Verdict.HELD:
                yield Check.ok(Topic.RIGHTS, subject, f"held{statements}")
            case Verdict.LACKING:
                owner = at_hand.owner(need.securable)
                owned = f"; its owner is {owner}" if owner else ""
                yield Check.missing(Topic.RIGHTS, subject, f"not granted{statements}{owned}", grant)
            case Verdict.HIDDEN:
                finding = (
                    f"no right of {name} is visible{statements}, because information_schema hides some grants"
                )
                yield Check.unknown(Topic.RIGHTS, subject, finding, f"If it is missing: {grant}")
