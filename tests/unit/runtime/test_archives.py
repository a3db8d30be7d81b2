import sys
import zipfile
from zipimport import zipimporter

import pytest

from mcspark.runtime.tasks.archives import quick_to_follow


@pytest.fixture
def archive(tmp_path, monkeypatch):
    path = tmp_path / "packed.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("first_of_archive.py", "VALUE = 1")
        packed.writestr("second_of_archive.py", "VALUE = 2")
    monkeypatch.syspath_prepend(str(path))
    yield str(path)
    for name in ("first_of_archive", "second_of_archive"):
        sys.modules.pop(name, None)


def test_the_next_task_need_not_read_the_archive_again_and_still_imports_from_it(archive):
    def task(batches):
        import first_of_archive

        for batch in batches:
            yield batch + first_of_archive.VALUE

    assert list(quick_to_follow(task)([1, 2])) == [2, 3]
    assert not any(isinstance(finder, zipimporter) for finder in sys.path_importer_cache.values())
    import second_of_archive

    assert second_of_archive.VALUE == 2
