"""The jars of a session: the user's come first, and no artifact is there in two versions."""

from pathlib import Path

import pytest

from delta_engine.backends.local_jars import session_jars

DELTA = Path("/cache/delta-spark_4.1_2.13-4.3.1.jar")
CLIENT = Path("/cache/unitycatalog-client-0.5.0.jar")
HADOOP = Path("/cache/unitycatalog-hadoop-0.5.0.jar")
OWN = (DELTA, CLIENT, HADOOP)


def test_without_jars_of_the_user_delta_s_are_all() -> None:
    assert session_jars(OWN, {"spark.jars": ""}) == (list(map(str, OWN)), [])


@pytest.mark.parametrize(
    "client",
    [
        "/libs/unitycatalog-client-0.6.0.jar",
        "s3a://libs/unitycatalog-client-0.6.0.jar",
        "/ivy/io.unitycatalog_unitycatalog-client-0.6.0.jar",
    ],
)
def test_the_user_s_version_of_an_artifact_wins(client: str) -> None:
    jars, replaced = session_jars(OWN, {"spark.jars": f"/libs/unitycatalog-spark_2.13-0.6.0.jar, {client}"})
    assert jars == ["/libs/unitycatalog-spark_2.13-0.6.0.jar", client, str(DELTA), str(HADOOP)]
    name = client.rsplit("/", 1)[1]
    assert replaced == [f"{name} of backend.spark replaces unitycatalog-client-0.5.0.jar, which Delta brings"]


def test_the_same_version_is_there_once_and_no_news() -> None:
    jars = session_jars(OWN, {"spark.jars": "/libs/unitycatalog-client-0.5.0.jar"})
    assert jars == (["/libs/unitycatalog-client-0.5.0.jar", str(DELTA), str(HADOOP)], [])


def test_packages_bring_their_own_versions_too() -> None:
    connector = "io.unitycatalog:unitycatalog-spark_2.13:0.6.0"
    jars, replaced = session_jars(OWN, {"spark.jars.packages": f"org.example:other_2.13:1.0,{connector}"})
    assert jars == [str(DELTA)]
    assert [sentence.split(" replaces ")[0] for sentence in replaced] == [f"{connector} of backend.spark"] * 2
    of_delta, _ = session_jars(OWN, {"spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.4.0"})
    assert of_delta == [str(CLIENT), str(HADOOP)]


@pytest.mark.parametrize("jar", ["/libs/tool.jar", "/libs/*.jar", "/libs/delta-spark-extras-1.0.jar"])
def test_other_jars_take_no_place(jar: str) -> None:
    jars = session_jars(OWN, {"spark.jars": jar})
    assert jars == ([jar, *map(str, OWN)], [])
