import sys, time, threading
from pyspark.sql import SparkSession
from sqlext import Session
n=int(sys.argv[1]); widths=[int(w) for w in sys.argv[2].split(",")]; limit=float(sys.argv[3])
with_spark = len(sys.argv)<5
spark=SparkSession.builder.master("local[2]").config("spark.ui.enabled","false").config("spark.driver.memory","4g").config("spark.sql.shuffle.partitions","4").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
KEYS=20
for j,name in enumerate("ab"):
    spark.range(n).selectExpr(f"cast(id % {KEYS} as int) k", f"(id div {KEYS})*2+{j} ts", "cast(rand(1)*1000 as int) i", "rand(2)*100 x", "rand(3)*100 y", "cast(rand(4)*1000 as string) s", "rand(5)>0.5 b").write.mode("overwrite").parquet(f"/tmp/aggregates/b_{name}_{n}")
    spark.read.parquet(f"/tmp/aggregates/b_{name}_{n}").createOrReplaceTempView(name)
session=Session(spark)
CALLS=["sum(x)","count_if(b)","bool_or(b)","bit_or(i)","first(x)","nth_value(x, 3)","max_by(i, x)","mode(i)","median(x)","percentile(x, 0.9)","percentile(i, array(0.1, 0.5, 0.9))","percentile_approx(x, 0.5)","approx_count_distinct(i)","corr(x, y)","regr_slope(x, y)","skewness(x)","product(x)","collect_list(i)","collect_set(i)","listagg(s, ',')"]
LISTS={"collect_list(i)","collect_set(i)","listagg(s, ',')"}
def run(make):
    done=threading.Event(); group=str(time.time())
    spark.sparkContext.setJobGroup(group,"b",True)
    t=threading.Timer(limit, lambda: spark.sparkContext.cancelJobGroup(group)); t.start()
    at=time.time()
    try:
        make().write.format("noop").mode("overwrite").save(); return f"{time.time()-at:.1f}"
    except Exception as e:
        return f"more than {limit:.0f}" if time.time()-at>=limit else "ERR "+str(e)[:120]
    finally: t.cancel()
for w in widths:
    for c in CALLS:
        if w>1000 and c in LISTS: continue
        o=run(lambda: session.sql(f"SELECT k, ts, {c} OVER w AS q FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN {w-1} PRECEDING AND CURRENT ROW)"))
        sc={"median(x)":"percentile(x, 0.5)","product(x)":None}.get(c,c)
        s="-" if sc is None or not with_spark else run(lambda: spark.sql(f"SELECT k, ts, q FROM (SELECT k, ts, src, {sc} OVER w AS q FROM (SELECT *, 0 src FROM a UNION ALL SELECT *, 1 FROM b) WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN {w-1} PRECEDING AND CURRENT ROW)) WHERE src=0"))
        print(n,w,c,o,s,flush=True)
