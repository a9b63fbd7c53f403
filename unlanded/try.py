import sys, time
sys.path.insert(0,'/work/h/residual')
t0=time.time()
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled","false").config("spark.sql.shuffle.partitions","2").config("spark.driver.memory","2g").config("spark.python.worker.faulthandler.enabled","true").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
print("start", time.time()-t0, flush=True)
import random, pyarrow as pa
from tests.sql.intervals import random_periods
from tests.sql.test_interval_residuals import *
rng = random.Random(7)
for name, count in (("ineq_r", 45), ("ineq_s", 55)):
    table = random_periods(rng, count)
    odd = [rng.choice([None, float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5, -1.5]) for _ in range(count)]
    table = table.append_column("odd", pa.array(odd, pa.float64())).append_column("single", pa.array(odd, pa.float32()))
    spark.createDataFrame(table).createOrReplaceTempView(name)
from tests.sql.test_interval_joins import sweeping, union
session = {f: sweeping(spark, f) for f in ("broadcast","exchange")}
def run(q):
    want = sorted((tuple(r) for r in spark.sql(q).collect()), key=repr)
    for f, s in session.items():
        t=time.time()
        try:
            plan = s.plan(q)
            swept = [n for n in plan.physical.walk() if type(n).__name__ == "IntervalJoinExec"]
            lines = swept[0].details() if swept else {}
            got = sorted((tuple(r) for r in s.sql(q).collect()), key=repr)
            print(f, "OK" if got == want else f"WRONG {len(got)} {len(want)}", len(want), round(time.time()-t,1), lines.get("residual","NOT SWEPT")[-40:], '|', q[20:], flush=True)
        except Exception as e:
            print(f, "ERR", str(e)[:1500], q, flush=True)

from tests.sql.test_operator_expressions import test_random_conditions
import traceback
def evaluators(n):
    for ansi in (True, False):
        t=time.time()
        try:
            test_random_conditions.__wrapped__(ansi, n, spark) if hasattr(test_random_conditions,"__wrapped__") else test_random_conditions(ansi, n, spark)
            print("EVAL OK", ansi, n, round(time.time()-t,1), flush=True)
        except BaseException as e:
            print("EVAL", ansi, str(e)[:3000], traceback.format_exc()[-1500:], flush=True)
sys.setrecursionlimit(3000)
first = True
for q in statements(KINDS, 5):
    try: run(q)
    except Exception as e: print("SPARK ERR", str(e)[:600], q, flush=True)
    if first: evaluators(300); first=False
evaluators(2000)
import subprocess
