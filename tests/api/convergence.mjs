// convergence URL RUNS SEED: five clients edit one text at random, over connections that drop, delay and so reorder; at the end all
// have the same text, and so has who joins then, from what the server kept.
import { Client, random, sleep } from "../support/session_client.mjs";

const [url, runs, seed] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const CLIENTS = 5;
const EDITS = 12;

async function run(n) {
  const dice = random(seed * 7919 + n);
  const leader = await Client.begin(url, dice);
  const clients = [leader];
  for (let i = 1; i < CLIENTS; i++) clients.push(await Client.join(url, leader.session, `c${i}`, dice));
  const streams = clients.map((c) => c.follow());
  for (let t = 0; clients.some((c) => c.last === null); t++) {
    if (t > 1000) throw new Error("no snapshot came");
    await sleep(10);
  }
  for (let i = 0; i < CLIENTS * EDITS; i++) {
    const c = clients[Math.floor(dice() * CLIENTS)];
    const at = Math.floor(dice() * (c.text.length + 1));
    if (dice() < 0.3 && c.text.length > at) c.text.delete(at, Math.min(c.text.length - at, 1 + Math.floor(dice() * 4)));
    else c.text.insert(at, "abcdefgh".slice(0, 1 + Math.floor(dice() * 6)) + n % 10);
    if (dice() < 0.1) c.drop();
    if (dice() < 0.05) await leader.compact().catch((e) => { if (e.code !== "session-snapshot" && e.code !== "session-rate") throw e; });
    if (dice() < 0.3) await sleep(dice() * 10);
  }
  const whole = () => clients.every((c) => c.pending.length === 0) && new Set(clients.map((c) => c.text.toString())).size === 1;
  for (let t = 0; !whole(); t++) {
    if (t > 3000) throw new Error(`run ${n}: ${JSON.stringify(clients.map((c) => c.text.toString()))}`);
    await sleep(10);
  }
  const late = await Client.join(url, leader.session, "late");
  streams.push(late.follow());
  for (let t = 0; late.text.toString() !== leader.text.toString(); t++) {
    if (t > 1000) throw new Error(`run ${n}: the server has ${late.text}, the clients ${leader.text}`);
    await sleep(10);
  }
  await leader.lead("end");
  for (const c of [...clients, late]) c.stop();
  await Promise.all(streams);
  return clients.reduce((sum, c) => sum + c.opened, 0);
}

let opened = 0;
for (let n = 0; n < runs; n++) opened += await run(n);
console.log(`${runs} runs, ${opened} streams`);
