"""spark-submit jobs/score.py --config FILE [--set KEY=VALUE …]"""

import typer

from mcspark.cli import score

if __name__ == "__main__":
    typer.run(score)
