"""The deployment state: its document, lock and journals, and whether its store honours conditional writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final
from uuid import uuid4

from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.errors import ConflictError, StoreError
from delta_engine.deployment.stores.s3_folder import S3Folder
from delta_engine.deployment.stores.volume_files import VolumeFiles
from delta_engine.orchestrate.doctor.installation import SCRATCH_NAME
from delta_engine.report.doctor_report import Check, Status, Topic

_CONTENT: Final = b"delta-engine doctor"
_CONDITIONS: Final = "runs could overwrite each other's files: the store cannot hold a deployment state"


def document_checks(deployment: Deployment) -> Iterator[Check]:
    """Yield whether the document can be read, with the journals.

    Raises:
        DeltaEngineError: it cannot.
    """
    state = deployment.peek_replayed()
    found = f"serial {state.serial}" if state else "there is none yet; the first sync makes it"
    subject = deployment.repository.location
    yield Check(topic=Topic.STATE, subject=subject, status=Status.OK, found=found)


def lock_checks(deployment: Deployment) -> Iterator[Check]:
    """Yield whether the lock can be read. It is not taken.

    Raises:
        DeltaEngineError: it cannot.
    """
    holder = deployment.lock.holder()
    found = f"held by {holder}" if holder else "free"
    yield Check(topic=Topic.LOCK, subject=deployment.lock.location, status=Status.OK, found=found)


def volume_checks(files: VolumeFiles, volume: str) -> Iterator[Check]:
    """Yield whether a scratch file can be written, read back, kept from being overwritten, and deleted.

    Args:
        files: the volume's files.
        volume: its path.

    Raises:
        StoreError: it cannot be written, read or deleted.
    """
    path = f"{volume}/{SCRATCH_NAME}-{uuid4().hex}"
    try:
        with suppress(ConflictError):  # a hidden retry of this very upload
            files.upload(path, _CONTENT, overwrite=False)
        found = _volume_fault(files, path)
    except StoreError:
        with suppress(StoreError):
            files.delete(path)
        raise
    files.delete(path)
    yield Check(
        topic=Topic.STATE,
        subject=volume,
        status=Status.MISSING if found else Status.OK,
        found=found or "a scratch file was written, read back, not overwritten, and deleted",
        way_out="Use another volume, and report it: Unity Catalog's volumes refuse to overwrite."
        if found
        else "",
    )


def _volume_fault(files: VolumeFiles, path: str) -> str:
    if files.read(path) != _CONTENT:
        return "a file that was written has another content when it is read back"
    try:
        files.upload(path, b"overwritten", overwrite=False)
    except ConflictError:
        return ""
    return f"a file was overwritten that must not be: {_CONDITIONS}"


def bucket_checks(folder: S3Folder) -> Iterator[Check]:
    """Yield whether a bucket honours conditional writes; scratch objects are written and deleted.

    Raises:
        StoreError: it cannot be written or read.
    """
    ignored = folder.probe.ignored_condition()
    yield Check(
        topic=Topic.STATE,
        subject=folder.location(""),
        status=Status.MISSING if ignored else Status.OK,
        found=f"the endpoint ignores {ignored}: {_CONDITIONS}"
        if ignored
        else "conditional writes are honoured",
        way_out="Use another endpoint." if ignored else "",
    )
