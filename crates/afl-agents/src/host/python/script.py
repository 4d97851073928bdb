"""Runs one script: `params` in, what it leaves in `result` out."""

import linecache


def run(call):
    space = {"__name__": "__script__", "params": call["params"], "result": {}}
    # So that a traceback shows the lines.
    linecache.cache["<script>"] = (len(call["code"]), None, call["code"].splitlines(True), "<script>")
    exec(compile(call["code"], "<script>", "exec", dont_inherit=True), space)
    return result_of(space.get("result"))


enclose(hello["limits"])
channel = Channel(link)
channel.write(b"E", b"{}")
call = json.loads(channel.read()[1])
try:
    kind, reply = b"R", run(call)
except InvalidResult as error:
    kind, reply = b"F", as_json(failure("invalid_result", error, True, with_trace=False))
except BaseException as error:
    kind, reply = b"F", as_json(failure("error", error, True))
flush()
channel.write(kind, reply)
