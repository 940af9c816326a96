"""Opens Spark sessions; imports pyspark late."""

from __future__ import annotations

import locale
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from delta_engine.backends.cancellation import deferred_signals
from delta_engine.backends.local_jars import delta_jars, java, session_jars
from delta_engine.backends.spark_catalogs import empty_tokens
from delta_engine.errors import MissingDependencyError, SparkStartError, StatementError
from delta_engine.sql.queries import sql_current_version

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    from delta_engine.backends.sql_runner import SqlRunner

_NEVER_MATCHES = "(?!)"

# Metadata statements end before the second compiler or a parallel collector pays off: with these, a session of
# twenty statements needs about a third of the processor time. Without the second compiler, Java reserves 48 MB for
# compiled code, which some hundred statements fill; from then on it compiles nothing. 240 MB is its usual size.
_SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"

_RUNTIME_VARIABLE = "DATABRICKS_RUNTIME_VERSION"

_LOG_VARIABLE = "DELTA_ENGINE_SPARK_LOG"

_LOCALE_VARIABLE = "LC_ALL"
_UTF8_LOCALE = "C.UTF-8"

_LOCAL_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Metadata is small: with one partition and no web interface a statement takes 0.1 s instead of seconds.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A comment that holds ${x} is text.
    "spark.sql.variable.substitute": "false",
    # SHOW TBLPROPERTIES must not redact values: the keys of a table `tokens` are stored in properties whose
    # names look like secrets. Models cannot declare properties that hold secrets.
    "spark.sql.redaction.options.regex": _NEVER_MATCHES,
    "spark.redaction.regex": _NEVER_MATCHES,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def open_local_session(
    settings: Mapping[str, str],
    *,
    scratch: Path,
    secrets: Mapping[str, str] = MappingProxyType({}),
    notify: Callable[[str], None] = lambda _note: None,
) -> SparkSession:
    """Start a local Spark session with Delta; takes about 6 s.

    Args:
        settings: Spark settings that override the engine's own, such as a catalog.
        scratch: a folder for files that Spark writes (its own warehouse, Derby's files).
        secrets: settings for the running session alone.
        notify: receives a message for each of Delta's jars that the user's jars replace.

    Raises:
        MissingDependencyError: pyspark, Delta's jars or Java is missing.
        SparkStartError: Java did not start.
    """
    settings = {**empty_tokens(settings), **settings}
    settings = {key: text for key, text in settings.items() if key not in secrets}
    jars, replaced_jars = session_jars(delta_jars(), settings)
    for replaced in replaced_jars:
        notify(replaced)
    program = java()
    import pyspark
    from pyspark import SparkConf
    from pyspark.errors import PySparkRuntimeError

    scratch.mkdir(parents=True, exist_ok=True)
    conf = (
        SparkConf()
        .setMaster("local[*]")
        .setAppName("delta-engine")
        .setAll(_settings(settings, jars, scratch))
    )
    # With another SPARK_HOME, a Spark would start that does not match the fetched jars.
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    try:
        with _quiet_launch(), utf8_file_names():
            session = _started(conf)
    except PySparkRuntimeError as error:
        raise SparkStartError(
            f"Spark could not be started with {program}: {error}",
            way_out=f"Set {_LOG_VARIABLE}=1 to see what Java says.",
        ) from error
    for key, secret in secrets.items():  # every user of the machine can read Java's command line
        session.conf.set(key, secret)
    return session


def _settings(settings: Mapping[str, str], jars: Sequence[str], scratch: Path) -> list[tuple[str, str]]:
    all_settings = {
        **_LOCAL_SETTINGS,
        "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
        "spark.driver.extraJavaOptions": f'{_SHORT_LIVED_JAVA} -Dderby.system.home="{scratch}"',
        "spark.log.level": "ERROR",
        **settings,
        "spark.jars": ",".join(jars),
    }
    return list(all_settings.items())


