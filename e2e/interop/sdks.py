"""The SDK of another language against mcpx, as a client and as an upstream.

    sdks.py VERSION PROGRAM [ARGUMENT...]     with REVISIONS="..." in the environment

The program is java/Interop.java or rust/src/main.rs, which say how they are used."""

import asyncio
import json
import os
import subprocess
import sys

from mcp import Client, StdioServerParameters

from report import EVERYTHING, Front, check, config, finish, text, want

SUM = {"a": 19, "b": 23}
CALLS = {
    "lazy": ("exec", {"server_name": "everything", "tool_name": "get-sum", "arguments": SUM}),
    "flat": ("everything__get-sum", SUM),
}
ANSWER = "The sum of 19 and 23 is 42."


async def as_client(program, revision, tool, arguments, target):
    """Run the program as a client and check what it prints."""
    run = await asyncio.create_subprocess_exec(
        *program, "client", revision, tool, json.dumps(arguments), *target, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    try:
        said, _ = await run.communicate()
    finally:
        if run.returncode is None:
            run.kill()
    lines = said.decode().splitlines()
    want(run.returncode == 0 and tool in lines[0].split() and lines[1:] == [ANSWER], f"exit status {run.returncode}: {lines}")


async def as_upstream(program):
    """Run the program as a server behind mcpx, called by the Python SDK."""
    path = config({"mcpServers": {"adder": {"command": program[0], "args": [*program[1:], "server"]}}})
    async with Client(StdioServerParameters(command="mcpx", args=[path])) as client:
        listing = text(await client.call_tool("inspect", {"server_name": "adder"}))
        want("add(a: integer, b: integer)" in listing, listing)
        result = await client.call_tool("exec", {"server_name": "adder", "tool_name": "add", "arguments": SUM})
        want(text(result) == ANSWER, result)


async def main(version, *program):
    path = config(EVERYTHING)
    front = Front(path)
    try:
        for revision in os.environ["REVISIONS"].split():
            for mode, (tool, arguments) in CALLS.items():
                targets = {
                    "stdio": ["mcpx", path, "--expose", mode, "--log-level", "error"],
                    "http": [f"{front.url}/mcp?expose={mode}"],
                }
                for transport, target in targets.items():
                    await check(
                        f"{version}, {revision}, {transport}, {mode}: lists and calls",
                        lambda: as_client(program, revision, tool, arguments, target),
                    )
        await check(f"{version}, as an upstream over stdio: lists and calls", lambda: as_upstream(program))
    finally:
        front.stop()


asyncio.run(main(*sys.argv[1:]))
finish()
