"""The Python SDK's client against mcpx: stdio, HTTP and SSE, both eras of MCP."""

import asyncio

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

from report import EVERYTHING, Front, check, config, finish, text, want


async def sampling(context, params):
    return types.CreateMessageResult(role="assistant", model="a-model", content=types.TextContent(type="text", text="sampled by the client"))


async def elicitation(context, params):
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///interop", name="interop")])


async def converse(name, target, mode):
    on = f"{name}, {mode}: "
    async with Client(target, mode=mode, sampling_callback=sampling, elicitation_callback=elicitation, list_roots_callback=roots) as client:

        def tool(tool, arguments, **options):
            return client.call_tool("exec", {"server_name": "everything", "tool_name": tool, "arguments": arguments}, **options)

        async def tools():
            names = [t.name for t in (await client.list_tools()).tools]
            want(names == ["inspect", "exec"], names)
            want(client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28"), client.protocol_version)
            listing = text(await client.call_tool("inspect", {"server_name": "everything"}))
            want("get-sum(a: number, b: number)" in listing, listing)
            want("42" in text(await tool("get-sum", {"a": 19, "b": 23})), "another sum")

        async def rest():
            result = await client.get_prompt("everything__args-prompt", {"city": "Rome"})
            want("Rome" in result.messages[0].content.text, result)
            contents = (await client.read_resource("demo://resource/dynamic/text/7")).contents
            want("7" in contents[0].text, contents)
            ref = types.PromptReference(type="ref/prompt", name="everything__completable-prompt")
            values = (await client.complete(ref, {"name": "department", "value": "S"})).completion.values
            want(values == ["Sales", "Support"], values)

        async def asked():
            want("sampled by the client" in text(await tool("trigger-sampling-request", {"prompt": "say so"})), "no sample")
            want("Ada" in text(await tool("trigger-elicitation-request", {})), "no answer")
            want("file:///interop" in text(await tool("get-roots-list", {})), "no roots")

        async def progress():
            seen = []

            async def heard(progress, total, message):
                seen.append(progress)

            await tool("trigger-long-running-operation", {"duration": 0.3, "steps": 3}, progress_callback=heard)
            want(seen == [1, 2, 3], seen)

        async def cancel():
            try:
                await asyncio.wait_for(tool("trigger-long-running-operation", {"duration": 30, "steps": 10}), 0.5)
                raise AssertionError("it was not canceled")
            except TimeoutError:
                pass
            want("here" in text(await tool("echo", {"message": "still here"})), "no echo")

        async def errors():
            bad = await tool("get-sum", {"a": "one"})
            want(bad.is_error and 'arguments.a: expected number, got string "one"' in text(bad), text(bad))
            try:
                await client.call_tool("nope", {})
                raise AssertionError("an unknown tool was called")
            except MCPError as error:
                want(error.error.code == -32601, error)

        async def together():
            sums = await asyncio.gather(*(tool("get-sum", {"a": i, "b": 1000}) for i in range(20)))
            want(all(str(1000 + i) in text(r) for i, r in enumerate(sums)), sums)

        for what, body in [
            ("tools", tools),
            ("prompts, resources, completion", rest),
            ("sampling, elicitation, roots", asked),
            ("progress", progress),
            ("cancel", cancel),
            ("errors", errors),
            ("20 calls at once", together),
        ]:
            await check(on + what, body)


async def main():
    path = config(EVERYTHING)
    front = Front(path)
    try:
        for mode in ("legacy", "auto"):
            await converse("stdio", StdioServerParameters(command="mcpx", args=[path, "--log-level", "error"]), mode)
            await converse("http", front.url + "/mcp", mode)
        await converse("sse", sse_client(front.url + "/sse"), "legacy")
    finally:
        front.stop()


asyncio.run(main())
finish()
