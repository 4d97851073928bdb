"""The work of inbox.afl. A real one would ask a mail server and a language model; these need nothing but Python."""

from agentflow import handler

LETTERS = [
    ("ada@example.org", "The invoice of May has my old address. Can you send it again?"),
    ("ben@example.org", "URGENT: the app crashes when I open a report."),
    ("cleo@example.org", "asdf"),
    ("dana@example.org", "Thank you, the new export is just what I needed!"),
]
WORDS = {"billing": ["invoice", "refund"], "bug": ["crash", "error"], "praise": ["thank", "great"]}
REPLIES = {
    "billing": "We send you a new invoice today.",
    "bug": "Sorry! An engineer looks into it, you hear from us within a day.",
    "praise": "Thank you, we pass it on to the team.",
}


@handler("inbox.Fetch")
def fetch(payload):
    return {"letters": [{"sender": sender, "text": text} for sender, text in LETTERS[: payload["limit"]]]}


@handler("inbox.Classify")
def classify(payload, ctx):
    text = payload["letter"]["text"].lower()
    ctx.log("classifying", len(text), "letters of text")
    for topic, words in WORDS.items():
        if any(word in text for word in words):
            return {"topic": topic, "urgent": "urgent" in text}
    raise ValueError(f"cannot tell what {text!r} is about")


@handler("inbox.Draft")
async def draft(payload, ctx):
    if payload["topic"] == "bug" and ctx.attempt == 1:
        raise ConnectionError("the model is busy")
    return {"reply": REPLIES[payload["topic"]]}
