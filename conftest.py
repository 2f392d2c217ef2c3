"""Settings for the doctests of the package and the pages; the tests have their own in tests/conftest.py."""

import pytest


@pytest.fixture(autouse=True)
def elsewhere(request, monkeypatch):
    """Run a doctest in an empty folder, so that it may write files by the names that a reader sees."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
