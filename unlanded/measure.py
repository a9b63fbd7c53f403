"""LEFT ... NOT EXISTS against INNER with the same residual: rows, candidates a row, share that passes."""
import sys, time
sys.path.insert(0,'/work/h/residual')
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from pyspark.sql import SparkSession
n = int(sys.argv[1]); cands = [int(c) for c in sys.argv[2].split(",")]
kinds = sys.argv[3].split(",") if len(sys.argv) > 3 else ["LEFT","FULL","SEMI","ANTI","EXISTS","NOT EXISTS"]
rng = np.random.default_rng(5)
def table(path, c):
    u = rng.integers(0, 1000, n)
    d = rng.integers(0, 100, n)
    xy = rng.integers(0, 2, n)
    t = pa.table({"id": np.arange(n), "ts": rng.permutation(n), "u": u.astype("int32"), "b1": (rng.random(n) < .005).astype("int32"),
      "b50": xy.astype("int32"), "t1": pa.array([f"{v:02d}" for v in d]), "t50": pa.array(["xy"[v] + "z" for v in xy])})
    t = t.append_column("te", pa.array(t["ts"].to_numpy() + c))
    pq.write_table(t, path, row_group_size=25000)
from sqlext import Session
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled","false").config("spark.sql.shuffle.partitions","4").config("spark.driver.memory","4g").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
session = Session(spark)
RES = {"<>": {1: "r.b1 <> s.b1", 50: "r.b50 <> s.b50"},
 "OR": {1: "(r.u + s.u < 141 OR r.u = s.u + 5000)", 50: "(r.u + s.u < 1000 OR r.u = s.u + 5000)"},
 "LIKE": {1: "s.t1 LIKE concat('%', r.t1)", 50: "s.t50 LIKE concat(substr(r.t50, 1, 1), '%')"},
 "function": {1: "abs(r.u - s.u) < 5", 50: "abs(r.u - s.u) < 293"}}
def text(kind, on):
    w = f"s.ts >= r.ts AND s.ts < r.te AND {on}"
    if kind in ("INNER","LEFT","FULL"):
        return f"SELECT count(*) AS n, sum(a) AS a, sum(b) AS b FROM (SELECT r.id AS a, s.id AS b FROM mr r {kind} JOIN ms s ON {w})"
    if kind in ("SEMI","ANTI"):
        return f"SELECT count(*) AS n, sum(a) AS a FROM (SELECT r.id AS a FROM mr r LEFT {kind} JOIN ms s ON {w})"
    return f"SELECT count(*) AS n, sum(id) AS a FROM (SELECT r.id FROM mr r WHERE {kind} (SELECT 1 FROM ms s WHERE {w}))"
def timed(kind, on, again=1):
    best = 1e9
    for _ in range(again):
        t = time.time(); got = tuple(session.sql(text(kind, on)).collect()[0]); best = min(best, time.time()-t)
    return best, got
for c in cands:
    for name in ("mr","ms"):
        table(f"/tmp/residual/{name}.parquet", c); spark.read.parquet(f"/tmp/residual/{name}.parquet").createOrReplaceTempView(name)
    timed("INNER", RES["<>"][1]); timed("SEMI", RES["function"][1])
    for res, by in RES.items():
        for share, on in by.items():
            again = 2 if c < 100 else 1
            inner, got = timed("INNER", on, again)
            line = f"{n} c={c} {res} {share}%: INNER {inner:.2f} n={got[0]}"
            for kind in kinds:
                took, found = timed(kind, on, again)
                line += f" | {kind} {took:.2f} ({took/inner:.1f}x)"
            print(line, flush=True)