def _started(conf: SparkConf) -> SparkSession:
    """Start Spark completely before Ctrl-C or SIGTERM takes effect.

    If interrupted between starting Java and connecting to it, pyspark leaves a Java process that never ends. pyspark's
    own Ctrl-C handler, installed with the first context, breaks the main thread's calls to Java, so the earlier
    handler, which cancels queries, is restored.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with deferred_signals():
        ours = signal.getsignal(signal.SIGINT)
        SparkContext.getOrCreate(conf)
        theirs = signal.getsignal(signal.SIGINT)
    with deferred_signals():
        session = SparkSession.builder.config(conf=conf).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
    if theirs is not ours:  # an existing context had installed its handler before
        signal.signal(signal.SIGINT, theirs)
    return session


def open_databricks_session() -> SparkSession:
    """Return the session of the notebook or job, or connect to a workspace; MissingDependencyError without either."""
    try:
        from databricks.connect import DatabricksSession
    except ImportError:
        pass
    else:
        session: SparkSession = DatabricksSession.builder.getOrCreate()
        return session
    if not os.environ.get(_RUNTIME_VARIABLE):
        raise MissingDependencyError(
            "the databricks backend needs a Databricks runtime, or databricks-connect",
            way_out="pip install databricks-connect, or run it as the bundle's job. Without Spark, "
            "`backend: {type: databricks-warehouse}` uses a SQL warehouse",
        )
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def databricks_runtime(runner: SqlRunner) -> str:
    """Return the version of Databricks Runtime; empty if the platform does not report it.

    Jobs and notebooks have it in their environment: `15.4` on clusters, `client.4.9` on serverless compute. With
    databricks-connect, a statement returns it.
    """
    version = os.environ.get(_RUNTIME_VARIABLE)
    if version:
        return version
    try:
        (row,) = runner.run(sql_current_version("dbr_version"))
    except StatementError:
        return ""
    return str(row["version"] or "")


def is_databricks(runner: SqlRunner) -> bool:
    """Whether a session is one of Databricks: its runtime, serverless compute, or databricks-connect."""
    if os.environ.get(_RUNTIME_VARIABLE):
        return True
    try:
        runner.run(sql_current_version("dbr_version"))
    except StatementError as error:
        if error.is_outcome_unknown:
            raise
        return False
    return True


def workspace_host(spark: SparkSession) -> str:
    """Return the URL of a session's workspace; empty if neither the session nor the environment has it."""
    from pyspark.errors import PySparkException

    try:
        host = spark.conf.get("spark.databricks.workspaceUrl", "")
    except PySparkException:  # some compute refuses to show settings that it does not know
        host = ""
    host = (host or os.environ.get("DATABRICKS_HOST", "")).rpartition("//")[2].rstrip("/")
    return f"https://{host}" if host else ""


@contextmanager
def utf8_file_names() -> Iterator[None]:
    """Give Java a UTF-8 locale where Python's file names are UTF-8 and those of the locale are not, as with LC_ALL=C.

    Python takes UTF-8 for the C locale (PEP 540). Java 17 takes the locale's encoding, so it could not name the
    folders of tables beyond ASCII. `-Dsun.jnu.encoding` does not change that (measured on 17.0.15).
    """
    former = os.environ.get(_LOCALE_VARIABLE)
    if sys.getfilesystemencoding() != "utf-8" or locale.nl_langinfo(locale.CODESET).upper() == "UTF-8":
        yield
        return
    os.environ[_LOCALE_VARIABLE] = _UTF8_LOCALE
    try:
        yield
    finally:
        if former is None:
            del os.environ[_LOCALE_VARIABLE]
        else:
            os.environ[_LOCALE_VARIABLE] = former


@contextmanager
def _quiet_launch() -> Iterator[None]:
    """Hide the JVM's launch output (log4j's greeting, native-library warnings); DELTA_ENGINE_SPARK_LOG=1 shows it.

    The JVM inherits file descriptor 2 when it starts, so the descriptor points at the null device meanwhile.
    """
    if os.environ.get(_LOG_VARIABLE):
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    silent = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(silent, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(silent)
        os.close(kept)
