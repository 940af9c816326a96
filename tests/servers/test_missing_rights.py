"""First syncs of a principal that lacks rights on the state schema: few statements, and the GRANTs to paste."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.errors import StatementError
from tests.builders.error_forms import FORMS
from tests.fakes.warehouse_sql import USER, WarehouseSql
from tests.fakes.workspace import Answer, FakeWorkspace
from tests.projects.commandline import CommandLine
from tests.servers.warehouse_project import make_project


@pytest.mark.parametrize("form", FORMS)
def test_a_first_sync_without_create_table_ends_at_once(
    workspace: FakeWorkspace,
    sql: WarehouseSql,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    delta_engine: CommandLine,
    form: str,
) -> None:
    make_project(workspace, tmp_path, monkeypatch)

    def refuse(statement: str) -> Answer:
        if statement.startswith("CREATE TABLE"):
            sql.statements.append(statement)
            words = FORMS[form](
                "PERMISSION_DENIED", "User does not have CREATE TABLE on Schema 'dev.delta_engine'."
            )
            raise StatementError(words, sql=statement, error_class=None)
        return sql(statement)

    workspace.run = refuse
    refused = delta_engine("-e", "dev", "sync", "--yes")
    assert refused.code not in (0, 2)
    assert "User does not have CREATE TABLE on Schema 'dev.delta_engine'" in refused.stderr
    assert (
        f"GRANT USE SCHEMA, CREATE TABLE, SELECT, MODIFY ON SCHEMA `dev`.`delta_engine` TO `{USER}`;"
        in refused.stderr
    )
    assert "Traceback" not in refused.stderr
    assert len([one for one in sql.statements if one.startswith("CREATE TABLE")]) == 1
    assert len(sql.statements) <= 10
