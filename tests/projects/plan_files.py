"""Plan files, and a project over a fake platform: for plans that are written, reviewed and applied."""

import json
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from delta_engine import __version__
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.sql_runner import Row
from delta_engine.cli import commands
from delta_engine.errors import DeltaEngineError, RefusedError
from delta_engine.models import QualifiedName, ViewName
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.project import load_project
from delta_engine.plan_files.codec import encode_plan_file, read_plan_file, sealed
from delta_engine.plan_files.document import (
    SCHEMA_URI,
    VERSION,
    Options,
    Origin,
    PlanFile,
    PlannedStatement,
    PolicyRecord,
    TouchedResource,
)
from delta_engine.state.audits import Audit
from delta_engine.state.catalog_reader import Listing
from delta_engine.state.states import CatalogState
from delta_engine.state.table_queries import Commit, TableQueries, TableVersion
from tests.builders.worlds import Kill
from tests.fakes.platform import FakePlatform
from tests.projects.commandline import CommandLine, Result

CONFIG = """\
environment: {environment}
backend: {{type: databricks}}
state_backend: {{type: local, local: {{path: state}}}}
variables: {{catalog: dev}}
models: {{yaml: ["conf/models/*.yml"]}}
policy: {policy}
apply: {{parallelism: 1}}
"""

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


SOME = "sha256:" + "0" * 64

PLAN = sealed(
    PlanFile(
        schema_uri=SCHEMA_URI,
        version=VERSION,
        checksum="",
        engine_version="0.3.0",
        environment="dev",
        origin=Origin(
            made_at=datetime(2026, 3, 1, 12, tzinfo=timezone.utc), made_by="ana", lineage="git:abc"
        ),
        options=Options(tables=("silver.*",), allow=("drop_column",)),
        policy=PolicyRecord(
            allow=("drop_column",),
            create_schemas=False,
            tags="additive",
            grants="additive",
            column_order="report",
            removed_tables="keep",
            rules=(),
            max_rewrite_bytes=None,
            drift="refuse",
        ),
        state_id="s",
        touched={
            "table.dev.silver.orders": TouchedResource(
                observed=SOME, declared=SOME, recorded=SOME, table_id="1"
            ),
            "schema.dev.gold": TouchedResource(),
        },
        plan={
            "format": "delta-engine/plan",
            "tables": [
                {
                    "table": "dev.silver.orders",
                    "change": "align",
                    "actions": [
                        {
                            "action": "SetTableComment",
                            "changes": [
                                {"sign": "~", "subject": "comment", "observed": "'a'", "desired": "'b'"}
                            ],
                        }
                    ],
                }
            ],
        },
        statements=(PlannedStatement(table="dev.silver.orders", sql="ALTER …\u2028 'ü' \\ ${x}"),),
    )
)
"""A plan file of the environment dev, by engine 0.3.0."""


class AnsweringPlatform(FakePlatform):
    """A platform that also answers what is asked: who runs this, how many rows a table has, how many break a rule."""

    violations = 0

    def run(self, sql: str) -> Sequence[Row]:
        if sql.startswith("SELECT current_user()"):
            return [{"who": "ana"}]
        if sql.startswith("SELECT count("):
            return [{"row_count": 3}]
        if sql.startswith("SELECT count_if("):
            return [{"violations_0": self.violations}]
        return super().run(sql)


class FakeVersions:
    """Tells the ids of a platform's tables, which are other ones once a table was made anew."""

    def __init__(self, platform: FakePlatform) -> None:
        self.asked: list[list[str]] = []
        self._platform = platform
        self._ids: dict[str, str] = {}

    def read_versions(
        self, tables: Sequence[QualifiedName], *, with_id: Collection[str]
    ) -> Mapping[str, TableVersion]:
        self.asked.append([table.key for table in tables])
        return {
            table.key: TableVersion(table_id=self._ids.get(table.key, f"id of {table.key}"), version=1)
            for table in tables
            if table.key in self._platform.states
        }

    def recreate(self, table: str) -> None:
        self._ids[table] = f"another id of {table}"
        audit = Audit(created_at=NOON)
        self._platform.states[table] = replace(self._platform.states[table], audit=audit)


