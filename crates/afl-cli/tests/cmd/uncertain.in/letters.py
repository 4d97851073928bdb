"""A handler that dies in the midst of its work."""

import os

from agentflow import handler


@handler("SendLetter")
def send(payload):
    os._exit(3)
