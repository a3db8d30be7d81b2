from local_hadoop import Disk, session

from mcspark.engine.classic.store import store_of


def test_settings_are_copied_once_for_a_file_system():
    disk, copies = Disk(), []
    spark = session(disk)
    spark._jsparkSession.sessionState().newHadoopConf = lambda: copies.append(1) or disk
    one = store_of(spark, "/a/b")
    assert all(store_of(spark, path) is one for path in ("/a/b/c:d", "e", "", "it's [one]"))
    assert len(copies) == 1
    assert store_of(spark, "file:/a") is store_of(spark, "file:///b")
    kinds = ("file:/a", "s3a://x/y", "s3a://z/y", "s3b://x")
    assert len({id(store_of(spark, path)) for path in kinds}) == len(kinds) == len(copies) - 1
    assert store_of(session(disk), "/a/b") is not one
