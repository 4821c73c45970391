//! The Rust SDK as a client and as a server, for sdks.py.
//!
//!     interop client REVISION TOOL ARGUMENTS URL
//!     interop client REVISION TOOL ARGUMENTS COMMAND [ARGUMENT...]
//!     interop server
//!
//! The client prints the names of the tools in one line, then the text of the result.
//! REVISION is 2026-07-28 or legacy.
use std::error::Error;

use rmcp::{
    ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceExt,
    handler::server::wrapper::Parameters,
    model::{CallToolRequestParams, ProtocolVersion},
    tool, tool_router,
    transport::{IntoTransport, StreamableHttpClientTransport, TokioChildProcess, stdio},
};

struct Adder;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Summands {
    a: i64,
    b: i64,
}

#[tool_router(server_handler)]
impl Adder {
    #[tool(description = "Add two numbers")]
    fn add(&self, Parameters(Summands { a, b }): Parameters<Summands>) -> String {
        format!("The sum of {a} and {b} is {}.", a + b)
    }
}

/// converse lists the tools and calls one.
async fn converse<T, E, A>(transport: T, revision: &str, tool: &str, arguments: &str) -> Result<(), Box<dyn Error>>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    let lifecycle = match revision {
        "2026-07-28" => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
        _ => ClientLifecycleMode::Initialize,
    };
    let client = ().serve_with_lifecycle(transport, lifecycle).await?;
    let names: Vec<String> = client.list_all_tools().await?.into_iter().map(|t| t.name.into()).collect();
    println!("{}", names.join(" "));
    let params = CallToolRequestParams::new(tool.to_string()).with_arguments(serde_json::from_str(arguments)?);
    for block in client.call_tool(params).await?.content {
        println!("{}", block.as_text().map_or("", |t| &t.text));
    }
    client.cancel().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "server" {
        Adder.serve(stdio()).await?.waiting().await?;
        return Ok(());
    }
    let [revision, tool, arguments, target] = [2, 3, 4, 5].map(|i| args[i].as_str());
    if target.starts_with("http://") {
        return converse(StreamableHttpClientTransport::from_uri(target), revision, tool, arguments).await;
    }
    let mut command = tokio::process::Command::new(target);
    command.args(&args[6..]);
    converse(TokioChildProcess::new(command)?, revision, tool, arguments).await
}
