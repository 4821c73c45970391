"""fastmcp's client against mcpx, over stdio and HTTP: list, inspect, exec, errors, ten at once."""

import asyncio

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

from report import EVERYTHING, Front, check, config, finish, text, want


def exec_sum(client, a, b):
    return client.call_tool("exec", {"server_name": "everything", "tool_name": "get-sum", "arguments": {"a": a, "b": b}})


async def converse(name, target):
    async with Client(target()) as client:

        async def listed():
            names = [t.name for t in await client.list_tools()]
            want(names == ["inspect", "exec"], names)
            want(any(p.name == "everything__args-prompt" for p in await client.list_prompts()), "no prompt")
            want(len(await client.list_resources()) > 0, "no resources")

        async def inspect():
            listing = text(await client.call_tool("inspect", {"server_name": "everything"}))
            want("get-sum(a: number, b: number)" in listing, listing)
            one = text(await client.call_tool("inspect", {"server_name": "everything", "tool_name": "get-sum"}))
            want('"inputSchema"' in one, one)

        async def execute():
            want("42" in text(await exec_sum(client, 19, 23)), "another sum")

        async def errors():
            for arguments, reason in [
                ({"server_name": "everything", "tool_name": "get-sum", "arguments": {"a": "one"}}, "arguments.b: required"),
                ({"server_name": "everything", "tool_name": "get-sun", "arguments": {}}, "get-sum"),
                ({"server_name": "every", "tool_name": "get-sum", "arguments": {}}, "everything"),
            ]:
                try:
                    await client.call_tool("exec", arguments)
                    raise AssertionError(f"no error for {arguments}")
                except ToolError as error:
                    want(reason in str(error), error)

        await check(name + ": list", listed)
        await check(name + ": inspect", inspect)
        await check(name + ": exec", execute)
        await check(name + ": errors", errors)

    async def ten():
        async def one(number):
            async with Client(target()) as client:
                results = [text(await exec_sum(client, number, 1000 * i)) for i in range(10)]
                want(all(str(number + 1000 * i) in r for i, r in enumerate(results)), results)

        await asyncio.gather(*(one(n) for n in range(10)))

    await check(name + ": 10 clients at once, 10 calls each", ten)


async def main():
    path = config(EVERYTHING)
    front = Front(path)
    try:
        await converse("stdio", lambda: StdioTransport("mcpx", [path, "--log-level", "error"], keep_alive=False))
        await converse("http", lambda: front.url + "/mcp")
    finally:
        front.stop()


asyncio.run(main())
finish()
