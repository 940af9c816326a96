"""What a session of many statements needs from Java."""

from __future__ import annotations

from pyspark.sql import SparkSession

MOST_CODE = 200 * 1024 * 1024


def test_java_has_room_for_compiled_code(spark: SparkSession) -> None:
    """48 MB are full after some hundred statements. From then on, Java interprets, which takes twice as long."""
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()  # type: ignore[union-attr]
    code = [pool.getUsage().getMax() for pool in pools if pool.getName().startswith("Code")]
    assert sum(code) >= MOST_CODE
