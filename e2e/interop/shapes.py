"""The shapes of arguments that models are known to send, by the Python SDK over HTTP."""

import asyncio
import json
import os

from mcp import Client

from report import EVERYTHING, WORK, Front, check, config, finish, text, want

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes.json")) as file:
    SHAPES = json.load(file)


async def main():
    memory = {"command": "mcp-server-memory", "env": {"MEMORY_FILE_PATH": os.path.join(WORK, f"shapes-{os.getpid()}.jsonl")}}
    front = Front(config({"mcpServers": {**EVERYTHING["mcpServers"], "memory": memory}}))
    try:
        async with Client(front.url + "/mcp") as client:
            for kind, rows in SHAPES.items():
                for what, arguments, *reason in rows:

                    async def one():
                        result = await client.call_tool("exec", arguments)
                        want(bool(result.is_error) == (kind == "wrong"), result)
                        if kind == "right":
                            want("The sum of 19 and 23 is 42" in text(result), result)
                        elif kind == "none":
                            want(any(c.type == "image" for c in result.content), result)
                        elif kind == "wrong":
                            want(reason[0] in text(result), text(result))

                    await check(f"Python: {what}", one)
    finally:
        front.stop()


asyncio.run(main())
finish()
