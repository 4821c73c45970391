package console

import "testing"

// fake replaces mcpx in the page. hold delays the answers to a method until release is
// called; sessions counts the sessions that were opened.
const fake = `
const { Client, Canceled } = await import('/assets/mcp.js');
const sent = []; // method or id of each message, with the session it was sent in
const held = new Map();
let sessions = 0;
let forgotten = 'none';
let broken = 'none'; // the method whose messages do not arrive
let streams = 0; // that stand
const hold = (method) => held.set(method, []);
const release = (method) => { const all = held.get(method); held.delete(method); all.forEach((go) => go()); };
const until = async (is) => { while (!is()) await new Promise((r) => setTimeout(r, 1)); };
const settled = () => new Promise((r) => setTimeout(r)); // what was let go has been taken
const answer = (status, body, headers) => new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json', ...headers } });
window.fetch = async (url, { method, body, headers, signal }) => {
	const session = headers['Mcp-Session-Id'] ?? '';
	if (!method) {
		streams++;
		signal.addEventListener('abort', () => streams--);
		return new Response(new ReadableStream(), { headers: { 'Content-Type': 'text/event-stream' } });
	}
	const m = JSON.parse(body ?? '{}');
	const name = method === 'DELETE' ? method : m.method ?? 'answer to ' + m.id;
	sent.push(name + ' ' + session);
	if (name === broken) throw new TypeError('Failed to fetch');
	const reply = name === 'initialize' ? answer(200, { id: m.id, result: { protocolVersion: '2025-11-25' } }, { 'Mcp-Session-Id': 's' + ++sessions })
		: session === forgotten ? answer(404, { error: { message: 'there is no such session' } })
		: name === 'ask' ? new Response('data: {"id":"mcpx-1","method":"elicitation/create"}\n\n', { headers: { 'Content-Type': 'text/event-stream' } })
		: m.id === undefined || !m.method ? new Response(null, { status: 202 })
		: answer(200, { id: m.id, result: { method: m.method } });
	if (held.has(name)) await new Promise((go) => held.get(name).push(go));
	return reply;
};
const asked = [];
const client = new Client('/mcp', {
	request: (method, params, { signal }) => new Promise((resolve, reject) => {
		signal.addEventListener('abort', () => reject(new Error('not asked any more')));
		asked.push(resolve);
	}),
	notification() {}, opened() {}, listening() {},
});
const outcome = (promise) => promise.then((r) => r.method, (e) => e.message);
`

// TestClientSessions runs the page's MCP client against the fake. Each script returns
// what happened.
func TestClientSessions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, script, want string }{
		{"requests that lose their session together open one new session", `
		await client.open();
		forgotten = 's1';
		for (const m of ['early', 'late', 'last']) hold(m);
		const all = ['early', 'late', 'last'].map((m) => outcome(client.request(m)));
		hold('initialize');
		release('early');
		await until(() => held.get('initialize').length === 1);
		release('late'); // while the new session opens
		await settled();
		release('initialize');
		all.splice(0, 2, await all[0], await all[1]);
		release('last'); // when it is there
		return [...await Promise.all(all), sessions].join(' ');`, "early late last 2"},
		{"a request during initialize does not take its answer", `
		hold('initialize');
		const opened = client.open().then(() => 'opened', (e) => e.message);
		await until(() => held.get('initialize').length === 1);
		const other = outcome(client.request('other'));
		release('initialize');
		return [await opened, await other].join(' ');`, "opened other"},
		{"a call canceled while its session opens is not sent", `
		const stop = new AbortController();
		stop.abort();
		const first = await outcome(client.request('never', {}, { signal: stop.signal }));
		await client.open();
		forgotten = 's1';
		hold('initialize');
		const again = new AbortController();
		const call = outcome(client.request('once', {}, { signal: again.signal }));
		await until(() => held.get('initialize').length === 1);
		again.abort();
		const opening = client.open();
		release('initialize');
		await opening;
		await client.request('after');
		return [first, await call, sent.filter((s) => s.startsWith('once') || s.startsWith('never'))].join(', ');`, "Canceled, Canceled, once s1"},
		{"a question of a lost session is not answered in the next", `
		await client.open();
		outcome(client.request('ask'));
		await until(() => asked.length === 1);
		forgotten = 's1';
		await client.request('other');
		outcome(client.request('ask'));
		await until(() => asked.length === 2);
		asked[0]({ action: 'accept' });
		await settled();
		const before = sent.filter((s) => s.startsWith('answer')).length;
		asked[1]({ action: 'decline' });
		await settled();
		return [before, sent.filter((s) => s.startsWith('answer'))].join(' ');`, "0 answer to mcpx-1 s2"},
		{"nothing is sent between two sessions", `
		await client.open();
		forgotten = 's1';
		hold('initialize');
		const stop = new AbortController();
		const first = outcome(client.request('first', {}, { signal: stop.signal }));
		await until(() => held.get('initialize').length === 1);
		const second = outcome(client.request('second'));
		stop.abort();
		await settled();
		release('initialize');
		return [await first, await second, ...sent.filter((s) => s.endsWith(' ') && s !== 'initialize ')].join(', ');`, "Canceled, second"},
		{"a page shown again while its session opens has one stream", `
		hold('notifications/initialized');
		const opened = client.open();
		await until(() => held.get('notifications/initialized').length === 1);
		client.resume();
		release('notifications/initialized');
		await opened;
		return String(streams);`, "1"},
		{"a session with a broken handshake is ended", `
		broken = 'notifications/initialized';
		const first = await client.open().catch((e) => e.message);
		broken = 'none';
		const isOpen = client.isOpen;
		await client.open();
		return [first, isOpen, ...sent].join(', ');`, "Failed to fetch, false, initialize , notifications/initialized s1, DELETE s1, initialize , notifications/initialized s2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := full(t).serve(t).open(t, "health")
			p.forgive("favicon")
			if got := value[string](p, `(async () => {`+fake+c.script+`})()`); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
