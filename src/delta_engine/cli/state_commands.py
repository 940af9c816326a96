"""What the `delta-engine state` commands do: open the deployment state, call it, print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path

import typer
from rich.console import Console

from delta_engine.actions.policy import matches_any
from delta_engine.aspects import KINDS
from delta_engine.aspects.aspect import Change
from delta_engine.cli.terminal import Context, confirm, print_note, say, status
from delta_engine.config.settings import Settings, load_settings
from delta_engine.deployment.codec import encode_record, encode_state, step_lines
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.document import VERSION, DeploymentState
from delta_engine.deployment.errors import (
    CorruptStateError,
    StateMismatchError,
    StoreError,
    UnreadableLockError,
)
from delta_engine.deployment.journal import left_journals, require_no_journal
from delta_engine.deployment.repository import LoadedState
from delta_engine.deployment.resources import ONLY_RENAMABLE, with_new_name, without_resources
from delta_engine.deployment.stored import LockHolder
from delta_engine.drift.document_changes import DEPLOYED_AT, compare_states
from delta_engine.drift.saved_documents import MOST_READ, SavedDocument, saved_documents
from delta_engine.errors import ConfigError, DeltaEngineError, InvalidCommandError, unknown
from delta_engine.models import QualifiedName, Table, ViewName, resource_id, resource_key
from delta_engine.orchestrate.deployments import open_deployment, state_needs_backend
from delta_engine.orchestrate.observing import record_statuses
from delta_engine.orchestrate.opening import open_backend, open_environment
from delta_engine.orchestrate.project import load_project
from delta_engine.orchestrate.runs import open_run
from delta_engine.ownership.recorded import AnyRecord, Status
from delta_engine.report.change_tree import describe_change
from delta_engine.report.json_documents import (
    diff_document,
    history_document,
    resources_document,
    versions_document,
)
from delta_engine.telemetry.context import command
from delta_engine.telemetry.visible import counted, shown_moment, visible

_COMMIT_LENGTH = 7
_RUN_LENGTH = 8
_MOST_NAMED = 5

_COLOURS = {
    Status.HEALTHY: "green",
    Status.DEGRADED: "red",
    Status.FAILED: "red",
    Status.UNKNOWN: "yellow",
    Status.MISSING: "red",
    Status.DRIFTED: "yellow",
    Status.UNMANAGED: "cyan",
}


def show_state(context: Context, name: str | None, *, as_json: bool) -> None:
    """Print the document, its summary, or one resource's record."""
    _, deployment = _open(context)
    state = _loaded(deployment).state
    if name is not None:
        key, *others = _selected(state, [name])
        if others:
            reason = f"{name!r} matches {counted(len(others) + 1, 'resource')}: {', '.join((key, *others))}"
            raise InvalidCommandError(reason, way_out="Write one of these keys.")
        typer.echo(encode_record(state.resources[key]))
    elif as_json:
        typer.echo(encode_state(state))
    else:
        _print_lines(map(visible, _summary(deployment, state)))


def list_resources(context: Context, globs: Sequence[str], statuses: Sequence[str], *, as_json: bool) -> None:
    """Print a line per resource, sorted by key."""
    chosen = _statuses(statuses)
    _, deployment = _open(context)
    state = _loaded(deployment).state
    resources = {
        key: resource
        for key in sorted(state.resources)
        for resource in [state.resources[key]]
        if resource.status in chosen and (not globs or _matches(key, resource, globs))
    }
    if as_json:
        typer.echo(resources_document(state, resources))
    else:
        _print_lines(_resource_lines(resources))


def list_versions(context: Context, *, as_json: bool) -> None:
    """Print the current document and the kept versions, newest first: when, who, which commit, and what changed."""
    _, deployment = _open(context)
    documents = [*_saved_documents(deployment)]
    if as_json:
        typer.echo(versions_document(documents))
        return
    _print_rows([_version_row(document) for document in documents])


