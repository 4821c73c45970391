"""A stand-in for the seed's zhipu-web-search: the Python SDK's server behind a bearer token.

    search_server.py PORT TOKEN
"""

import sys

import uvicorn
from mcp.server import MCPServer
from starlette.responses import JSONResponse

port, token = int(sys.argv[1]), sys.argv[2]
server = MCPServer("zhipu")


@server.tool(description="Search the web using Zhipu AI")
def web_search(query: str, num_results: float = 10) -> str:
    lines = [f"{i + 1}. [Title {i + 1}] [https://example.com/{i + 1}] [Snippet]" for i in range(int(num_results))]
    return "\n".join([f"Web search results for '{query}':", *lines])


app = server.streamable_http_app()


async def guarded(scope, receive, send):
    """Refuse what does not carry the token."""
    if scope["type"] == "http" and dict(scope["headers"]).get(b"authorization") != f"Bearer {token}".encode():
        await JSONResponse({"error": "invalid_token"}, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
        return
    await app(scope, receive, send)


uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="warning")
