// sessions URL MODE: how long until the others have what one typed.
//
//   class     60 people in one session; one types 5 characters a second for 20 s, and everyone moves their caret
//   many      200 sessions of 3; in each one types a character every 2 s, for 20 s
//   crowd ID  57 people join the session, are there and move their carets, until the input ends
//
// Prints the times from the key until the others have it.  In a class, 4 of the others merge it into their text; the rest, and
// those of many sessions, only take it, since one process here has the work of 60 or 600 machines.
import { Client, Reader, sleep } from "../support/session_client.mjs";

const [url, mode, id] = process.argv.slice(2);
const WHOLE = mode === "class" ? 4 : 0; // of the others in a session
const SECONDS = 20;
const q = (list, p) => list.sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * p))]?.toFixed(0);

async function room(size) {
  const leader = await Client.begin(url);
  const people = [leader];
  for (let i = 1; i < size; i++) people.push(await (i <= WHOLE ? Client : Reader).join(url, leader.session, `p${i}`));
  for (const p of people) void p.follow();
  while (people.some((p) => p.last === null)) await sleep(20);
  return people;
}

/** Everyone moves their caret each second, until isOver. */
async function moveCarets(people, isOver) {
  await Promise.all(people.map(async (p, i) => {
    await sleep(i * 16);
    while (!isOver()) {
      await p.show({ head: i, line: Math.floor(performance.now()) }).catch((e) => { if (e.code !== "session-rate") throw e; });
      await sleep(1000);
    }
  }));
}

if (mode === "crowd") {
  const people = await Promise.all(Array.from({ length: 57 }, (_, i) => Reader.join(url, id, `p${i}`)));
  for (const p of people) p.follow();
  let isOver = false;
  process.stdin.on("end", () => (isOver = true)).resume();
  await moveCarets(people, () => isOver);
  process.exit(0);
}

/** Types for a while; the times until each of the others had each key. */
async function typing(people, everyMs) {
  const [writer, ...others] = people;
  const times = [];
  const sent = [];
  let heard = 0;
  for (const o of others)
    o.onUpdate = (person, seq) => {
      if (person === o.person || sent[seq] === undefined) return;
      times.push(performance.now() - sent[seq]);
      heard++;
    };
  const end = performance.now() + SECONDS * 1000;
  let n = writer.last;
  while (performance.now() < end) {
    sent[++n] = performance.now();
    writer.text.insert(writer.text.length, "x");
    await sleep(everyMs);
    while (writer.pending.length > 0) await sleep(5); // each key is an update of its own
  }
  const expected = (n - (n - Object.keys(sent).length)) * others.length;
  for (let t = 0; heard < expected && t < 1000; t++) await sleep(10);
  if (heard < expected) throw new Error(`${heard} of ${expected} came`);
  return times;
}

const began = performance.now();
const rooms = [];
if (mode === "class") rooms.push(await room(60));
else for (let i = 0; i < 200; i++) rooms.push(await room(3));
const built = performance.now() - began;
let isTyping = true;
const carets = mode === "class" ? moveCarets(rooms[0], () => !isTyping) : null;
const times = (await Promise.all(rooms.map((r, i) => sleep(i * 10).then(() => typing(r, mode === "class" ? 200 : 2000))))).flat();
isTyping = false;
await carets;
console.log(`${mode}: ${times.length} keys heard, median ${q(times, 0.5)} ms, p95 ${q(times, 0.95)} ms, slowest ${q(times, 1)} ms; opened in ${(built / 1000).toFixed(1)} s`);
for (const p of rooms.flat()) p.stop();
process.exit(0);