def list_runs(context: Context, limit: int, *, as_json: bool) -> None:
    """Print the latest runs, newest first: when, who, which commit, the run's id, and what changed."""
    _, deployment = _open(context)
    saved = [*islice(_saved_documents(deployment, limit), limit)]
    documents = [document for document in saved if not document.is_first]
    runs = [document for document in documents if document.state is not None]
    if not saved:
        _loaded(deployment)  # it says why there is none
    elif not documents:
        print_note(f"no run has ended yet. {command('state show')} shows what a killed run left")
    if as_json:
        typer.echo(history_document(runs))
        return
    _print_rows([_run_row(document, document.state) for document in runs if document.state is not None])
    if hidden := len(documents) - len(runs):
        print_note(f"{counted(hidden, 'document')} cannot be read: {command('state versions')} lists them")


def _saved_documents(deployment: Deployment, most: int = MOST_READ) -> Iterator[SavedDocument]:
    repository = deployment.repository
    try:
        loaded = repository.load()
    except (CorruptStateError, StateMismatchError):  # the versions are what helps then
        loaded = None
    return saved_documents(repository, loaded.state if loaded else None, most)


def _run_row(document: SavedDocument, state: DeploymentState) -> tuple[str, str, str, str, str]:
    return (
        shown_moment(state.updated_at),
        document.who or "-",
        _commit(state) or "-",
        state.write_id[:_RUN_LENGTH],
        document.what or "the version before is not kept",
    )


def _commit(state: DeploymentState) -> str:
    return state.lineage.removeprefix("git:")[:_COMMIT_LENGTH]


