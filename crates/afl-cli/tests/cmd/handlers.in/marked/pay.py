from agentflow import handler


@handler("billing.Charge")
def charge(payload):
    return {"receipt": "r2"}
