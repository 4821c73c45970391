// The servers of the part samebytes, and one call of each. Each call needs no key and
// no network but loopback, changes nothing, and has the same result every time.
//
//   [package, program, arguments of the program, tool, arguments of the tool, env]
//
// A package is an npm one as NAME@VERSION, or a PyPI one as NAME==VERSION. Those that
// do not work with the second generation of the Python SDK have " mcp<2" behind it.
export const table = ({ folder, repository, page }) => [
  ["@modelcontextprotocol/server-everything@2026.8.31", "mcp-server-everything", ["stdio"], "get-structured-content", { location: "Chicago" }],
  ["@modelcontextprotocol/server-filesystem@2026.8.31", "mcp-server-filesystem", [folder], "read_text_file", { path: `${folder}/note.md` }],
  ["@modelcontextprotocol/server-memory@2026.8.31", "mcp-server-memory", [], "read_graph", {}, { MEMORY_FILE_PATH: `${folder}/memory.jsonl` }],
  ["@modelcontextprotocol/server-sequential-thinking@2026.8.31", "mcp-server-sequential-thinking", [], "sequentialthinking", { thought: "so", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }],
  ["@modelcontextprotocol/server-pdf@2.0.4", "mcp-pdf-server", ["--stdio"], "list_pdfs", {}],
  ["@eslint/mcp@0.3.13", "mcp", [], "lint-files", { filePaths: [`${folder}/code.js`] }],
  ["@cyanheads/git-mcp-server@2.15.3", "git-mcp-server", [], "git_log", { path: repository, maxCount: 2 }],
  ["@bitbonsai/mcpvault@0.16.0", "mcpvault", [folder], "read_note", { path: "note.md" }],
  ["mcp-server-code-runner@0.1.8", "mcp-server-code-runner", [], "run-code", { languageId: "javascript", code: "console.log(9007199254740993n, 'hé')" }],
  ["@tokenizin/mcp-npx-fetch@1.0.0", "mcp-npx-fetch", [], "fetch_html", { url: page }],
  ["@mcp-get-community/server-curl@0.1.0", "server-curl", [], "curl", { url: page }],
  ["@kazuph/mcp-fetch@1.6.3", "mcp-fetch", [], "imageFetch", { url: page }],
  ["@playwright/mcp@0.0.83", "playwright-mcp", ["--headless"], "browser_close", {}],
  ["chrome-devtools-mcp@1.11.0", "chrome-devtools-mcp", ["--executablePath", "/no/such/browser"], "list_pages", {}],
  ["mongodb-mcp-server@3.0.4", "mongodb-mcp-server", ["--telemetry", "disabled"], "list-connections", {}],
  ["mcp-server-kubernetes@4.1.7", "mcp-server-kubernetes", [], "ping", {}],
  ["@hubspot/mcp-server@0.4.0", "mcp-hubspot", [], "hubspot-generate-feedback-link", {}, { PRIVATE_APP_ACCESS_TOKEN: "none" }],
  ["@circleci/mcp-server-circleci@0.20.0", "mcp-server-circleci", [], "find_underused_resource_classes", { params: { csvFilePath: `${folder}/none.csv` } }, { CIRCLECI_TOKEN: "none" }],
  ["@kubb/mcp@4.39.2", "kubb-mcp", [], "generate", { config: `${folder}/none.ts` }],
  ["mcp-hello-world@1.1.2", "mcp-hello-world", [], "add", { a: 0.1, b: 0.2 }],
  ["mcp-server-time==2026.10.19", "mcp-server-time", ["--local-timezone", "UTC"], "convert_time", { source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" }],
  ["mcp-server-git==2026.10.19", "mcp-server-git", [], "git_log", { repo_path: repository, max_count: 2 }],
  ["mcp-server-fetch==2026.10.24", "mcp-server-fetch", ["--ignore-robots-txt", "--allow-private-ips"], "fetch", { url: page, raw: true }],
  ["mcp-server-motherduck==1.1.0", "mcp-server-motherduck", ["--db-path", ":memory:", "--read-write"], "execute_query", { sql: "select 9007199254740993 as big, 1.10 as price, 'hé' as text, null as nothing" }],
  ["mcp-alchemy==2026.10.15.202659", "mcp-alchemy", [], "execute_query", { query: "select 9007199254740993 as big, 1.10 as price, 'hé' as text, null as nothing" }, { DB_URL: `sqlite:///${folder}/alchemy.db` }],
  ["excel-mcp-server==2.2.2", "excel-mcp-server", ["stdio"], "describe_workbook", { path: `${folder}/none.xlsx` }],
  ["markitdown-mcp==0.0.1a7", "markitdown-mcp", [], "convert_to_markdown", { uri: `file://${folder}/page.html` }],
  ["mcp-server-calculator==0.2.1", "mcp-server-calculator", [], "calculate", { expression: "2 ** 100 / 3" }],
  ["mcp-pandoc==0.11.1", "mcp-pandoc", [], "convert-contents", { contents: "# Title\n\nsome *words*", input_format: "markdown", output_format: "html" }],
  ["office-word-mcp-server==1.1.11", "word_mcp_server", [], "get_document_text", { filename: `${folder}/none.docx` }],
  ["mcp-shell-server==1.1.14", "mcp-shell-server", [], "shell_execute", { command: ["cat", "note.md"], directory: folder }, { ALLOW_COMMANDS: "cat" }],
  ["arxiv-mcp-server==0.8.2", "arxiv-mcp-server", ["--storage-path", `${folder}/papers`], "list_watches", {}],
  ["duckduckgo-mcp-server==0.7.0", "duckduckgo-mcp-server", [], "expand_link", { token: "none" }],
  ["mcp-simple-timeserver==3.3.2", "mcp-simple-timeserver", [], "calculate_time_distance", { from_date: "2026-01-01", to_date: "2026-03-01", unit: "days", timezone: "UTC" }],
  ["mcp-text-editor==1.0.2 mcp<2", "mcp-text-editor", [], "get_text_file_contents", { files: [{ file_path: `${folder}/note.md`, ranges: [{ start: 1 }] }] }],
  ["mcp-server-sqlite==2025.4.25 mcp<2", "mcp-server-sqlite", ["--db-path", `${folder}/lite.db`], "read_query", { query: "select 9007199254740993 as big, 1.10 as price, 'hé' as text, null as nothing" }],
  ["cli-mcp-server==0.2.5 mcp<2", "cli-mcp-server", [], "show_security_rules", {}, { ALLOWED_DIR: folder }],
  ["mcp-server-tree-sitter==0.7.0 mcp<2", "mcp-server-tree-sitter", [], "list_languages", {}],
  ["office-powerpoint-mcp-server==2.0.7 mcp<2", "ppt_mcp_server", [], "list_presentations", {}],
];