def _print_rows(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        say("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _version_row(document: SavedDocument) -> tuple[str, str, str, str, str]:
    version, state = document.version, document.state
    saved_at = version.saved_at if version else state.updated_at if state else None
    commit = _commit(state) if state else ""
    return (
        version.version_id if version else "current",
        shown_moment(saved_at) if saved_at else "",
        document.who or "-",
        commit or "-",
        document.what or (f"{version.size} bytes" if version else ""),
    )


def diff_states(context: Context, earlier: str | None, later: str | None, *, as_json: bool) -> None:
    """Print what changed between two documents."""
    settings, deployment = _open(context)
    repository = deployment.repository
    if earlier is None:
        versions = repository.versions()
        if not versions:
            raise StateMismatchError("no earlier version is kept yet", where=repository.location)
        earlier = versions[0].version_id
    before = repository.load_version(earlier)
    after = repository.load_version(later) if later else _loaded(deployment).state
    changes = compare_states(before, after, _models(settings))
    if as_json:
        typer.echo(diff_document(before, after, changes))
        return
    for change in changes:
        say(f"{change.sign.value} {change.key}")
        for part in change.changes:
            say(f"    {part.sign.value} {describe_change(_with_shown_moments(part))}")
    say(f"serial {before.serial} → {after.serial}: {counted(len(changes), 'change')}")


def _models(settings: Settings) -> Sequence[Table]:
    """Return the models of the project; none if they are refused, because the documents can be compared without."""
    if settings.conf_dir is None:
        return ()
    try:
        return load_project(settings.conf_dir, settings.environment).tables
    except DeltaEngineError:
        return ()


def _with_shown_moments(change: Change) -> Change:
    if change.subject != DEPLOYED_AT:
        return change
    return replace(change, observed=_shown_moment(change.observed), desired=_shown_moment(change.desired))


def _shown_moment(text: str | None) -> str | None:
    """Return a moment of the document as text shows it, and `None` as it is."""
    return text if text in (None, "None") else shown_moment(datetime.fromisoformat(text))


def restore_state(context: Context, source: str, *, force: bool, yes: bool) -> None:
    """Make a version or a file the current document."""
    settings, deployment = _open(context)
    repository = deployment.repository
    is_file = Path(source).is_file()
    state = _read_file(deployment, Path(source)) if is_file else repository.load_version(source)
    say(f"serial {state.serial} of {shown_moment(state.updated_at)}, {_counts(state)}", err=True)
    confirm(f"Make it the deployment state of {settings.environment}?", yes=yes)
    saved = deployment.restore(state, print_note, force=force, is_version=not is_file)
    say(f"restored as serial {saved.state.serial}")


def start_state_over(context: Context, *, yes: bool) -> None:
    """Begin a new document in place of a lost one."""
    settings, deployment = _open(context)
    confirm(
        f"Forget what was applied to {settings.environment}? The next sync adopts all tables as they are, with "
        "their drift.",
        yes=yes,
    )
    saved = deployment.start_over(print_note)
    say(f"started over with serial {saved.state.serial}; earlier versions are kept")


def migrate_state(
    context: Context, from_format: int | None, to_format: int | None, *, dry_run: bool, yes: bool
) -> None:
    """Bring the document to the current format; refuse formats other than the given ones."""
    _, deployment = _open(context)
    if to_format not in (None, VERSION):
        raise InvalidCommandError(
            f"--to {to_format}: this engine saves format {VERSION} only",
            way_out=f"Use --to {VERSION}, or an engine that saves format {to_format}.",
        )
    current = _loaded(deployment) if dry_run else deployment.repository.load()
    if current is not None and from_format not in (None, current.format_version):
        raise StateMismatchError(
            f"the document is in format {current.format_version}, not in format {from_format}",
            where=deployment.repository.location,
            way_out=f"Use --from {current.format_version}.",
        )
    if dry_run:
        assert current is not None
        version = current.format_version
        would = "nothing to do" if version == VERSION else f"would be saved in format {VERSION}"
        say(f"{deployment.repository.location}: format {version}, {would}")
        _print_lines(step_lines(version))
        return
    if current is not None and current.format_version != VERSION:
        confirm(f"Save the document in format {VERSION} instead of {current.format_version}?", yes=yes)
    migrated_from = deployment.migrate(print_note)
    if migrated_from is None:
        say(f"nothing to do: the document is in format {VERSION}")
    else:
        _print_lines(step_lines(migrated_from))
        backup = deployment.repository.backup_location(migrated_from)
        say(f"migrated from format {migrated_from} to {VERSION}; the old document is kept as {backup}")


def remove_resources(context: Context, names: Sequence[str], *, yes: bool) -> None:
    """Forget resources."""
    _, deployment = _open(context)
    with deployment.locked("state rm", print_note) as (_lease, recorder):
        selected = _selected(recorder.state, names)
        left = without_resources(recorder.state, selected)
        gone = recorder.state.resources.keys() - left.resources.keys()
        keys = [*selected, *sorted(gone.difference(selected))]
        for key in keys:
            say(f"- {key}")
        confirm(f"Forget {counted(len(keys), 'resource')}? The tables themselves do not change.", yes=yes)
        recorder.save_edited(left)
    say(f"forgot {counted(len(keys), 'resource')}")


def move_resource(context: Context, old: str, new: str, *, yes: bool) -> None:
    """Record a table or view under another name."""
    _, deployment = _open(context)
    with deployment.locked("state mv", print_note) as (_lease, recorder):
        former = _renamable(old, QualifiedName)
        name = _renamable(new, type(former))
        if former.kind != name.kind:
            reason = f"{old} is a {former.kind}, and {new} is a {name.kind}"
            raise InvalidCommandError(reason, way_out=f"Write {former.kind}.{name}.")
        state = with_new_name(recorder.state, former, name)
        confirm(f"Record {old} as {new}? The {name.kind} itself does not change.", yes=yes)
        recorder.save_edited(state)
    say(f"{old} is recorded as {new}")


def sync_state(context: Context, tables: Sequence[str]) -> None:
    """Record what the catalog shows of what was applied."""
    project = load_project(*context.place(), tables=tables)
    with status("starting …"):
        backend = open_backend(project.settings, notify=print_note)
    environment = open_environment(project, backend, open_deployment(project.settings, backend))
    with open_run(environment, "state sync", print_note) as run, status("reading the catalog …"):
        state = record_statuses(run, project.synced, is_partial=project.is_partial)
    changed = {
        key: resource for key, resource in state.resources.items() if resource.status is not Status.HEALTHY
    }
    _print_lines(_resource_lines(changed))
    say(f"{environment.name}: {_counts(state)}")


def break_lock(context: Context, *, yes: bool) -> None:
    """Release the lock by force."""
    _, deployment = _open(context)
    lock = deployment.lock
    try:
        holder = lock.holder()
    except UnreadableLockError as error:
        print_note(str(error))
    else:
        if holder is None:
            say("no run holds the lock")
            return
        say(f"held by {holder}", err=True)
    confirm("Break this lock? If that run is still active, it stops before its next statement.", yes=yes)
    broken = lock.break_lock()
    say(f"broke the lock of {broken}" if broken else "no run holds the lock any more")


def _open(context: Context) -> tuple[Settings, Deployment]:
    """Return the settings of the environment, and its deployment state."""
    settings = load_settings(*context.place())
    backend = None
    if state_needs_backend(settings):
        with status("starting …"):
            backend = open_backend(settings, notify=print_note)
    return settings, open_deployment(settings, backend)


def _loaded(deployment: Deployment) -> LoadedState:
    """Return the document; raise `StateMismatchError` if there is none yet."""
    loaded = deployment.peek()
    if loaded is None:
        require_no_journal(deployment.journals.read(), deployment.repository.location)
        raise StateMismatchError(
            "there is no deployment state yet",
            where=deployment.repository.location,
            way_out=f"Run {command('sync')} to create it.",
        )
    return loaded


def _read_file(deployment: Deployment, path: Path) -> DeploymentState:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    return deployment.repository.decode(data, where=str(path))


def _summary(deployment: Deployment, state: DeploymentState) -> Iterator[str]:
    actions = state.metadata.last_apply_actions
    holder = deployment.lock.holder()
    yield f"environment  {state.environment.name}"
    if state.environment.host:
        yield f"host         {state.environment.host}"
    yield f"document     {deployment.repository.location}"
    by = f" by {state.updated_by}" if state.updated_by else ""
    yield f"serial       {state.serial}, saved {shown_moment(state.updated_at)}{by}"
    yield f"compared     {shown_moment(state.synced_at) if state.synced_at else 'never'}"
    yield f"commit       {state.lineage}"
    yield f"engine       {state.engine_version} on {state.platform_version}"
    yield f"resources    {_counts(state)}"
    yield f"last apply   {actions.added} added, {actions.changed} changed, {actions.destroyed} destroyed"
    yield f"lock         {f'held by {holder}' if holder else 'free'}"
    yield from _journal_lines(deployment, state, holder)
    for warning in state.metadata.warnings:
        yield f"warning      {warning}"


def _journal_lines(
    deployment: Deployment, state: DeploymentState, holder: LockHolder | None
) -> Iterator[str]:
    """Yield what runs left that did not save: killed ones, or the one that holds the lock."""
    try:
        journals = [*left_journals(state, deployment.journals.read())]
    except StoreError as error:
        yield f"journal      unknown, because it cannot be read: {error}"
        return
    for journal in journals:
        run = f"run {journal.run_id[:_RUN_LENGTH]}"
        if journal.started_at is None:
            yield f"journal      {run} left a damaged journal, which the next run ignores"
            continue
        began = f"{run} of {journal.started_by}, began {shown_moment(journal.started_at)}"
        total = len(journal.done) + len(journal.in_progress)
        names = [key.partition(".")[2] for key in journal.in_progress[:_MOST_NAMED]]
        more = (
            f" and {len(journal.in_progress) - len(names):,} more"
            if len(journal.in_progress) > len(names)
            else ""
        )
        listed = f"; in progress: {', '.join(names)}{more}" if names else ""
        progress = f"{len(journal.done)} of {counted(total, 'resource')} done{listed}"
        if holder and journal.started_by == holder.who and journal.started_at >= holder.since:
            yield f"journal      {began} and is still active: {progress}"
        elif journal.fits:
            yield f"journal      {began} and did not end: {progress}"
            yield f"             The next {command('sync')} continues it."
        else:
            yield f"journal      {began} and did not end: {progress}"
            yield "             It belongs to another document, so the next run ignores it."


def _print_lines(lines: Iterable[str]) -> None:
    """Print lines with one call: ten thousand calls are slow."""
    typer.echo("".join(f"{line}\n" for line in lines), nl=False)


def _counts(state: DeploymentState) -> str:
    counts = Counter(resource.status for resource in state.resources.values())
    listed = [f"{counts[member]} {member.value}" for member in Status if counts[member]]
    return f"{counted(len(state.resources), 'resource')}{': ' if listed else ''}{', '.join(listed)}"


def _statuses(names: Sequence[str]) -> Collection[Status]:
    by_value = {member.value: member for member in Status}
    for name in names:
        if name not in by_value:
            reason, way_out = unknown("status", name, by_value)
            raise InvalidCommandError(f"--status: {reason}", way_out=way_out)
    return {by_value[name] for name in names} or set(Status)


def _selected(state: DeploymentState, names: Sequence[str]) -> list[str]:
    """Return the keys that names or globs match; raise `StateMismatchError` if one of them matches none."""
    keys: dict[str, None] = {}
    for name in names:
        matching = [key for key, resource in state.resources.items() if _matches(key, resource, [name])]
        if not matching:
            reason, way_out = unknown("resource", name, _namesakes(state, name))
            raise StateMismatchError(reason, way_out=way_out)
        keys |= dict.fromkeys(matching)
    return list(keys)


def _matches(key: str, record: AnyRecord, globs: Sequence[str]) -> bool:
    """Whether a glob is a resource's key, or matches the name of a securable."""
    if any(glob.lower() == key for glob in globs):
        return True
    return record.name.is_selectable and matches_any(record.name, globs)


def _namesakes(state: DeploymentState, text: str) -> list[str]:
    """Return the keys of what has the name in a key or name that matches nothing; all names if nothing has it."""
    names = [record.name for record in state.resources.values()]
    plain = _without_kind(text).lower()
    return [resource_key(name) for name in names if name.key == plain] or [
        resource_id(name) for name in names
    ]


def _without_kind(text: str) -> str:
    kind, _, name = text.partition(".")
    return name if kind in {kind.name.kind for kind in KINDS} else text


def _renamable(text: str, default: type[QualifiedName | ViewName]) -> QualifiedName | ViewName:
    """Return the table or view of a key, or of a name that has the default kind."""
    name = _without_kind(text)
    written = text.removesuffix(name).rstrip(".") or default.kind
    renamable: Sequence[type[QualifiedName | ViewName]] = (QualifiedName, ViewName)
    kind = next((kind for kind in renamable if kind.kind == written), None)
    if kind is None:
        raise InvalidCommandError(f"{text!r} is neither a table nor a view", way_out=ONLY_RENAMABLE)
    parts = name.split(".")
    if len(parts) != 3 or not all(parts):
        way_out = "Write catalog.schema.table, or view.catalog.schema.view."
        raise InvalidCommandError(f"{text!r} is not a {kind.kind}'s name", way_out=way_out)
    return kind(*parts)


def _resource_lines(records: dict[str, AnyRecord]) -> Iterator[str]:
    width = max(map(len, records), default=0)
    console = Console()  # knows NO_COLOR and dumb terminals, which click does not
    is_coloured = console.color_system is not None and not console.no_color
    for key, record in records.items():
        word = f"{record.status.value:<10}"
        word = typer.style(word, fg=_COLOURS[record.status]) if is_coloured else word
        at = shown_moment(record.deployed_at) if record.deployed_at else ""
        note = f"  adopted {shown_moment(record.adopted_at)}" if record.adopted_at else ""
        rest = visible(f"{key:<{width}}  {at}  {record.deployed_by or ''}{note}")
        yield f"{word} {rest}".rstrip()