class NoHistory:
    def read_commits(self, tables: Sequence[QualifiedName]) -> Mapping[str, tuple[Commit, ...]]:
        return {}


class NoTables:
    def relations_in(self, catalog: str, schemas: Collection[str] | None = None) -> Listing:
        return Listing(tables=())

    def governed_in(
        self, catalog: str, schemas: Collection[str], views: Sequence[ViewName] = ()
    ) -> tuple[CatalogState, tuple[RefusedError, ...]]:
        return CatalogState(tables={}), ()


class PlanProject:
    """A project folder, and a command line whose backend is a fake platform."""

    def __init__(self, folder: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.platform = AnsweringPlatform()
        self.versions = FakeVersions(self.platform)
        self.file = folder / "plan.json"
        self.capabilities = DATABRICKS
        self._delta_engine = delta_engine
        (folder / "conf" / "models").mkdir(parents=True)
        self.configure()
        monkeypatch.chdir(folder)
        monkeypatch.setattr(commands, "open_backend", lambda *_arguments, **_options: self.backend())

    def backend(self) -> Backend:
        return Backend(
            runner=self.platform,
            reader=self.platform,
            lister=NoTables(),
            addressing=CatalogAddressing(),
            capabilities=self.capabilities,
            versions=self.versions,
            history=NoHistory(),
            row_counter=TableQueries(self.platform, CatalogAddressing()),
            platform_version=lambda: "fake",
        )

    def configure(self, policy: str = "{create_schemas: true}", environment: str = "local") -> None:
        text = CONFIG.format(environment=environment, policy=policy)
        (self.folder / "conf" / f"{environment}.yml").write_text(text)

    def declare(self, *, is_nullable: bool = True, further: str = "", **comments: str) -> None:
        """Declare tables of one column by their names and comments; those that were declared are not any more.

        Args:
            is_nullable: whether the column is.
            further: further keys of all tables, as YAML.
            comments: comments by the tables' names.
        """
        tables = "".join(
            f"\n  - {{catalog: dev, schema: silver, name: {name}, comment: {json.dumps(comment)}, "
            f"columns: [{{name: id, type: bigint, nullable: {json.dumps(is_nullable)}}}]{further}}}"
            for name, comment in comments.items()
        )
        (self.folder / "conf" / "models" / "tables.yml").write_text(f"tables:{tables}\n")

    def run(self, *arguments: str, environment: str = "local") -> Result:
        with suppress(DeltaEngineError):  # the command says what is wrong
            models = load_project(self.folder / "conf", environment).tables
            self.platform.models |= {model.qualified_name.key: model for model in models}
        return self._delta_engine("-e", environment, *arguments)

    def kill(self, text: str, *arguments: str) -> None:
        """Kill a command before its first statement with a text."""
        run = self.platform.run

        def killing(sql: str) -> Sequence[Row]:
            if text in sql:
                raise Kill
            return run(sql)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(self.platform, "run", killing)
            with pytest.raises(Kill):
                self.run(*arguments)

    def sync(self) -> None:
        assert self.run("sync", "--yes").code == 0
        self.platform.statements.clear()

    def plan(self, *options: str) -> Result:
        result = self.run("plan", "--out", "plan.json", *options)
        assert result.code == 0, result.stderr
        return result

    def apply(self, *options: str, environment: str = "local") -> Result:
        return self.run("apply", "plan.json", "--yes", *options, environment=environment)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Bring the platform, and what is remembered of it, back to what they were."""
        kept, states = self.folder / "kept", dict(self.platform.states)
        shutil.copytree(self.folder / "state", kept)
        try:
            yield
        finally:
            shutil.rmtree(self.folder / "state")
            kept.rename(self.folder / "state")
            self.platform.states = states
            self.platform.statements.clear()

    def read(self) -> PlanFile:
        return read_plan_file(self.file, environment="local", engine_version=__version__)

    def forge(self, file: PlanFile) -> None:
        self.file.write_bytes(encode_plan_file(sealed(file)))
