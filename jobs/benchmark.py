"""spark-submit jobs/benchmark.py --rows N [--json FILE] [--repeats 3] [--workdir DIR] [--source FILE …]"""

import typer

from mcspark.cli import benchmark

if __name__ == "__main__":
    typer.run(benchmark)
