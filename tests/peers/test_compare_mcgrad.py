import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from mcspark.acs.synthetic import write_synthetic

SCRIPT = Path(__file__).with_name("compare_mcgrad.py")


pytestmark = pytest.mark.skipif(
    not (find_spec("uv") or shutil.which("uv")), reason="mcgrad's environment is made by uv"
)


def test_the_script_sets_both_side_by_side(spark, tmp_path):
    paths = write_synthetic(spark, str(tmp_path / "persons"), 20_000)
    key = "[SERIALNO, SPORDER]"
    config = tmp_path / "config.yaml"
    config.write_text(
        f"scored: {{path: {paths['scored']}, key: {key}}}\n"
        f"attributes: [{{path: {paths['attributes']}, key: {key}}}]\n"
        "groups:\n  columns: [{column: RAC1P}, {column: SEX}, {column: AGEP, bins: [0, 25, 45, 65, 120]}]\n"
        f"calibrator: {{max_trees: 100}}\n"
        f"evaluation: {{draws: 20}}\n"
        f"output: {{path: {tmp_path}/calibrated}}\nmodel: {{path: {tmp_path}/model}}\n"
    )
    command = [sys.executable, str(SCRIPT), "--config", str(config)]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    found = json.loads(done.stdout.splitlines()[-1])
    assert list(found) == ["as it came", "mcspark", "mcgrad"]
    before = found["as it came"]
    for name in ("mcspark", "mcgrad"):
        assert found[name]["loss"] < before["loss"]
        assert found[name]["mc_error"] < before["mc_error"]
        assert 0 < found[name]["noise_floor"] < before["mc_error"]
        assert found[name]["seconds"]["fit"] > 0


def test_populations_and_their_means():
    command = [sys.executable, str(SCRIPT.with_name("populations.py")), "--rows", "6000", "--seeds", "1"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    lines = done.stdout.splitlines()
    assert len(lines) == 1 + 4 + 2 + 4
    mean = {line[:10].strip(): [float(x) for x in line[10:].split()] for line in lines[-4:]}
    for name in ("mcspark", "mcgrad"):
        error, smooth, loss, seconds = mean[name]
        assert mean["the truth"][2] < loss < mean["as it came"][2]
        assert 0 < error < mean["as it came"][0]
        assert 0 < smooth < mean["as it came"][1]
        assert seconds > 0
