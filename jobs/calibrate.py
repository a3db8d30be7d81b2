"""spark-submit jobs/calibrate.py --config FILE [--set KEY=VALUE …]"""

import typer

from mcspark.cli import calibrate

if __name__ == "__main__":
    typer.run(calibrate)
