"""jobs/score.py in a process that is killed when the first of its pointers is set, and the others are not."""

import os
import runpy
import signal
import sys
from pathlib import Path

from mcspark.data.pointer import Pointer

set_pointer = Pointer.set


def set_and_die(self: Pointer) -> None:
    """Set a pointer, and die."""
    set_pointer(self)
    os.kill(os.getpid(), signal.SIGKILL)


Pointer.set = set_and_die  # type: ignore[method-assign]
sys.argv[0] = str(Path(__file__).resolve().parents[2] / "jobs" / "score.py")
runpy.run_path(sys.argv[0], run_name="__main__")
