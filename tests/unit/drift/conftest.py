"""The project of the tests of drift: nothing is declared, and the catalog is empty."""

from __future__ import annotations

import pytest

from tests.projects.catalog_project import CatalogProject


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    return catalog_project
