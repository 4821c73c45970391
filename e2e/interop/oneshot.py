"""The Python SDK as a one-shot client over stdio: connect, list the tools, call one, exit.

Such a client closes the connection while the server may still write to it. Every
run is a process of its own; a run that does not end with exit status 0 is a crash.
It also ends badly if it is told of a changed list that it has not read."""

import asyncio
import os
import subprocess
import sys
import tempfile

from report import WORK, check, config, finish, want

RUNS = 12
EVERYTHING = {"command": "mcp-server-everything", "args": ["stdio"]}
UPSTREAMS = {"everything": EVERYTHING, "go": {"command": "everything-server"}, "thinking": {"command": "mcp-server-sequential-thinking"}}
SUM = {"a": 19, "b": 23}
EXEC = {"server_name": "everything", "tool_name": "get-sum", "arguments": SUM}


async def client(tool, command, *args):
    """Be the client once."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    unasked = []

    async def handle(message):
        method = getattr(getattr(message, "root", None), "method", "")
        if method.endswith("list_changed") and not method.startswith("notifications/tools/"):
            unasked.append(method)

    server = StdioServerParameters(command=command, args=list(args), env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams, message_handler=handle) as session:
        await session.initialize()
        await session.list_tools()
        result = await session.call_tool(tool, EXEC if tool == "exec" else SUM)
        want("42" in result.content[0].text, result)
        want(not unasked, unasked)


async def crashes(tool, command):
    """Run the client RUNS times and return the last line of each crash."""
    found = []
    for _ in range(RUNS):
        empty = {"XDG_CACHE_HOME": tempfile.mkdtemp(prefix="cache-", dir=WORK)}  # with a cache no list changes
        run = await asyncio.create_subprocess_exec(
            sys.executable, __file__, tool, *command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ | empty
        )
        try:
            _, said = await asyncio.wait_for(run.communicate(), 30)
        except TimeoutError:
            run.kill()
            await run.wait()
            said = b"not done within 30 s"
        if run.returncode != 0:
            found.append((said.decode(errors="replace").strip().splitlines() or ["no message"])[-1])
    return found


async def main():
    path = config({"mcpServers": UPSTREAMS})
    ways = {
        "directly": ("get-sum", [EVERYTHING["command"], *EVERYTHING["args"]]),
        "mcpx, lazy": ("exec", ["mcpx", path]),
        "mcpx, flat": ("everything__get-sum", ["mcpx", path, "--expose", "flat"]),
    }
    for name, (tool, command) in ways.items():

        async def body():
            found = await crashes(tool, command)
            want(not found, f"{len(found)} crashes in {RUNS} runs: {found[:1]}")

        await check(f"Python SDK 1.30.0, {name}: {RUNS} runs, no crash", body, RUNS * 31)


if len(sys.argv) > 1:
    asyncio.run(client(*sys.argv[1:]))
else:
    asyncio.run(main())
    finish()
