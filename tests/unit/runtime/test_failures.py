"""What a failure of Spark means, by the words of real ones."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException, PythonException

from mcspark.errors import ConfigurationError, ContractError, TransientError
from mcspark.runtime.process.failures import explained, native_failure, reason_of


class JavaError(Py4JJavaError):
    """A Java exception without a Java."""

    def __init__(self, text: str) -> None:
        Exception.__init__(self)
        self.text = text

    def __str__(self) -> str:
        return f"An error occurred while calling o1.parquet.\n: {self.text}\n\tat org.apache.spark.X"


def test_the_cause_of_a_java_exception_is_told():
    text = "org.apache.spark.SparkException: Job aborted.\n\tat a\nCaused by: java.lang.X: on purpose\n\tat b"
    assert reason_of(JavaError(text)) == "java.lang.X: on purpose"
    assert reason_of(JavaError("java.lang.Y: plain")) == "java.lang.Y: plain"
    assert reason_of(ValueError("one\ntwo")) == "one"
    assert reason_of(ValueError()) == "ValueError"


LOST = [
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, "
    "most recent failure: Lost task 0.3 (10.0.0.1 executor 1): ExecutorLostFailure (executor 1 exited "
    "caused by one of the running tasks) Reason: Command exited with code 137",
    "org.apache.spark.SparkException: Job aborted: java.net.ConnectException: Connection "
    "refused (Connection refused)",
    "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.",
    "org.apache.spark.SparkException: Job 5 cancelled because SparkContext was shut down",
    "org.apache.spark.shuffle.FetchFailedException: Failed to connect to host/10.0.0.1:7337",
]


BARRIER = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Could not recover from a failed "
    "barrier ResultStage. Most recent failure reason: Stage failed because barrier task ResultTask(68, 0) "
    "finished unsuccessfully.\n"
)
TRACEBACK = (
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "a.py", line 24, in run\n    yield from task(batches)\n'
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "org.apache.spark.SparkException: Python worker exited unexpectedly\n\tat X",
            "exited unexpectedly;",
        ),
        (f"{TRACEBACK}lightgbm.basic.LightGBMError: Connection reset\n\n\tat X", "Error: Connection reset;"),
        ("ExecutorLostFailure (executor 1 exited)", "executor 1 exited"),
        ("", "it does not say why;"),
    ],
)
def test_a_task_that_others_wait_for_is_told_with_its_reason(text, why):
    error = explained(JavaError(BARRIER + text))
    assert isinstance(error, TransientError)
    said, _, rest = str(error).partition(why)
    assert said.startswith("Spark failed: one of several tasks that work together has ended: ")
    assert "try again in a new process" in rest


def test_an_error_of_the_program_in_such_a_task_does_not_pass():
    assert explained(JavaError(f"{BARRIER}{TRACEBACK}AttributeError: 'NoneType' has no\n\n\tat X")) is None


@pytest.mark.parametrize("head", ["", BARRIER])
def test_what_was_raised_by_ourselves_in_a_task_is_that(head):
    raised = "mcspark.errors.ConfigurationError: so it is; mend it"
    error = explained(JavaError(f"{head}{TRACEBACK}{raised}\n\n\tat X"))
    assert isinstance(error, ConfigurationError)
    assert str(error) == "so it is; mend it"


@pytest.mark.parametrize("text", LOST)
def test_what_is_lost_may_come_back(text):
    error = explained(JavaError(text))
    assert isinstance(error, TransientError)
    assert error.exit_code == 75
    assert "try again" in str(error)


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("java.io.IOException: No space left on device", "free some space"),
        (
            "org.apache.hadoop.security.AccessControlException: Permission denied: user=x",
            "the right to write",
        ),
        ("java.io.FileNotFoundException: /out/_temporary/0 (Read-only file system)", "the right to write"),
        ("java.io.IOException: Disk quota exceeded", "free some space"),
        ("java.io.IOException: Mkdirs failed to create file:/out/.a (exists=false)", "the right to write"),
    ],
)
def test_a_disk_is_for_its_owner_to_mend(text, mend):
    error = explained(JavaError(text))
    assert isinstance(error, ConfigurationError)
    assert mend in str(error)
    assert text.partition(": ")[2] in str(error)
    assert "\n" not in str(error)


FRAMES = "\n\tat org.apache.hadoop.fs.ChecksumFileSystem.open\n\tat org.apache.parquet.Uncompressed.read"
READING = "org.apache.spark.SparkException: Encountered error while reading file file:/in/a.parquet. Details:"


@pytest.mark.parametrize("text", [
    "org.apache.spark.SparkFileNotFoundException: File file:/in/a.parquet does not exist",
    "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:/in/a.parquet. File does "
    "not exist.",
    f"{READING}{FRAMES}\nCaused by: java.io.IOException: 503 Slow Down{FRAMES}",
])  # fmt: skip
def test_a_file_that_is_replaced_while_it_is_read_may_be_whole_the_next_time(text):
    error = explained(JavaError(text))
    assert isinstance(error, TransientError)
    assert "in/a.parquet" in str(error)
    assert "nothing was published; run again" in str(error)


@pytest.mark.parametrize("text", [
    f"{READING}{FRAMES}\nCaused by: java.lang.RuntimeException: file:/in/a.parquet is not a Parquet file. "
    f"Expected magic number at tail{FRAMES}",
    f"{READING}{FRAMES}\nCaused by: java.io.IOException: FAILED_TO_UNCOMPRESS(5){FRAMES}",
    f"java.lang.RuntimeException: file:/in/a.parquet is not a Parquet file. Expected magic number{FRAMES}",
    f"org.apache.parquet.io.ParquetDecodingException: Can not read value at 0 in file:/in/a.parquet{FRAMES}",
    "org.apache.spark.sql.execution.QueryExecutionException: Parquet column cannot be converted in file "
    "file:/in/a.parquet. Column: [score], Expected: double, Found: BINARY",
])  # fmt: skip
def test_a_file_that_is_damaged_is_for_its_owner_to_write_anew(text):
    error = explained(JavaError(text))
    assert isinstance(error, ContractError)
    assert "in/a.parquet" in str(error)
    assert "write it anew" in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("error", [
    Py4JNetworkError("Answer from Java side is empty"),
    Py4JError("An error occurred while calling o1.x. Answer from Java side is empty"),
])  # fmt: skip
def test_a_driver_whose_jvm_is_gone(error):
    assert isinstance(explained(error), TransientError)


@pytest.mark.parametrize("error", [
    ValueError("Connection refused"), JavaError("java.lang.ArithmeticException: / by zero"),
    AnalysisException("no such column"),
])  # fmt: skip
def test_what_is_not_known_is_not_explained(error):
    assert explained(error) is None
    assert native_failure(error) is None


@pytest.mark.parametrize("text", [
    "java.lang.UnsatisfiedLinkError: /tmp/mml-natives1/lib_lightgbm.so: libgomp.so.1: cannot open",
    "java.lang.NoClassDefFoundError: Could not initialize class com.microsoft.ml.lightgbm.lightgbmlibJNI",
])  # fmt: skip
def test_a_native_library_that_does_not_load(text):
    assert native_failure(JavaError(text)) == f": {text}"


PYTHON = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/tmp/x.py", line 3, in <lambda>
    1 / 0
    ~~^~~
ZeroDivisionError: division by zero
"""
JAVA_4 = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times: org.apache.spark.\
PythonException: Traceback (most recent call last):
  File "/tmp/x.py", line 3, in <lambda>
KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/tmp/x.py", line 5, in <lambda>
ValueError: no such key

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.lang.IllegalStateException: what Java says of it
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [(PYTHON, "ZeroDivisionError: division by zero"), (JAVA_4, "ValueError: no such key")],
)
def test_of_a_failure_in_python_the_reason_is_what_was_raised_last(text, reason):
    assert reason_of(PythonException(text)) == reason
    assert reason_of(JavaError(text)) == reason
