"""spark-submit jobs/compare.py --config FILE [--set KEY=VALUE …]"""

import typer

from mcspark.cli import compare

if __name__ == "__main__":
    typer.run(compare)
