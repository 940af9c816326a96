"""Unity Catalog in memory."""

from tests.fakes.unity_catalog.catalog import FakeUnityCatalog

__all__ = ["FakeUnityCatalog"]
