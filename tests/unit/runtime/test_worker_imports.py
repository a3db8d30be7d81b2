"""What a Python worker loads before its first row: nothing that reads configurations."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "mcspark.data.rows.keys",
        "mcspark.ml.cells.cells",
        "mcspark.ml.training.cluster_training",
        "mcspark.ml.scoring",
    ],
)
def test_modules_with_functions_of_tasks_need_no_parsers(module):
    names = {"pydantic", "sqlglot", "yaml", "matplotlib", "synapse"}
    script = f"import sys, {module}\nprint(sorted({names!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_of_the_configuration_are_found_and_no_others():
    import mcspark.config

    for name in mcspark.config.__all__:
        assert getattr(mcspark.config, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mcspark.config.nothing
