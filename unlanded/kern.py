import time, numpy as np, pyarrow as pa
from sqlext_operators.sequences.piece import Piece
from sqlext_operators.window.processor import WindowUnionProcessor
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec
n=300_000
r=np.random.default_rng(1)
A={"x":pa.array(r.normal(size=n)),"y":pa.array(r.normal(size=n)),"i":pa.array(r.integers(0,1000,n)),"b":pa.array(r.random(n)>.5),"s":pa.array(r.integers(0,1000,n).astype(str))}
def go(f,args,c,w,m=n):
    best=9
    for _ in range(2):
        spec=WindowUnionSpec(("k",),"ts",(),(Window(Frame("rows",1-w,0),(),(Call(f,args,"o",c),)),))
        p=WindowUnionProcessor(spec,{k:a.type for k,a in A.items()},pa.schema([]))
        piece=Piece(np.zeros(m,np.int64),np.arange(m),np.zeros(m,np.uint8),{k:a.slice(0,m) for k,a in A.items()},pa.record_batch([pa.nulls(m)],["z"]).select([]))
        t=time.process_time(); 
        for b in p.process(piece,True): pass
        best=min(best,time.process_time()-t)
    return best/m*1e9
for f,args,c in [("sum",("x",),()),("stddev",("x",),()),("count_if",("b",),()),("bool_or",("b",),()),("bit_or",("i",),()),("bit_xor",("i",),()),("nth_value",("x",),(3,)),("max_by",("i","x"),()),("mode",("i",),()),("median",("x",),()),("median",("i",),()),("percentile",("x",),(0.9,)),("percentile_approx",("x",),(.5,)),("percentiles",("i",),(.1,.5,.9)),("approx_count_distinct",("i",),()),("corr",("x","y"),()),("skewness",("x",),()),("product",("x",),())]:
    print(f, args, *(f"{w}: {go(f,args,c,w):.0f}ns" for w in (10,100,10000)), flush=True)
for f,args,c in [("collect_list",("i",),()),("collect_set",("i",),()),("listagg",("s",),(",",)),("listagg_within_group",("s","x"),(",",False,False))]:
    print(f, args, *(f"{w}: {go(f,args,c,w,30000):.0f}ns" for w in (10,100)), flush=True)
