"""What keeps a job from a Spark elsewhere is told before anybody is called."""

from __future__ import annotations

import pyspark
import pytest

from mcspark.engine.connect import client
from mcspark.errors import ConfigurationError
from mcspark.runtime.remote import remote_session


def test_an_old_client(monkeypatch):
    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    with pytest.raises(ConfigurationError, match=r"pyspark 3\.5\.9 is too old"):
        remote_session("job", {}, "sc://host")


def test_packages_that_are_not_there(monkeypatch):
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    monkeypatch.setattr(client, "find_spec", lambda name: None if name == "zstandard" else name)
    with pytest.raises(ConfigurationError, match=r"needs zstandard: install mcspark\[connect\]"):
        remote_session("job", {}, "sc://host")
