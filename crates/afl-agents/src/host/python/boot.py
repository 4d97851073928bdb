import sys
if sys.path and sys.path[0] == "": del sys.path[0]
import os, struct
link = os.dup(0)
os.set_inheritable(link, False)
null = os.open(os.devnull, os.O_RDONLY)
os.dup2(null, 0)
os.close(null)
def take(count):
    parts = []
    while count:
        part = os.read(link, min(count, 1 << 20))
        if not part: os._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
import json
hello = json.loads(take(struct.unpack(">I", take(4))[0])[1:])
main = {"__name__": "agentflow_host", "link": link, "take": take, "hello": hello}
exec(compile(hello["channel"], "<agentflow host>", "exec"), main)
exec(compile(hello["program"], "<agentflow host>", "exec"), main)
