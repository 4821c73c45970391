// A browser for tests: it opens an address, signs in as "alice" and agrees to everything.
// It knows redirects, cookies and forms. $BROWSER of the part "signin".
//
//   oidc_browser.mjs ADDRESS
const cookies = new Map();

// open follows redirects and returns the last page.
async function open(address, form) {
  for (let hops = 0; hops < 20; hops++) {
    const response = await fetch(address, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form && { method: "POST", body: form }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      cookies.set(name, value);
    }
    const next = response.headers.get("location");
    if (!next) return { address, text: await response.text() };
    address = new URL(next, address).href;
    form = undefined;
  }
  throw new Error("too many redirects");
}

// submit fills the first form of a page.
function submit({ address, text }) {
  const [, attributes, content] = /<form([^>]*)>([\s\S]*?)<\/form>/.exec(text) ?? [];
  if (content === undefined) return undefined;
  const form = new URLSearchParams();
  for (const [, input] of content.matchAll(/<input([^>]*)>/g)) {
    const name = /name="([^"]*)"/.exec(input)?.[1];
    if (name) form.set(name, /value="([^"]*)"/.exec(input)?.[1] ?? "alice");
  }
  return open(new URL(/action="([^"]*)"/.exec(attributes)[1], address).href, form);
}

let page = await open(process.argv.at(-1));
for (let forms = 0; forms < 10; forms++) {
  const next = submit(page);
  if (!next) break;
  page = await next;
}
console.error(page.address, page.text.slice(0, 200));
