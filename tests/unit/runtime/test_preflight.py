"""Which differences between an executor's Python and the driver's are told, and how."""

from __future__ import annotations

from mcspark.runtime.tasks.preflight import differences

DRIVER = {"host": "driver", "Python": "3.11", "NumPy": "1.26.4", "mcspark": "abc"}


def test_equal_environments_differ_in_nothing() -> None:
    assert differences(DRIVER, [{**DRIVER, "host": "worker-1"}]) == []


def test_each_difference_names_host_and_versions_once() -> None:
    worker = {**DRIVER, "host": "worker-1", "NumPy": "2.1.0", "mcspark": ""}
    assert differences(DRIVER, [worker, dict(worker)]) == [
        "NumPy on worker-1 is 2.1.0, the driver has 1.26.4",
        "mcspark on worker-1 is missing, the driver has abc",
    ]


def test_plain_files_that_know_no_version_are_accepted_but_not_their_absence() -> None:
    assert differences(DRIVER, [{**DRIVER, "mcspark": "unknown"}]) == []
    assert differences({**DRIVER, "mcspark": "unknown"}, [DRIVER]) == []
    assert len(differences({**DRIVER, "mcspark": "unknown"}, [{**DRIVER, "mcspark": ""}])) == 1
