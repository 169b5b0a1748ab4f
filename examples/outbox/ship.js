// Ships an order and sends its message in one transaction, with pg: see docs/guides/outbox-postgresql.md.
const { Client } = require("pg");

(async () => {
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  try {
    await client.query("BEGIN");
    await client.query("UPDATE orders SET shipped = 1 WHERE id = $1", [22]);
    await client.query("SELECT forbear_send('order.shipped', $1::text, endpoint => $2, message_id => $3)", [
      JSON.stringify({ order: 22, note: 'a "quoted" word' }), "acme", "order-22-shipped",
    ]);
    await client.query("COMMIT");
  } finally {
    await client.end(); // without a commit: rolled back
  }
})();
