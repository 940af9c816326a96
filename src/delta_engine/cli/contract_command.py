"""The `contract` command: declared tables as a data contract."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from delta_engine.cli.completion import complete_table
from delta_engine.cli.options import argument, value
from delta_engine.cli.terminal import print_note

CONTRACT_EPILOG: Final = (
    "Example: delta-engine -e prod contract silver.orders --to contracts/orders.odcs.yaml"
)


def contract(
    ctx: typer.Context,
    tables: Annotated[
        list[str],
        argument(
            "TABLE",
            "Globs of declared tables in one schema: name, schema.name or catalog.schema.name.",
            complete_table,
        ),
    ],
    to: Annotated[
        Path | None, value("--to", "FILE", "Write the contract to this new file instead of stdout.")
    ] = None,
    version: Annotated[
        str, value("--contract-version", "VERSION", "The version of the contract itself.")
    ] = "1.0.0",
) -> None:
    """Write declared tables as a data contract.

    The contract follows the Open Data Contract Standard (ODCS) 3.1. It has columns, keys, descriptions, tags,
    partitions and checks, and the environment as its server. `import --from` reads it back.
    """
    from delta_engine.config.loading import load_declared
    from delta_engine.errors import InvalidCommandError
    from delta_engine.orchestrate.import_folder import write_new
    from delta_engine.orchestrate.project import load_project
    from delta_engine.tools.importers.contracts import contract_text

    conf_dir, environment = ctx.obj.place()
    project = load_project(conf_dir, environment, tables=tables)
    if not project.tables:
        raise InvalidCommandError(
            f"{' '.join(tables)} names no tables",
            way_out="Name tables, because a contract describes only tables.",
        )
    declared = {table.key: table for table in load_declared(project.settings).tables}
    chosen = [
        declared[table.key] for table in project.tables
    ]  # as written: derived names are of this catalog
    text, notes = contract_text(chosen, declared, environment, version)
    for note in notes:
        print_note(note)
    if to is None:
        typer.echo(text, nl=False)
        return
    if to.exists():
        raise InvalidCommandError(
            f"{to} exists, and a contract never overwrites files", way_out="Name another file with --to."
        )
    write_new(to, text)
    print_note(f"{to} written")
