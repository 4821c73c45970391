"""Agent frameworks against mcpx, without a model: each connects with its own MCP
integration over stdio and HTTP, in lazy and in flat mode, lists the tools, and calls
one as it would for a model.

    frameworks.py NAME VERSION     in the environment that NAME is installed in"""

import asyncio
import json
import re
import sys
from types import SimpleNamespace

from report import EVERYTHING, Front, check, config, finish, say, want

SUM = {"a": 19, "b": 23}
CALLS = {
    "lazy": ("exec", {"server_name": "everything", "tool_name": "get-sum", "arguments": SUM}),
    "flat": ("everything__get-sum", SUM),
}
# UNABLE are the frameworks that cannot call exec, and their errors; docs/agents.md says why.
UNABLE = {
    "semantic-kernel": "got multiple values for argument 'tool_name'",
}


def plain(name):
    """Reduce a name to its letters and digits: some frameworks rename tools."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def find(tools, name):
    """Return the tool with that name from a framework's list."""
    found = [t for t in tools if plain(t.name) == plain(name)]
    want(len(found) == 1, f"{len(found)} tools of that name among {[t.name for t in tools]}")
    return found[0]


def parameters(server):
    """Return the MCP SDK's parameters of a stdio server."""
    from mcp import StdioServerParameters

    return StdioServerParameters(command=server["command"], args=server["args"])


# Each of the following functions connects to a server, which is {"command", "args"} or
# {"url"}, lists its tools, calls one, disconnects, and returns the result of the call.


async def openai_agents(server, tool, arguments):
    from agents import Agent, RunContextWrapper
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
    from agents.tool_context import ToolContext

    kind = MCPServerStdio if "command" in server else MCPServerStreamableHttp
    async with kind(params=server, client_session_timeout_seconds=60) as connection:
        tools = await Agent(name="interop", mcp_servers=[connection]).get_mcp_tools(RunContextWrapper(context=None))
        given = json.dumps(arguments)
        context = ToolContext(context=None, tool_name=tool, tool_call_id="1", tool_arguments=given)
        return await find(tools, tool).on_invoke_tool(context, given)


async def pydantic_ai(server, tool, arguments):
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    async with MCPToolset(server.get("url") or StdioTransport(**server)) as toolset:
        return await toolset.direct_call_tool(find(await toolset.list_tools(), tool).name, arguments)


async def strands(server, tool, arguments):
    from strands.tools.mcp import MCPClient

    with MCPClient.load_servers({"mcpx": server})[0] as client:
        tools = [SimpleNamespace(name=t.tool_name) for t in client.list_tools_sync()]
        return client.call_tool_sync("1", find(tools, tool).name, arguments)


async def llama_index(server, tool, arguments):
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    client = BasicMCPClient(server.get("url") or server["command"], args=server.get("args"))
    tools = {t.metadata.name: t for t in await McpToolSpec(client).to_tool_list_async()}
    return await tools[tool].acall(**arguments)


async def google_adk(server, tool, arguments):
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams

    connection = StreamableHTTPConnectionParams(**server, timeout=60) if "url" in server else StdioConnectionParams(server_params=parameters(server), timeout=60)
    toolset = McpToolset(connection_params=connection)
    try:
        return await find(await toolset.get_tools(), tool).run_async(args=arguments, tool_context=None)
    finally:
        await toolset.close()


async def mcp_use(server, tool, arguments):
    from mcp_use import MCPClient
    from mcp_use.agents.adapters import LangChainAdapter

    client = MCPClient({"mcpServers": {"mcpx": server}})
    try:
        tools = await LangChainAdapter().create_tools(client)
        return await find(tools, tool).ainvoke(arguments)
    finally:
        await client.close_all_sessions()


async def langchain(server, tool, arguments):
    from langchain_mcp_adapters.client import MultiServerMCPClient

    transport = "streamable_http" if "url" in server else "stdio"
    tools = await MultiServerMCPClient({"mcpx": {**server, "transport": transport}}).get_tools()
    return await find(tools, tool).ainvoke(arguments)


async def crewai(server, tool, arguments):
    from crewai_tools import MCPServerAdapter

    with MCPServerAdapter({**server, "transport": "streamable-http"} if "url" in server else parameters(server), connect_timeout=60) as tools:
        return find(tools, tool).run(**arguments)


async def smolagents(server, tool, arguments):
    from smolagents import MCPClient

    with MCPClient({**server, "transport": "streamable-http"} if "url" in server else parameters(server), structured_output=False) as tools:
        return find(tools, tool)(**arguments)


async def agno(server, tool, arguments):
    from agno.tools.mcp import MCPTools

    connection = server if "url" in server else {"server_params": parameters(server)}
    async with MCPTools(**connection, timeout_seconds=60) as tools:
        return await find(tools.functions.values(), tool).entrypoint(**arguments)


async def autogen(server, tool, arguments):
    from autogen_core import CancellationToken
    from autogen_ext.tools.mcp import StdioServerParams, StreamableHttpServerParams, mcp_server_tools

    kind = StreamableHttpServerParams if "url" in server else StdioServerParams
    tools = await mcp_server_tools(kind(**server))
    return await find(tools, tool).run_json(arguments, CancellationToken())


async def semantic_kernel(server, tool, arguments):
    from semantic_kernel import Kernel
    from semantic_kernel.connectors.mcp import MCPStdioPlugin, MCPStreamableHttpPlugin
    from semantic_kernel.functions import KernelArguments

    kind = MCPStreamableHttpPlugin if "url" in server else MCPStdioPlugin
    async with kind(name="mcpx", **server) as plugin:
        functions = Kernel().add_plugin(plugin).functions
        return await find(functions.values(), tool).invoke(Kernel(), KernelArguments(**arguments))


async def try_unable(what, body, expected):
    """Run a check of which the failure is known. Success must be noticed, too."""
    try:
        await asyncio.wait_for(body(), 60)
        say(what, "FAIL", "it works now: correct docs/agents.md")
    except Exception as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if expected in str(error):
            say(what, "note", f"needs flat mode: {expected}")
        elif isinstance(error, TimeoutError):
            say(what, "note", "hangs")  # Semantic Kernel, if a list changes while it connects
        else:
            say(what, "FAIL", repr(error))


async def main(name, version):
    framework = globals()[name.replace("-", "_")]
    path = config(EVERYTHING)
    front = Front(path)
    try:
        for mode, (tool, arguments) in CALLS.items():
            servers = {
                "stdio": {"command": "mcpx", "args": [path, "--expose", mode, "--log-level", "error"]},
                "http": {"url": f"{front.url}/mcp?expose={mode}"},
            }
            for transport, server in servers.items():

                async def body():
                    result = str(await framework(server, tool, arguments))
                    want("The sum of 19 and 23 is 42" in result, result)

                what = f"{name} {version}, {transport}, {mode}: lists and calls"
                if mode == "lazy" and name in UNABLE:
                    await try_unable(what, body, UNABLE[name])
                else:
                    await check(what, body)
    finally:
        front.stop()


asyncio.run(main(*sys.argv[1:]))
finish()
