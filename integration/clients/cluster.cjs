// ioredis' Cluster in a cluster whose nodes fail. See clients_test.go for what it reads and prints.
const assert = require("node:assert/strict");
const { Cluster, Command } = require("ioredis");
const calculateSlot = require("cluster-key-slot");

const [prefix, addresses, expected] = process.argv.slice(2);
const r = new Cluster(
  addresses.split(",").map((address) => {
    const at = address.lastIndexOf(":");
    return { host: address.slice(0, at), port: Number(address.slice(at + 1)) };
  }),
  // by default, ioredis notices a failed node only after five seconds, and waits for ever for one that does not answer
  { slotsRefreshInterval: 1000, redisOptions: { commandTimeout: 3000, connectTimeout: 1000 } },
);
r.on("error", () => {}); // calls report their own errors
const key = (i) => `${prefix}:${i}`;

// rl sends a command that ioredis does not know. With the slot it reaches the right node without a MOVED.
function rl(name, key, ...args) {
  const command = new Command(name, [key, ...args]);
  command.slot = calculateSlot(key);
  r.sendCommand(command);
  return command.promise;
}

async function first() {
  const numbers = [...Array(100).keys()];
  for (const i of numbers) {
    assert.equal(await r.set(key(i), i), "OK");
    assert.equal(await r.get(key(i)), String(i));
  }
  // calls on any keys, sent at once: a pipeline of ioredis needs keys of one node, such as those with one tag
  assert.deepEqual(await Promise.all(numbers.map((i) => r.get(key(i)))), numbers.map(String));
  const tag = `{${prefix}}`;
  const pipe = r.pipeline();
  for (const i of numbers) pipe.set(`${tag}${i}`, i);
  for (const i of numbers) pipe.call("RL.TOKEN", `${tag}rl`, 50, 1, "1h");
  const replies = (await pipe.exec()).map(([error, reply]) => error || reply);
  assert.deepEqual(replies.slice(0, 100), numbers.map(() => "OK"));
  assert.deepEqual(replies.slice(100).map((reply) => reply[0]), numbers.map((i) => (i < 50 ? 1 : 0)));
  for (let i = 0; i < 20; i++) assert.equal((await r.call("RL.TOKEN", key(1000 + i), 10, 1, "1h"))[0], 1);
  assert.deepEqual((await rl("RL.SLIDE", key(2000), 2, "1h")).slice(0, 3), [1, 2, 1]);
  const both = [`${tag}a`, "SLIDE", 1, "1h", `${tag}b`, "FIXED", 1, "1h"];
  assert.equal((await r.call("RL.ALL", ...both))[0], 1);
  assert.equal((await r.call("RL.ALL", ...both))[0], 0);
  await assert.rejects(r.call("RL.ALL", key(1), "SLIDE", 1, "1h", key(2), "SLIDE", 1, "1h"), /CROSSSLOT/);
  assert.deepEqual(await r.multi().hset(`${tag}h`, "f", "v").hgetall(`${tag}h`).exec(), [[null, 1], [null, { f: "v" }]]);
  assert.equal(await r.zadd(`${tag}z`, 1, "m"), 1);
  assert.equal(await r.bzpopmin(`${tag}none`, 0.01), null);
}

// onAll makes a call on each node that leads slots.
const onAll = (call) => Promise.all(r.nodes("master").map(call));
const size = async () => (await onAll((node) => node.dbsize())).reduce((sum, n) => sum + n, 0);
const pause = () => new Promise((resolve) => setTimeout(resolve, 10));

async function scan(node) {
  const names = [];
  for await (const some of node.scanStream({ count: 10 })) names.push(...some);
  return names;
}

// whole finds all keys by calls on all nodes: each answers for the slots that it leads.
async function whole() {
  await onAll((node) => node.flushall());
  const names = [...Array(100).keys()].map(key).sort();
  for (const name of names) await r.set(name, "v");
  assert.equal(await size(), 100);
  assert.deepEqual((await onAll((node) => node.keys("*"))).flat().sort(), names);
  assert.deepEqual((await onAll(scan)).flat().sort(), names);
  assert.equal(r.nodes("slave").length, 0);
  await onAll((node) => node.flushall());
  assert.equal(await size(), 0);
}

// again repeats what fails while groups change their leaders.
async function again(what) {
  for (const begun = performance.now(); ; await pause()) {
    try {
      return await what();
    } catch (error) {
      if (performance.now() - begun > 60000) throw error;
    }
  }
}

const limit = (k) => 10 + 50 * k;

async function calls(ended) {
  const admitted = Array(20).fill(0);
  const errors = {};
  let longest = 0;
  let done = 0;
  while (!ended()) {
    let right = 0;
    for (let k = 0; k < 20; k++) {
      const begun = performance.now();
      try {
        if ((await rl("RL.SLIDE", key(3000 + k), limit(k), "1h"))[0] === 1) admitted[k]++;
        done++;
        right++;
      } catch (error) {
        const kind = /^[A-Z]+ /.test(error.message) ? error.message.split(" ")[0] : error.name;
        errors[kind] = (errors[kind] || 0) + 1;
      }
      longest = Math.max(longest, performance.now() - begun);
    }
    if (right < 20) continue;
    console.log("progress", Math.round(longest));
    longest = 0;
  }
  const held = [];
  for (let k = 0; k < 20; k++) held.push(await again(() => r.zcard(key(3000 + k))));
  await again(async () => assert.equal(await size(), Number(expected)));
  return { admitted, held, errors, calls: done, keys: await again(size) };
}

(async () => {
  await first();
  await again(whole);
  console.log("ready");
  let ended = false;
  process.stdin.on("end", () => (ended = true)).resume();
  await new Promise((resolve) => process.stdin.once("data", resolve));
  console.log(JSON.stringify(await calls(() => ended)));
  r.disconnect();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
