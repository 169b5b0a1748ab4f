// The TypeScript call of docs/guides/webhooks-api.md: it shows what waits for an
// endpoint.
import type { components, operations } from "./forbear";

type Query = NonNullable<operations["listMessages"]["parameters"]["query"]>;
type Page = components["schemas"]["MessageList"];

async function listMessages(url: string, query: Query): Promise<Page> {
  const search = new URLSearchParams(Object.entries(query).flatMap(([name, value]) => [value].flat().map((v) => [name, String(v)])));
  const response = await fetch(`${url}/v1/messages?${search}`, { headers: { Authorization: `Bearer ${process.env.FORBEAR_API_TOKEN}` } });
  if (!response.ok) {
    const problem: components["schemas"]["Problem"] = await response.json();
    throw new Error(`${problem.title}: ${problem.detail}`);
  }
  return response.json();
}

for (let after = ""; ; ) {
  const page = await listMessages("http://localhost:8080", { endpoint: ["acme"], state: ["waiting", "held"], ...(after && { after }) });
  for (const m of page.messages) console.log(m.id, m.state, m.due);
  if (!(after = page.next)) break;
}
