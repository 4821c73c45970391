import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.client.transport.ServerParameters;
import io.modelcontextprotocol.client.transport.StdioClientTransport;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpServerFeatures.SyncToolSpecification;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import java.net.URI;
import java.time.Duration;
import java.util.Arrays;
import java.util.stream.Collectors;

/**
 * The Java SDK as a client and as a server, for sdks.py.
 *
 * <pre>
 * client REVISION TOOL ARGUMENTS URL
 * client REVISION TOOL ARGUMENTS COMMAND [ARGUMENT...]
 * server
 * </pre>
 *
 * The client prints the names of the tools in one line, then the text of the result. It ignores
 * REVISION; the SDK knows legacy ones only.
 */
class Interop {
    static final McpJsonMapper JSON = McpJsonDefaults.getMapper();
    static final String SCHEMA = """
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}""";

    public static void main(String[] args) {
        if (args[0].equals("server")) {
            serve();
            return;
        }
        var transport = args[4].startsWith("http://") ? http(args[4]) : stdio(Arrays.copyOfRange(args, 4, args.length));
        var timeout = Duration.ofSeconds(60);
        try (var client = McpClient.sync(transport).requestTimeout(timeout).initializationTimeout(timeout).build()) {
            client.initialize();
            System.out.println(client.listTools().tools().stream().map(Tool::name).collect(Collectors.joining(" ")));
            var request = CallToolRequest.builder().name(args[2]).arguments(JSON, args[3]).build();
            for (var content : client.callTool(request).content()) {
                if (content instanceof TextContent text) System.out.println(text.text());
            }
        }
        System.exit(0); // without waiting for the SDK's threads
    }

    static McpClientTransport http(String url) {
        var uri = URI.create(url);
        var base = uri.getScheme() + "://" + uri.getAuthority();
        return HttpClientStreamableHttpTransport.builder(base).endpoint(url.substring(base.length())).build();
    }

    static McpClientTransport stdio(String[] command) {
        var parameters = ServerParameters.builder(command[0]).args(Arrays.copyOfRange(command, 1, command.length)).env(System.getenv()).build();
        return new StdioClientTransport(parameters, JSON);
    }

    static void serve() {
        var tool = Tool.builder("add", JSON, SCHEMA).description("Add two numbers").build();
        var add = SyncToolSpecification.builder().tool(tool).callHandler((exchange, request) -> {
            var a = (Integer) request.arguments().get("a");
            var b = (Integer) request.arguments().get("b");
            return CallToolResult.builder().addTextContent("The sum of " + a + " and " + b + " is " + (a + b) + ".").build();
        }).build();
        McpServer.sync(new StdioServerTransportProvider(JSON)).serverInfo("interop", "1").tools(add).build();
    }
}
