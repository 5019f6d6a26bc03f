"""A judge to try things on: a server on this machine that speaks OpenAI's API and knows one trick.

It answers VCapsBench's questions by looking for the question's words in the caption. Started with a
file's name, it writes its address there; it ends with the process that started it.
"""

import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAME = "small-judge"
COMMON = {"is", "the", "a", "there", "does"}


def answer(prompt):
    """``yes`` where the caption holds every word of the question that says something."""
    caption, _, question = prompt.rpartition("\n")
    words = set(re.findall(r"[a-z]+", question.lower())) - COMMON
    held = words & set(re.findall(r"[a-z]+", caption.lower()))
    return "yes" if held == words else "no" if len(held) * 2 > len(words) else "unanswerable"


class Judge(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """The list of models."""
        self.send({"object": "list", "data": [{"id": NAME, "object": "model"}]})

    def do_POST(self):
        """A chat completion."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = "\n".join(message["content"] for message in request["messages"])
        text = f"{answer(prompt)}@@@by its words"
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 5}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}}
        self.send({"model": NAME, "choices": [{**choice, "finish_reason": "stop"}], "usage": usage})

    def send(self, body):
        """Send an object as JSON."""
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Say nothing."""


def end_with(parent):
    """End where the process that started this one has ended."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    Path(sys.argv[1]).write_text(f"http://127.0.0.1:{server.server_port}/v1\n")
    server.serve_forever()
