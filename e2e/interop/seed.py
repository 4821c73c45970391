"""The seed's own sample config and its numbered steps, message by message, on stdio:
Time by uvx mcp-server-time, and zhipu-web-search, which wants a key, with and without it."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time

from report import WORK, check, config, finish, want

KEY = "a-secret-key"


class Conversation:
    """A run of mcpx on stdio, spoken to by hand."""

    def __init__(self, path, mode, key):
        env = {k: v for k, v in os.environ.items() if k != "Z_AI_API_KEY"}
        if key:
            env["Z_AI_API_KEY"] = key
        log = open(os.path.join(WORK, f"seed-{mode}.log"), "w")
        self.process = subprocess.Popen(
            ["mcpx", path, "--expose", mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=env
        )

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    async def ask(self, id, method, params=None):
        """Send a request and wait for its answer."""
        self.send({"id": id, "method": method, **({"params": params} if params is not None else {})})
        while True:
            line = await asyncio.to_thread(self.process.stdout.readline)
            want(line, "the end of the stream")
            message = json.loads(line)
            if message.get("id") == id:
                return message

    def tool(self, id, name, arguments):
        return self.ask(id, "tools/call", {"name": name, "arguments": arguments})


def said(answer):
    want("result" in answer, answer)
    return answer["result"]["content"][0]["text"]


async def steps(mode, key, path):
    """The steps of seed 000. Lazy mode makes the same calls through exec."""
    flat = mode == "flat"
    c = Conversation(path, mode, key)
    on = f"{mode}, {'with the key' if key == KEY else 'with a wrong key' if key else 'without the key'}: "

    async def call(id, server, tool, arguments):
        if flat:
            return await c.tool(id, f"{server}__{tool}", arguments)
        return await c.tool(id, "exec", {"server_name": server, "tool_name": tool, "arguments": arguments})

    async def initialize():
        answer = await c.ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "roots": {}, "sampling": {}}, "clientInfo": {"name": "test-client", "version": "1.0.0"}})
        result = answer["result"]
        want(result["protocolVersion"] == "2025-06-18" and result["capabilities"]["tools"]["listChanged"] and result["serverInfo"]["name"] == "mcpx", answer)
        c.send({"method": "notifications/initialized"})

    async def list_tools():
        names = []
        for attempt in range(100):
            answer = await c.ask(f"list {attempt}", "tools/list")
            names = [t["name"] for t in answer["result"]["tools"]]
            if not flat or "Time__get_current_time" in names:
                break
            await asyncio.sleep(1)
        if not flat:
            want(names == ["inspect", "exec"], names)
            return
        expected = {"Time__get_current_time", "Time__convert_time", "mcpx__servers", "mcpx__show_config"} | ({"zhipu-web-search__web_search"} if key == KEY else set())
        want(set(names) == expected, names)
        time_tool = next(t for t in answer["result"]["tools"] if t["name"] == "Time__get_current_time")
        want(time_tool["description"].startswith("[Time] "), time_tool)

    async def call_time():
        text = said(await call(3, "Time", "get_current_time", {"timezone": "Asia/Shanghai"}))
        want("+08:00" in text, text)

    async def call_search():
        answer = await call(4, "zhipu-web-search", "web_search", {"query": "Model Context Protocol", "num_results": 3})
        if key == KEY:
            want(said(answer).startswith("Web search results for 'Model Context Protocol':\n1. "), answer)
            return
        reason = "401" if key else "Z_AI_API_KEY"
        if flat:
            want(answer["error"]["code"] == -32603 and answer["error"]["data"] == {"service": "zhipu-web-search"}, answer)
            want(reason in answer["error"]["message"], answer)
        else:
            want(answer["result"]["isError"] and reason in said(answer), answer)

    async def unknown_tool():
        answer = await c.tool(5, "nonexistent_tool", {})
        want(answer["error"]["code"] == -32601 and answer["error"]["message"] == "Tool 'nonexistent_tool' not found", answer)

    async def missing_parameter():
        answer = await call(6, "zhipu-web-search", "web_search", {})
        if flat:
            want(answer["error"] == {"code": -32602, "message": "Invalid params: Missing required parameter 'query'", "data": {"parameter": "query"}}, answer)
        else:
            want(answer["result"]["isError"] and "arguments.query: required" in said(answer), answer)

    async def unknown_method():
        answer = await c.ask(7, "invalid/method", {})
        want(answer["error"]["code"] == -32601 and answer["error"]["message"] == "Method 'invalid/method' not found", answer)

    async def goodbye():
        answer = await c.ask(8, "shutdown")
        want(answer["result"] == {}, answer)
        c.send({"method": "notifications/exit"})
        code = await asyncio.to_thread(c.process.wait, 10)
        want(code == 0, f"exit status {code}")

    try:
        await check(on + "1, 2 initialize", initialize)
        await check(on + "3 tools/list", list_tools, 200)
        await check(on + "4 call Time", call_time, 200)
        await check(on + "5 call zhipu-web-search", call_search)
        await check(on + "6.1 unknown tool", unknown_tool)
        if key == KEY:
            await check(on + "6.2 missing parameter", missing_parameter)
        await check(on + "6.3 unknown method", unknown_method)
        await check(on + "7 shutdown and exit", goodbye)
    finally:
        if c.process.poll() is None:
            c.process.kill()
            c.process.wait()


async def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    here = os.path.dirname(os.path.abspath(__file__))
    server = subprocess.Popen([sys.executable, os.path.join(here, "search_server.py"), str(port), KEY])
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    break
            await asyncio.sleep(0.1)
        path = config({
            "mcpServers": {
                "Time": {"command": "uvx", "args": ["mcp-server-time"], "startup_timeout": "180s"},
                "zhipu-web-search": {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "Bearer ${Z_AI_API_KEY}"}},
            }
        })
        for mode in ("lazy", "flat"):
            for key in (KEY, "wrong", None):
                await steps(mode, key, path)
    finally:
        server.terminate()
        server.wait()


asyncio.run(main())
finish()
