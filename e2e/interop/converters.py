"""Programs that convert the schema of exec, as mcpx sends it, for a model: libraries that
rewrite it for an API, and constrained decoders, which let a model write only what the
schema allows. None of them may lose the members of "arguments". There is no model.

    converters.py NAME VERSION     in the environment that NAME is installed in"""

import asyncio
import json
import re
import subprocess
import sys

from report import EVERYTHING, check, config, finish, want

# ARGUMENTS are what a model must be able to write as the arguments of a tool.
ARGUMENTS = {
    "a string and a number": {"path": "/x", "n": 3},
    "nested values": {"filter": {"labels": ["a", "b"], "since": {"days": 7}}, "all": True, "after": None, "ratio": -1.5},
    "no member": {},
}
# REFUSED are calls that the schema does not allow. A decoder that accepts them checks nothing.
REFUSED = {
    "no tool_name": {"server_name": "files", "arguments": {"path": "/x"}},
    "arguments are a list": {"server_name": "files", "tool_name": "read", "arguments": ["/x"]},
}


def exec_tool():
    """Return the definition of exec from a running mcpx."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "interop", "version": "1"}}
    messages = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    with subprocess.Popen(["mcpx", config(EVERYTHING), "--log-level", "error"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as mcpx:
        for message in messages:
            mcpx.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        mcpx.stdin.flush()
        for line in mcpx.stdout:
            if (answer := json.loads(line)).get("id") == 2:
                mcpx.stdin.close()
                return next(t for t in answer["result"]["tools"] if t["name"] == "exec")
    raise RuntimeError("mcpx ended without a list of tools")


# Each of the following functions takes a schema and returns a function that reports whether
# the decoder would let a model write a text.


def outlines(schema):
    from outlines_core.json_schema import build_regex_from_schema

    allowed = re.compile(build_regex_from_schema(json.dumps(schema)))
    return lambda text: allowed.fullmatch(text) is not None


def llguidance(schema):
    from llguidance import LLMatcher, LLTokenizer

    tokenizer = LLTokenizer("byte")
    grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema))

    def accepts(text):
        matcher = LLMatcher(tokenizer, grammar)
        want(not matcher.is_error(), matcher.get_error())
        tokens = tokenizer.tokenize_str(text)
        return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()

    return accepts


def lm_format_enforcer(schema):
    from lmformatenforcer import JsonSchemaParser

    def accepts(text):
        parser = JsonSchemaParser(schema)
        for character in text:
            if character not in parser.get_allowed_characters():
                return False
            parser = parser.add_character(character)
        return parser.can_end()

    return accepts


DECODERS = {"outlines-core": outlines, "llguidance": llguidance, "lm-format-enforcer": lm_format_enforcer}


async def check_decoder(title, decoder, tool):
    """Check which calls a model could write with a decoder."""

    async def allows(call, expected):
        text = json.dumps(call)
        want(decoder(tool["inputSchema"])(text) == expected, f"{'refused' if expected else 'allowed'}: {text}")

    for what, arguments in ARGUMENTS.items():
        call = {"server_name": "files", "tool_name": "read", "arguments": arguments}
        await check(f"{title}: a model can write arguments with {what}", lambda: allows(call, True))
    for what, call in REFUSED.items():
        await check(f"{title}: refused: {what}", lambda: allows(call, False))


# Each of the following functions takes the definition of a tool and returns the schema that
# an API would get.


def google_genai(tool):
    from google.genai._mcp_utils import mcp_to_gemini_tool
    from mcp.types import Tool

    [declared] = mcp_to_gemini_tool(Tool.model_validate(tool)).function_declarations
    return declared.parameters.model_dump(mode="json", exclude_none=True)


def openai_agents(tool):
    from agents.mcp import MCPServerStdio, MCPUtil
    from mcp.types import Tool

    server = MCPServerStdio(params={"command": "mcpx"})
    return MCPUtil.to_function_tool(Tool.model_validate(tool), server, convert_schemas_to_strict=True).params_json_schema


def pydantic_ai(tool):
    from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer

    return OpenAIJsonSchemaTransformer(tool["inputSchema"], strict=None).walk()


def langchain(tool):
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool
    from mcp.types import Tool

    connection = {"transport": "stdio", "command": "mcpx", "args": []}
    return convert_to_openai_tool(convert_mcp_tool_to_langchain_tool(None, Tool.model_validate(tool), connection=connection))["function"]["parameters"]


async def check_converter(title, converter, tool):
    """Check that a converter keeps all parameters, and lets arguments have members."""

    async def body():
        properties = converter(tool)["properties"]
        want(list(properties) == list(tool["inputSchema"]["properties"]), list(properties))
        arguments = properties["arguments"]
        want(arguments["type"].lower() == "object" and arguments.get("additionalProperties") is not False, arguments)

    await check(f"{title}: exec keeps its parameters, and arguments may have members", body)


CONVERTERS = {"google-genai": google_genai, "openai-agents": openai_agents, "pydantic-ai": pydantic_ai, "langchain": langchain}


async def main(name, version):
    title = f"{name} {version}"
    tool = exec_tool()
    if name in DECODERS:
        await check_decoder(title, DECODERS[name], tool)
    else:
        await check_converter(title, CONVERTERS[name], tool)


asyncio.run(main(*sys.argv[1:]))
finish()
