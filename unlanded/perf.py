import time,sys
sys.path[:0]=[sys.argv[1],sys.argv[1]+"/planner",sys.argv[1]+"/operators"]
from sqlext.catalog import table_info
import sqlext; print(sqlext.__file__)
import random
random.seed(1)
from pathlib import Path
p=Path("/tmp/files/p.csv")
if not p.exists():
    with p.open("w") as f:
        f.write("id,x,y,s\n")
        for i in range(300000): f.write(f"{i},{random.random()!r},{random.random():.3f},2020-01-{i%28+1:02d} 00:00:00\n")
table_info("x","/work/shared/data/streams/published_results.csv")
for q in (p,"/work/shared/data/streams/logistics_tr.csv"):
    s=time.process_time(); i=table_info("t",q); print(i.columns, time.process_time()-s)
