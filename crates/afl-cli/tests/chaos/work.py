import os

MARKS = os.open(os.path.join(os.path.dirname(__file__), "..", "marks"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def twice(payload, ctx):
    os.write(MARKS, f"{payload['_facet_name']} {ctx.idempotency_key}\n".encode())
    return {"n": 2 * payload["n"]}
