"""Checks the stores: folders, volumes, buckets, and the deployment state with its lock.

A store must honour conditional writes, or two runs could overwrite each other's documents.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.errors import ConflictError, StoreError
from delta_engine.deployment.local_files import write_atomically
from delta_engine.deployment.stores.s3 import S3Folder
from delta_engine.deployment.stores.volume_files import VolumeFiles
from delta_engine.report.doctor_report import Check, Topic

SCRATCH_NAME: Final = ".delta-engine-doctor"
"""The name prefix of scratch files; each is deleted after it was read back."""

_CONTENT: Final = b"delta-engine doctor"
_CONDITIONS: Final = "runs could overwrite each other's files: the store cannot hold a deployment state"


def folder_check(topic: Topic, folder: Path) -> Check:
    """Return whether files of a folder can be replaced atomically; remove folders that had to be created."""
    created = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SCRATCH_NAME
    try:
        for content in (b"first", b"second"):
            write_atomically(path, content)
        is_replaced = path.read_bytes() == b"second"
    finally:
        path.unlink(missing_ok=True)
        with suppress(OSError):  # another process has begun to use it
            for one in created:
                one.rmdir()
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
        found = "a scratch file was written, read back, not overwritten, and deleted"
        return Check.ok(Topic.STATE, volume, found)
    way_out = "Use another volume, and report it: Unity Catalog's volumes refuse to overwrite."
    return Check.missing(Topic.STATE, volume, fault, way_out)


def _volume_fault(files: VolumeFiles, path: str) -> str:
    if files.read(path) != _CONTENT:
        return "a file that was written has another content when it is read back"
    try:
        files.upload(path, b"overwritten", overwrite=False)
    except ConflictError:
        return ""
    return f"a file was overwritten that must not be: {_CONDITIONS}"


def bucket_check(folder: S3Folder) -> Check:
    """Return whether a bucket honours conditional writes, using scratch objects; may raise StoreError."""
    ignored = folder.probe.ignored_condition()
    if not ignored:
        return Check.ok(Topic.STATE, folder.location(""), "conditional writes are honoured")
    found = f"the endpoint ignores {ignored}: {_CONDITIONS}"
    return Check.missing(Topic.STATE, folder.location(""), found, "Use another endpoint.")


def document_check(deployment: Deployment) -> Check:
    """Return whether the deployment state and its journals are readable; raises DeltaEngineError if they are not."""
    state = deployment.peek_replayed()
    found = f"serial {state.serial}" if state else "there is none yet; the first sync creates it"
    return Check.ok(Topic.STATE, deployment.repository.location, found)


def lock_check(deployment: Deployment) -> Check:
    """Return whether the lock is readable, without taking it; raises DeltaEngineError if it is not."""
    holder = deployment.lock.holder()
    return Check.ok(Topic.LOCK, deployment.lock.location, f"held by {holder}" if holder else "free")
