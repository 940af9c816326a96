"""Files of a Unity Catalog volume, through databricks-sdk's Files API; the SDK is imported late.

Upload without overwriting is the only condition that the API knows, and nothing says that it is atomic: files here are
immutable, have names of their own, and are never what decides who won.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from io import BytesIO
from typing import TYPE_CHECKING, Protocol

from delta_engine.backends.databricks_workspace import open_workspace
from delta_engine.deployment.errors import ConflictError, StoreError, UnansweredError, UncertainWriteError
from delta_engine.errors import MissingDependencyError

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

_RETRY_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeFile:
    """A file or folder in a listing; the size is in bytes, the time UTC."""

    path: str
    is_folder: bool
    size: int
    modified_at: datetime

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]


class VolumeFiles(Protocol):
    """What is needed of a volume. Paths begin with `/Volumes/`."""

    def upload(self, path: str, data: bytes, *, overwrite: bool) -> None:
        """Write a file; its folders are made if need be.

        Raises:
            ConflictError: there is one, and it must not be overwritten; it may be this very upload, by a
                hidden retry.
            UncertainWriteError: there was no answer.
            StoreError: it was not written.
        """
        ...

    def download(self, path: str) -> bytes | None:
        """Return a file's bytes; None if there is none."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file."""
        ...

    def list_folder(self, path: str) -> Sequence[VolumeFile]:
        """Return what is in a folder; nothing if there is no such folder."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file; no error if there is none."""
        ...

    def delete_folder(self, path: str) -> None:
        """Delete an empty folder; no error if there is none."""
        ...


def open_volume_files(profile: str | None = None) -> VolumeFiles:
    """Return the files of the workspace that databricks-sdk's unified authentication finds.

    Args:
        profile: the login of this name in `~/.databrickscfg`; None for whatever the SDK finds.

    Raises:
        MissingDependencyError: databricks-sdk is not installed.
        StoreError: there are no credentials, or the SDK cannot make its client: before 0.117 that raises an exception
            of Spark on clusters with Spark Connect (github.com/databricks/databricks-sdk-py/issues/1463).
    """
    try:
        return SdkVolumeFiles(open_workspace(profile, retry_seconds=_RETRY_SECONDS))
    except ImportError:
        raise MissingDependencyError(
            "this state_backend needs databricks-sdk: pip install 'delta-engine[databricks]'"
        ) from None
    except ValueError as error:
        raise StoreError(
            f"no workspace to keep the deployment state in: {error}. Log in with `databricks auth login`, or set "
            "DATABRICKS_HOST."
        ) from error
    except Exception as error:  # an old SDK raises exceptions of Spark, which need not be installed
        from databricks.sdk.version import __version__

        reason = f"{type(error).__name__}: {error}".removesuffix(".")
        raise StoreError(
            f"databricks-sdk {__version__} cannot open the workspace: {reason}. On a cluster with Spark Connect, the "
            "engine needs 0.117 or later: pip install 'databricks-sdk>=0.117', and restart Python."
        ) from error


class SdkVolumeFiles:
    """The files through a workspace client.

    Args:
        client: the client.
    """

    def __init__(self, client: WorkspaceClient) -> None:
        self._client = client

    def upload(self, path: str, data: bytes, *, overwrite: bool) -> None:
        """Write a file; see `VolumeFiles.upload`. The folder is made only where it turns out to be missing."""
        from databricks.sdk.errors import NotFound

        try:
            self._upload(path, data, overwrite=overwrite)
        except StoreError as error:
            if not isinstance(error.__cause__, NotFound):
                raise
            folder = path.rpartition("/")[0]
            with _errors(folder, is_write=True):
                self._client.files.create_directory(folder)
            self._upload(path, data, overwrite=overwrite)

    def download(self, path: str) -> bytes | None:
        """Return a file's bytes; see `VolumeFiles.download`."""
        from databricks.sdk.errors import NotFound

        with _errors(path, is_write=False):
            try:
                contents = self._client.files.download(path).contents
            except NotFound:
                return None
            return b"" if contents is None else contents.read()

    def exists(self, path: str) -> bool:
        """Whether there is a file; see `VolumeFiles.exists`."""
        from databricks.sdk.errors import NotFound

        with _errors(path, is_write=False):
            try:
                self._client.files.get_metadata(path)
            except NotFound:
                return False
        return True

    def list_folder(self, path: str) -> Sequence[VolumeFile]:
        """Return what is in a folder; see `VolumeFiles.list_folder`."""
        from databricks.sdk.errors import NotFound

        with _errors(path, is_write=False):
            try:
                entries = list(self._client.files.list_directory_contents(path))
            except NotFound:
                return ()
        return [
            VolumeFile(
                path=entry.path or "",
                is_folder=bool(entry.is_directory),
                size=entry.file_size or 0,
                modified_at=datetime.fromtimestamp((entry.last_modified or 0) / 1000, timezone.utc),
            )
            for entry in entries
        ]

    def delete(self, path: str) -> None:
        """Delete a file; see `VolumeFiles.delete`."""
        from databricks.sdk.errors import NotFound

        with _errors(path, is_write=True):
            try:
                self._client.files.delete(path)
            except NotFound:
                return

    def delete_folder(self, path: str) -> None:
        """Delete an empty folder; see `VolumeFiles.delete_folder`."""
        from databricks.sdk.errors import NotFound

        with _errors(path, is_write=True):
            try:
                self._client.files.delete_directory(path)
            except NotFound:
                return

    def _upload(self, path: str, data: bytes, *, overwrite: bool) -> None:
        with _errors(path, is_write=True):
            self._client.files.upload(path, BytesIO(data), overwrite=overwrite)


@contextmanager
def _errors(path: str, *, is_write: bool) -> Iterator[None]:
    """Turn the SDK's errors into ours, by their class.

    Raises:
        ConflictError, UncertainWriteError, StoreError: as `VolumeFiles.upload` says.
    """
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
            f"{path}: {error}. Whoever runs this needs READ VOLUME and WRITE VOLUME on the volume."
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
        raise kind(f"{path}: no usable answer, also when asked again: {error}") from error
    except DatabricksError as error:
        # what has no class of its own, as a gateway's 502, tells nothing of what was done
        kind = UncertainWriteError if is_write and type(error) is DatabricksError else StoreError
        raise kind(f"{path}: {error}") from error
