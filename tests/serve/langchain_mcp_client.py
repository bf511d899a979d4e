"""Call tools of MCP servers by langchain-mcp-adapters, in an environment of its own (langchain_mcp.txt).

The first line of standard input holds the connections of `MultiServerMCPClient`, and each further line a call. Each
answer is a line of JSON: first the names of the tools by connection, then the result of each call.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


def answer(value: object) -> None:
    """Print a line of JSON."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


async def main() -> None:
    """Connect, and make the calls of standard input."""
    connections = json.loads(sys.stdin.readline())
    client = MultiServerMCPClient(connections)
    async with AsyncExitStack() as stack:
        tools = {}
        for name, connection in connections.items():
            if connection["transport"] == "stdio":  # get_tools() would start a process for each call
                loaded = await load_mcp_tools(await stack.enter_async_context(client.session(name)))
            else:
                loaded = await client.get_tools(server_name=name)
            tools[name] = {tool.name: tool for tool in loaded}
        answer({name: sorted(loaded) for name, loaded in tools.items()})
        for line in sys.stdin:
            call = json.loads(line)
            tool = {"type": "tool_call", "id": "1", "name": call["tool"], "args": call["arguments"]}
            message = await tools[call["connection"]][call["tool"]].ainvoke(tool)
            content = (message.artifact or {}).get("structured_content")
            answer({"text": message.content[0]["text"], "content": content, "status": message.status})


asyncio.run(main())
