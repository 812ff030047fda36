"""bench20.py WORK LABEL [prepare]: 20 jobs; prepares WORK with base code, then runs a pass in a copy WORK/LABEL."""
import json, shutil, sys
from pathlib import Path
from benchmarks.pipeline import hourly as h
from include.stage_names import Stage
base=Path(sys.argv[1]).resolve(); label=sys.argv[2]
if label=="prepare":
    base.mkdir(parents=True)
    with h.environment(base):
        h.prepare(base, 20, 8)
else:
    work=Path(sys.argv[3]).resolve() if len(sys.argv)>3 else base.parent/f"{base.name}-{label}"
    shutil.rmtree(work, ignore_errors=True)
    if (base/"lake").exists():
        shutil.copytree(base, work)
    with h.environment(work):
        out={}
        for stage,interval in ((Stage.INGEST,(h.END-h.HOUR,h.END)),(Stage.FORECAST,None),(Stage.PLAN,None),(Stage.REPORT,None)):
            u=h.submit(stage, work, h.END, interval)
            out[str(stage)]=(round(u.cpu_s,1), round(u.seconds,1), round(u.peak_bytes/2**30,2))
            print(stage, out[str(stage)], flush=True)
        print(label, json.dumps(out), "total", sum(v[0] for v in out.values()), flush=True)
