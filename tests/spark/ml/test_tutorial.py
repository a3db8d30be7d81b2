"""The tutorial of docs/use/python.md, run as it stands there."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[3] / "docs/use/python.md").read_text(encoding="utf-8")


def test_the_tutorial_says_what_happens(spark):
    block = PAGE.partition("<!-- tutorial -->\n```python\n")[2].partition("\n```")[0] + "\n"
    test = doctest.DocTestParser().get_doctest(block, {}, "the tutorial", "python.md", None)
    assert sum(bool(example.want) for example in test.examples) >= 5
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=told.append)
    assert runner.failures == 0, "".join(told)
