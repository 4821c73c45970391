"""What a part says of its checks, a line each on file descriptor 3, and runs of mcpx."""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback

WORK = os.path.join(os.environ["INTEROP_DIR"], "work")
EVERYTHING = {"mcpServers": {"everything": {"command": "mcp-server-everything", "args": ["stdio"], "isolation": "client"}}}
failed = 0


def say(what, outcome, reason=""):
    """Write one line of the table."""
    global failed
    failed += outcome == "FAIL"
    line = "\t".join(re.sub(r"[\t\r\n]+", " ", str(t))[:300] for t in (what, outcome, reason))
    os.write(3, (line + "\n").encode())


async def check(what, body, limit=60):
    """Run one check; what it raises is why it failed."""
    try:
        await asyncio.wait_for(body(), limit)
        say(what, "pass")
    except Exception as error:
        traceback.print_exc()
        say(what, "FAIL", f"{type(error).__name__}: {error}")


def finish():
    """End the program with what came of it."""
    sys.exit(1 if failed else 0)


def config(content):
    """Write a config file and return its path."""
    path = os.path.join(tempfile.mkdtemp(prefix="config-", dir=WORK), "mcpx.json")
    with open(path, "w") as file:
        json.dump(content, file)
    return path


class Front:
    """A run of mcpx-sse; url is without a path."""

    def __init__(self, path, *args):
        self.process = subprocess.Popen(["mcpx-sse", path, "--port", "0", *args], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"url=(http://[^/\s]+)/mcp", line):
                self.url = found[1]
                break
        else:
            raise RuntimeError("mcpx-sse did not start")
        # What it says later must be read, or it would have nowhere to write to.
        self.drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=subprocess.DEVNULL)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.drain.wait()


def text(result):
    """The text of a tool's result."""
    return "\n".join(c.text for c in result.content if c.type == "text")


def want(condition, got):
    """Fail with what came instead."""
    if not condition:
        raise AssertionError(f"got {got}")
