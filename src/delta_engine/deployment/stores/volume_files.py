"""Files of a Unity Catalog volume, through the Files API of databricks-sdk, which is imported late.

Upload without overwriting is the API's only condition, and it is not documented as atomic. So files here are
immutable, have unique names, and never decide which writer won.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from io import BytesIO
from typing import TYPE_CHECKING, TypeVar

from delta_engine.backends.databricks_sdk import open_workspace
from delta_engine.deployment.errors import ConflictError, StoreError, UnansweredError, UncertainWriteError
from delta_engine.deployment.stored import StoredFile
from delta_engine.errors import MissingDependencyError

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

Answer = TypeVar("Answer")

_RETRY_SECONDS = 60


class VolumeFiles:
    """A folder of a volume, `/Volumes/<catalog>/<schema>/<volume>` or below. Implements `JournalFiles`."""

    def __init__(self, client: WorkspaceClient, root: str) -> None:
        self._api = client.files
        self._root = root

    def location(self, name: str) -> str:
        """Return a file's path; an absolute path is unchanged."""
        return name if name.startswith("/") else f"{self._root}/{name}"

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes; None if it does not exist."""
        path = self.location(name)

        def content() -> bytes:
            contents = self._api.download(path).contents
            return b"" if contents is None else contents.read()

        return _unless_missing(path, content)

    def write(self, name: str, data: bytes) -> str:
        """Write or replace a file; return its path."""
        self.upload(name, data, overwrite=True)
        return self.location(name)

    def create(self, name: str, data: bytes) -> None:
        """Write a file unless it exists; see `upload_verified`."""
        path = self.location(name)
        if _unless_missing(path, lambda: self._api.get_metadata(path)) is None:
            upload_verified(self, name, data)

    def upload(self, name: str, data: bytes, *, overwrite: bool) -> None:
        """Write a file; create its folder if the upload finds it missing.

        Raises:
            ConflictError: it exists and must not be overwritten; it may be this upload through a hidden retry.
            UncertainWriteError: there was no answer.
            StoreError: it was not written.
        """
        from databricks.sdk.errors import NotFound

        path = self.location(name)
        try:
            with _errors(path, is_write=True):
                self._api.upload(path, BytesIO(data), overwrite=overwrite)
        except StoreError as error:
            if not isinstance(error.__cause__, NotFound):
                raise
            folder = path.rpartition("/")[0]
            with _errors(folder, is_write=True):
                self._api.create_directory(folder)
            with _errors(path, is_write=True):
                self._api.upload(path, BytesIO(data), overwrite=overwrite)

    def list(self, folder: str) -> Sequence[StoredFile]:
        """Return all files below a folder; empty if the folder does not exist."""
        path = self.location(folder)
        entries = _unless_missing(path, lambda: tuple(self._api.list_directory_contents(path)))
        files: list[StoredFile] = []
        for entry in entries or ():
            name = f"{folder}/{(entry.path or '').rstrip('/').rpartition('/')[2]}"
            if entry.is_directory:
                files += self.list(name)
            else:
                modified_at = datetime.fromtimestamp((entry.last_modified or 0) / 1000, timezone.utc)
                files.append(StoredFile(name=name, size=entry.file_size or 0, modified_at=modified_at))
        return files

    def delete(self, name: str) -> None:
        """Delete a file; a missing file is not an error."""
        path = self.location(name)
        _unless_missing(path, lambda: self._api.delete(path), is_write=True)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder and its files; a missing folder is not an error."""
        for file in self.list(folder):
            self.delete(file.name)
        path = self.location(folder)
        _unless_missing(path, lambda: self._api.delete_directory(path), is_write=True)


def upload_verified(files: VolumeFiles, name: str, data: bytes) -> None:
    """Upload a file of a unique name and verify it: databricks-sdk before 0.38 could upload nothing."""
    doubt: StoreError | None = None
    try:
        files.upload(name, data, overwrite=False)
    except (ConflictError, UncertainWriteError) as error:
        doubt = error  # a hidden retry may have written it
    if files.read(name) != data:
        raise StoreError(
            f"{files.location(name)}: the upload did not arrive completely. Run again."
        ) from doubt


def open_volume_files(root: str, profile: str | None = None) -> VolumeFiles:
    """Return the files below a path, in the workspace of databricks-sdk's unified authentication.

    Args:
        profile: a login in `~/.databrickscfg`; None for the SDK's default.

    Raises:
        MissingDependencyError: databricks-sdk is not installed.
        StoreError: there are no credentials, or the SDK cannot create its client: before 0.117 it raises an exception
            of Spark on clusters with Spark Connect (github.com/databricks/databricks-sdk-py/issues/1463).
    """
    try:
        return VolumeFiles(open_workspace(profile, retry_seconds=_RETRY_SECONDS), root)
    except ImportError:
        raise MissingDependencyError.of_extra(
            "this state_backend needs databricks-sdk", "databricks"
        ) from None
    except ValueError as error:
        raise StoreError(
            f"there is no workspace for the deployment state: {error}. Log in with `databricks auth login`, or set "
            "DATABRICKS_HOST."
        ) from error
    except Exception as error:  # an old SDK raises exceptions of Spark, which need not be installed
        from databricks.sdk.version import __version__

        reason = f"{type(error).__name__}: {error}".removesuffix(".")
        raise StoreError(
            f"databricks-sdk {__version__} cannot open the workspace: {reason}. On a cluster with Spark Connect, the "
            "engine needs 0.117 or later: pip install 'databricks-sdk>=0.117', and restart Python."
        ) from error


def _unless_missing(path: str, call: Callable[[], Answer], *, is_write: bool = False) -> Answer | None:
    """Return the answer of a call; None if the file or folder does not exist."""
    from databricks.sdk.errors import NotFound

    with _errors(path, is_write=is_write):
        try:
            return call()
        except NotFound:
            return None


@contextmanager
def _errors(path: str, *, is_write: bool) -> Iterator[None]:
    """Convert the SDK's errors by their class, as `VolumeFiles.upload`; a read raises `UnansweredError`."""
    from databricks.sdk import errors as sdk
    from databricks.sdk.errors.base import DatabricksError
    from requests.exceptions import RequestException

    try:
        yield
    except (sdk.AlreadyExists, sdk.ResourceAlreadyExists, sdk.ResourceConflict) as error:
        raise ConflictError(f"{path}: {error}") from error
    except sdk.NotFound as error:
        raise StoreError(
            f"{path}: {error}. The volume must exist: the bundle declares it, see docs/deploying.md."
        ) from error
    except (sdk.PermissionDenied, sdk.Unauthenticated) as error:
        raise StoreError(
            f"{path}: {error}. The engine needs READ VOLUME and WRITE VOLUME on the volume."
        ) from error
    except (
        sdk.InternalError,
        sdk.TemporarilyUnavailable,
        sdk.DeadlineExceeded,
        sdk.TooManyRequests,
        sdk.OperationTimeout,
        TimeoutError,
        RequestException,
    ) as error:
        kind: type[StoreError] = UncertainWriteError if is_write else UnansweredError
        raise kind(f"{path}: no usable answer, also after retries: {error}") from error
    except DatabricksError as error:
        # An error without a class of its own, such as a gateway's 502, leaves the outcome open.
        kind = UncertainWriteError if is_write and type(error) is DatabricksError else StoreError
        raise kind(f"{path}: {error}") from error
