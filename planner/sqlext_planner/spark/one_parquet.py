"""A DataFrame as one Parquet file, written by Spark.

Spark writes a file for each partition. Their row groups are then copied into one file as they are, by Parquet's own
writer: nothing is decoded again, so the file holds what Spark wrote, types and statistics included, in the order of
the rows.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_one_parquet(frame: DataFrame, folder: Path) -> Path:
    """Write the rows below `folder`, an empty folder of this machine; returns the file."""
    parts = folder / "parts"
    frame.write.parquet(_location(parts))
    files = sorted(parts.glob("part-*.parquet"))
    if len(files) == 1:
        return files[0]
    joined = folder / "joined.parquet"
    _join(frame.sparkSession, files, joined)
    shutil.rmtree(parts)
    return joined


def _join(spark: SparkSession, files: list[Path], joined: Path) -> None:
    """One file with the row groups of all; the schema and the metadata are those of the first."""
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.parquet.hadoop
    conf = spark._jsparkSession.sessionState().newHadoopConf()

    def opened(kind: Any, path: Path) -> Any:
        return kind.fromPath(jvm.org.apache.hadoop.fs.Path(_location(path)), conf)

    inputs = [opened(hadoop.util.HadoopInputFile, path) for path in files]
    reader = hadoop.ParquetFileReader.open(inputs[0])
    try:
        metadata = reader.getFooter().getFileMetaData()
    finally:
        reader.close()
    writer = hadoop.ParquetFileWriter(
        opened(hadoop.util.HadoopOutputFile, joined),
        metadata.getSchema(),
        hadoop.ParquetFileWriter.Mode.CREATE,
        hadoop.ParquetWriter.DEFAULT_BLOCK_SIZE,
        hadoop.ParquetWriter.MAX_PADDING_SIZE_DEFAULT,
    )
    writer.start()
    for one in inputs:
        writer.appendFile(one)
    writer.end(metadata.getKeyValueMetaData())


def _location(path: Path) -> str:
    """For Hadoop's Path, which takes blanks and percent signs as they are."""
    return f"file://{path.resolve()}"
