def charge(payload):
    print("charging", payload["amount"])
    return {"receipt": "r1"}
