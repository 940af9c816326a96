"""What `docs` does: loads the project, reads the deployment state, and writes the site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from delta_engine.cli.terminal import Context, print_note, say, status
from delta_engine.config.conf_folder import folder_in_repository
from delta_engine.orchestrate.deployments import open_deployment
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.opening import open_backend, open_environment
from delta_engine.orchestrate.project import Project, load_project
from delta_engine.telemetry.visible import counted
from delta_engine.tools.site.documentation import (
    NOT_WANTED,
    document_project,
    read_deployment_state,
    with_found_drift,
)
from delta_engine.tools.site.documented import Documentation, SourceLinks
from delta_engine.tools.site.folder import open_site_folder
from delta_engine.tools.site.pages import site_pages


def write_docs(
    context: Context,
    out: Path,
    tables: Sequence[str],
    *,
    source_url: str,
    reads_state: bool,
    finds_drift: bool,
) -> None:
    """Write the site of the project's models into a folder.

    Args:
        source_url: the address of a model's file, or of the repository; empty for no links.
        reads_state: whether to read the deployment state.
        finds_drift: whether to read the catalog for drift.

    Raises:
        ConfigError: the folder has files that `docs` did not write, or the address is none. Nothing is written then.
    """
    conf_dir, environment = context.place()
    links = SourceLinks.of(source_url, folder_in_repository(conf_dir.absolute().parent))
    with open_site_folder(out) as folder:
        project = load_project(conf_dir, environment, tables=tables)
        documentation = _documentation(project, links, reads_state=reads_state, finds_drift=finds_drift)
        written = _counted(documentation)
        with status(f"writing {written} …"):
            for path, text in site_pages(documentation):
                folder.write(path, text)
    say(f"{project.settings.environment}: {written} in {out / 'index.html'}")


def _counted(documentation: Documentation) -> str:
    """Return the number of tables, and of models of each other kind that has some."""
    counts = Counter(model.qualified_name.kind for model in documentation.models)
    del counts["table"]
    others = (counted(count, noun) for noun, count in counts.items())
    return ", ".join((counted(len(documentation.tables), "table"), *others))


def _documentation(
    project: Project, links: SourceLinks, *, reads_state: bool, finds_drift: bool
) -> Documentation:
    if not reads_state:
        return document_project(project, None, links, why_not_applied=NOT_WANTED)
    opener = partial(open_backend, project.settings, notify=print_note)
    with status("reading the deployment state …"):
        state, why_not = read_deployment_state(project, opener, print_note)
    documentation = document_project(project, state, links, why_not_applied=why_not)
    if not finds_drift:
        return documentation
    with status("reading the catalog …"):
        backend = opener()
        environment = open_environment(
            project, backend, open_deployment(project.settings, backend), notify=print_note
        )
        report = report_drift(environment, project.synced, is_partial=project.is_partial)
    return with_found_drift(documentation, report)
