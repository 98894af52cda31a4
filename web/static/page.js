// The page of rlserver: the last hour from /api/history, then an event a second from /api/events.

import * as text from "./format.js";
import { $, afterClose, at, cell, cells, element, facts, keyed, makeRow, meter, show } from "./elements.js";
import { openPolicy, showCustomers, tick } from "./customers.js";
import { Plot, spark } from "./plot.js";

// The last hour.

// Series are in Maps: a policy may be called like a property of every object, such as constructor.
let past = { step: 5000, points: 720, times: [], figures: new Map(), commands: new Map(), policies: new Map() };
let view = null;
let sums = null; // of the views since the last point

const groups = ["figures", "commands", "policies"];

// pairs returns what a view adds to each group of series.
function pairs(v) {
  const decided = (list) => new Map(list.map((e) => [e.name, [e.admittedRate, e.deniedRate]]));
  return {
    figures: new Map([
      ["decisions", [v.rates.admitted, v.rates.denied]], ["calls", [v.rates.calls, v.rates.errors]],
      ["clients", [v.clients.open, v.clients.waiting]], ["memory", [v.memory.used, v.keys.total]],
      ["latency", [v.latency.p50, v.latency.p99]],
    ]),
    commands: decided(v.commands), policies: decided(v.policies),
  };
}

// remember adds a view to the current point, and ends the point when its time is over.
function remember(v) {
  sums ??= { n: 0, figures: new Map(), commands: new Map(), policies: new Map() };
  sums.n++;
  const now = pairs(v);
  for (const group of groups) {
    for (const [name, values] of now[group]) {
      if (!sums[group].has(name)) sums[group].set(name, [0, 0]);
      values.forEach((value, i) => { sums[group].get(name)[i] += value; });
    }
  }
  if (past.times.length && v.time - past.times.at(-1) < past.step - 500) return false;
  past.times.push(v.time);
  for (const group of groups) {
    for (const [name, sum] of sums[group]) {
      if (!past[group].has(name) && sum[0] + sum[1] > 0) past[group].set(name, [[], []]);
    }
    for (const [name, lists] of past[group]) {
      const sum = sums[group].get(name) ?? [0, 0];
      lists.forEach((list, i) => {
        list.push(sum[i] / sums.n);
        if (list.length > past.points) list.shift();
      });
    }
  }
  if (past.times.length > past.points) past.times.shift();
  sums = null;
  return true;
}

// Plots.

const pairText = (first, second, write) => (time, a, b) =>
  `${text.moment(time)}  ${write(a)} ${first}` + (second ? `, ${write(b)} ${second}` : "");

function plot(name, options) {
  return new Plot($("plot-" + name), $(name + "-at"), { clock: text.clock, ...options });
}

const plots = {
  decisions: plot("decisions", {
    stacked: true, classes: ["", "line-denied"], format: text.rate, describe: pairText("admitted", "denied", text.rate),
  }),
  latency: plot("latency", {
    classes: ["", "line-second"], format: (us) => (us ? text.took(us) : "0"), least: 10, peaks: true,
    describe: pairText("median", "p99", text.took),
  }),
  calls: plot("calls", {
    classes: ["", "line-denied"], format: text.rate, describe: pairText("calls", "errors", text.rate),
  }),
  clients: plot("clients", {
    classes: ["", "line-second"], format: text.rate, describe: pairText("open", "waiting", text.rate),
  }),
  memory: plot("memory", {
    classes: ["", ""], format: text.size, bytes: true, bound: () => view?.memory.max ?? 0,
    describe: (time, bytes, keys) => `${text.moment(time)}  ${text.size(bytes)}, ${text.count(keys)} keys`,
  }),
};
plots.memory.options.classes[1] = null; // the number of keys has no scale of its own

function drawPast() {
  for (const name in plots) plots[name].set(past.times, past.figures.get(name));
}

// Figures.

function showFigures(v) {
  show("version", v.version);
  show("uptime", text.span(v.uptime));
  $("uptime").parentElement.hidden = false;
  $("status").dataset.level = v.status.level;
  const status = $("status").querySelector("span");
  if (status.textContent !== v.status.text) status.textContent = v.status.text;

  show("admitted-rate", text.rate(v.rates.admitted));
  show("denied-rate", text.rate(v.rates.denied));
  show("admitted-total", text.count(v.totals.admitted));
  show("denied-total", text.count(v.totals.denied));
  show("denied-share", text.percent(v.totals.denied, v.totals.admitted + v.totals.denied));
  show("call-rate", text.rate(v.rates.calls));
  show("calls-total", text.count(v.totals.calls));
  show("errors-total", text.count(v.totals.errors));
  const [p99, unit] = v.latency.p99 > 0 ? text.latency(v.latency.p99) : ["–", ""];
  show("p99", p99);
  show("p99-unit", unit);
  show("p50", text.took(v.latency.p50));
  show("clients", text.count(v.clients.open));
  show("clients-max", text.count(v.clients.max));
  show("waiting", text.count(v.clients.waiting));
  const [memory, memoryUnit] = text.bytes(v.memory.used);
  show("memory", memory);
  show("memory-unit", memoryUnit);
  const bounded = v.memory.keys + v.memory.overhead;
  show("memory-sub", v.memory.max
    ? `${text.percent(bounded, v.memory.max)} of ${text.size(v.memory.max)}` : "no limit: maxmemory is 0");
  meter($("memory-meter"), bounded, v.memory.max);
  $("memory-meter").hidden = !v.memory.max;
}

const quiet = (n) => (n > 0 ? "" : "zero");

function showCommands(v, newPoint) {
  const limiters = v.commands.filter((c) => c.admitted + c.denied > 0);
  const others = v.commands.filter((c) => c.admitted + c.denied === 0).slice(0, 12);
  $("no-commands").hidden = v.commands.length > 0;
  $("commands").hidden = v.commands.length === 0;
  keyed($("commands").tBodies[0], [...limiters, ...others], (c) => c.name,
    (c) => makeRow(c.name.toUpperCase(), [["spark", "spark"], ["admitted"], ["denied"], ["calls"], ["errors"], ["p50"], ["p99"]]),
    (row, c) => {
      const decides = c.admitted + c.denied > 0;
      row.dataset.admitted = c.admitted;
      row.dataset.denied = c.denied;
      cell(row, "admitted", decides ? text.rate(c.admittedRate) : "", quiet(c.admittedRate));
      cell(row, "denied", decides ? text.rate(c.deniedRate) : "", c.deniedRate > 0 ? "hot" : "zero");
      cell(row, "calls", text.rate(c.callRate), quiet(c.callRate));
      cell(row, "errors", text.count(c.errors), c.errors > 0 ? "warn" : "zero");
      cell(row, "p50", text.took(c.p50));
      cell(row, "p99", text.took(c.p99));
      drawSpark(row, past.commands.get(c.name), newPoint, false);
    });
}

function drawSpark(row, series, newPoint, shadow) {
  const target = cells(row).spark;
  if (newPoint || row.dataset.mode !== String(shadow)) {
    target.replaceChildren(...(series ? [spark(series, past.times.length, shadow)] : []));
    row.dataset.mode = shadow;
  }
}

function showPolicies(v, newPoint) {
  $("no-policies").hidden = v.policies.length > 0;
  $("policies").hidden = v.policies.length === 0;
  $("omitted").hidden = v.omitted === 0;
  show("omitted", `${text.count(v.omitted)} more policies are not shown: these have the most decisions per second.`);
  keyed($("policies").tBodies[0], v.policies, (p) => p.name,
    (p) => {
      const row = makeRow(p.name, [["limit", "text"], ["spark", "spark"], ["admits"], ["denies"], ["admitted"], ["denied"], ["share", "split"]]);
      const name = element("button", { type: "button", class: "link" }, p.name);
      name.addEventListener("click", () => openPolicy(row.item));
      row.firstChild.replaceChildren(name);
      return row;
    },
    (row, p) => {
      row.item = p;
      row.classList.toggle("shadow", p.shadow);
      row.dataset.admitted = p.admitted;
      row.dataset.denied = p.denied;
      const limit = p.definition.replace(/ SHADOW$/, "");
      cell(row, "limit", limit);
      const name = cells(row).name;
      name.dataset.limit = limit;
      if (p.shadow !== (name.lastChild.className === "badge")) {
        if (p.shadow) name.append(element("b", { class: "badge" }, "SHADOW"));
        else name.lastChild.remove();
      }
      cell(row, "admits", text.rate(p.admittedRate), quiet(p.admittedRate));
      cell(row, "denies", text.rate(p.deniedRate), p.deniedRate > 0 ? "hot" : "zero");
      cell(row, "admitted", text.count(p.admitted), quiet(p.admitted));
      cell(row, "denied", (p.shadow && p.denied ? "would deny " : "") + text.count(p.denied), quiet(p.denied));
      const share = cells(row).share;
      if (!share.firstChild) share.append(element("span", { class: "meter" }, element("i")), element("span"));
      share.firstChild.firstChild.style.width = (p.denied ? (100 * p.denied) / (p.admitted + p.denied) : 0) + "%";
      share.lastChild.textContent = text.percent(p.denied, p.admitted + p.denied);
      drawSpark(row, past.policies.get(p.name), newPoint, p.shadow);
    });
}

function showDenied(v) {
  const most = v.denied[0]?.count ?? 0;
  $("no-denied").hidden = v.denied.length > 0;
  $("more").hidden = v.denied.length <= 10;
  show("more", $("denied").classList.contains("all") ? "Show fewer" : `Show all ${v.denied.length}`);
  keyed($("denied"), v.denied, (k) => k.db + " " + k.id,
    (k) => {
      const row = element("li", {}, element("button", { type: "button" },
        element("span", { class: "name" }), element("span", { class: "count" }),
        element("span", { class: "rule" }), element("span", { class: "meter" }, element("i"))));
      row.firstChild.addEventListener("click", () => openKey(row.item));
      return row;
    },
    (row, k) => {
      row.item = k;
      const [name, denials, rule, bar] = row.firstChild.children;
      name.textContent = k.name;
      denials.textContent = text.count(k.count);
      rule.textContent = (k.rule || "INCREX") + (k.db ? `, database ${k.db}` : "");
      bar.firstChild.style.width = (100 * k.count) / most + "%";
      row.firstChild.setAttribute("aria-label", `${k.name}, denied ${text.count(k.count)} times by ${rule.textContent}`);
    });
}

$("more").addEventListener("click", () => {
  $("denied").classList.toggle("all");
  if (view) showDenied(view);
});

// The cluster: its nodes and groups.

function showCluster(c) {
  $("cluster").hidden = !c;
  if (!c) return;
  const up = c.nodes.filter((n) => n.up).length;
  show("cluster-note", c.nodes.length
    ? `${up} of ${c.nodes.length} nodes are up; this one, ${c.name}, leads ${c.led} of ${c.total} groups. Keys, policies and memory are those of this node, single ids those of all.`
    : "The cluster has not been formed yet.");
  keyed($("nodes").tBodies[0], c.nodes, (n) => n.name,
    (n) => makeRow(n.name, [["state", "text"], ["leads", "split"], ["replicas"], ["heard"], ["address", "text"], ["version", "text"]]),
    (row, n) => {
      row.dataset.leads = n.leads;
      cell(row, "state", (n.me ? "this node" : n.up ? "up" : "not heard") + (n.leaving ? ", leaving" : ""), n.up ? n.leaving ? "warn" : "" : "bad");
      const leads = cells(row).leads;
      if (!leads.firstChild) leads.append(element("span", { class: "meter" }, element("i")), element("span"));
      leads.firstChild.firstChild.style.width = (c.total ? (100 * n.leads) / c.total : 0) + "%";
      leads.lastChild.textContent = text.count(n.leads);
      cell(row, "replicas", text.count(n.replicas));
      cell(row, "heard", n.me ? "–" : n.heard < 0 ? "never" : text.duration(n.heard) + " ago", n.up ? "zero" : "bad");
      cell(row, "address", n.address);
      cell(row, "version", n.version, n.version === view.version ? "zero" : "warn");
    });
  keyed($("groups").tBodies[0], c.groups, (g) => String(g.number),
    (g) => makeRow(`${g.number}`, [["leader", "text"], ["followers", "text"], ["role", "text"], ["lag"], ["entries"], ["committed"], ["term"]]),
    (row, g) => {
      const here = g.role !== "none";
      row.dataset.leader = g.leader;
      cells(row).name.title = `slots ${g.first} to ${g.last}`;
      cell(row, "leader", g.leader || "none", g.leader ? "" : "bad");
      cell(row, "followers", g.replicas.filter((n) => n !== g.leader).join(", "), "zero");
      cell(row, "role", here ? g.role : "–", g.role === "broken" ? "bad" : g.role === "candidate" ? "warn" : g.role === "leader" ? "leads" : "zero");
      cell(row, "lag", here ? text.duration(g.lag) : "–", g.lag > 1000 ? "warn" : "zero");
      cell(row, "entries", here ? text.count(g.lagEntries) : "–", quiet(g.lagEntries));
      cell(row, "committed", here ? text.count(g.committed) : "–", "zero");
      cell(row, "term", here ? text.count(g.term) : "–", "zero");
    });
  $("cluster-omitted").hidden = c.omitted === 0;
  show("cluster-omitted", `${text.count(c.omitted)} more groups are not shown: those with problems and those that this node leads come first.`);
  facts("cluster-facts", [
    ["Groups without a leader", text.count(c.withoutLeader), c.withoutLeader ? "bad" : ""],
    ["Elections called here", text.count(c.elections)],
    ["Leadership handed over", text.count(c.handOvers)],
    ["Engines rebuilt", text.count(c.rebuilds)],
    ["Calls that waited for a leader", text.count(c.held)],
    ["Uncertain replies", text.count(c.uncertain), c.uncertain ? "warn" : ""],
  ]);
}

// Facts.

function showFacts(v) {
  facts("keys", [
    ["Keys", text.count(v.keys.total)],
    ...v.keys.types.filter((t) => t.keys > 0).map((t) => [t.type, text.count(t.keys)]),
    ["With a deadline", text.count(v.keys.expires)],
    ["Expired", text.count(v.keys.expired)],
    ["Evicted", text.count(v.keys.evicted), v.keys.evicted ? "warn" : ""],
    ["Found on lookup", text.percent(v.keys.hits, v.keys.hits + v.keys.misses)],
  ]);
  facts("memory-use", [
    ["Keys", text.size(v.memory.keys)],
    ["Clients", text.size(v.memory.clients)],
    ["Overhead", text.size(v.memory.overhead)],
    ["maxmemory", v.memory.max ? text.size(v.memory.max) : "no limit"],
    ["maxmemory-clients", v.memory.maxClients ? text.size(v.memory.maxClients) : "no limit"],
    ["Policy", v.memory.policy],
    ["Refused with OOM", text.count(v.memory.refused), v.memory.refused ? "bad" : ""],
  ]);
  const d = v.disk;
  facts("disk", [
    ["State", d.appendOnly || v.cluster ? d.state : d.state + ", no log", d.state === "ok" ? "" : "bad"],
    ...(d.failure ? [["Reason", d.failure, "bad"]] : []),
    ...(d.appendOnly ? [
      ["Log and snapshot", text.size(d.logBytes)],
      ["Not synced yet", text.size(Math.max(0, d.appended - d.durable))],
    ] : []),
    ...(d.appendOnly || v.cluster ? [["fsync, p99", text.took(d.fsync.p99)]] : []),
    ["Snapshots", d.saving ? text.count(d.saves) + ", one is running" : text.count(d.saves) + (d.lastSaveFailed ? ", the last failed" : ""), d.lastSaveFailed ? "bad" : ""],
    ["Changes since", text.count(d.unsavedChanges)],
  ]);
  const ahead = v.clock.difference;
  facts("clock", [
    ["Server time", text.moment(v.time)],
    ["Running for", text.span(v.uptime)],
    ["Clock", v.clock.state + (v.clock.left ? `, ${text.duration(v.clock.left)} left` : ""), v.clock.state === "waiting" ? "warn" : ""],
    ["System clock", ahead === 0 ? "agrees" : text.duration(Math.abs(ahead)) + (ahead > 0 ? " ahead" : " behind")],
    ["Received", `${text.size(v.rates.in)}/s`],
    ["Sent", `${text.size(v.rates.out)}/s`],
    ["Refused connections", text.count(v.clients.rejected), v.clients.rejected ? "warn" : ""],
    ["Failed logins", text.count(v.clients.failedLogins), v.clients.failedLogins ? "warn" : ""],
  ]);
}

// A key.

let chosen = null;
let asking = false;

function openKey(k) {
  chosen = k;
  show("key-name", k.name);
  show("key-rule", k.rule ? "by " + k.rule : "");
  show("key-state", "");
  $("key-use").hidden = true;
  facts("key-facts", []);
  $("key").showModal();
  askKey();
}

async function askKey() {
  if (!chosen || asking || !$("key").open) return;
  const k = chosen;
  asking = true;
  try {
    const response = await fetch(at(`/api/limiter?db=${k.db}&key=${k.id}`));
    if (!response.ok) throw new Error(await response.text());
    if (k === chosen) showKey(k, await response.json());
  } catch (problem) {
    if (k === chosen) show("key-state", "The server does not answer: " + problem.message);
  }
  asking = false;
}

function showKey(k, l) {
  const known = l.found && l.rule && !l.unusable;
  show("key-rule", l.rule ? "by " + l.rule : "");
  $("key-use").hidden = !known;
  const state = $("key-state");
  state.className = known ? (l.retryIn === 0 ? "admits" : "denies") : "";
  show("key-state", !l.found ? "This key does not exist any more."
    : l.unusable ? l.unusable : !l.rule ? "No rule of this server denied it: INCREX has a limit of its own."
    : l.retryIn === 0 ? "Admits now" : l.retryIn < 0 ? "Can never be admitted" : "Admits again in " + text.duration(l.retryIn));
  if (known) {
    show("key-used", text.count(l.used));
    show("key-remaining", text.count(l.remaining));
    meter($("key-use").firstElementChild, l.used, l.limit);
  }
  const current = view?.denied.find((e) => e.id === k.id && e.db === k.db) ?? k;
  facts("key-facts", [
    ...(known ? [["Limit", text.count(l.limit)], ["As if never used in", l.resetIn ? text.duration(l.resetIn) : "unused now"]] : []),
    ...(l.found ? [["Type", l.type], ["Expires in", l.type === "none" ? "–" : l.expiresIn < 0 ? "never" : text.duration(l.expiresIn)]] : []),
    ["Denied", text.count(current.count) + " times"],
    ["Database", String(k.db)],
  ]);
}

afterClose("key", () => { chosen = null; });

// The connection.

function render(v) {
  const first = !view;
  view = v;
  const newPoint = remember(v);
  showFigures(v);
  showCommands(v, newPoint);
  showPolicies(v, newPoint);
  showCustomers(v);
  showDenied(v);
  showCluster(v.cluster);
  showFacts(v);
  if (newPoint || first) drawPast();
  askKey();
  tick();
}

let events = null;
let retry = 0;

async function connect() {
  try {
    const response = await fetch(at("/api/history"));
    if (!response.ok) throw new Error(await response.text());
    past = await response.json();
    past.times ??= [];
    for (const group of groups) past[group] = new Map(Object.entries(past[group]));
    sums = null;
    if (view) drawPast();
  } catch {
    return lost("The server does not answer. Trying again …", 3000);
  }
  const stream = new EventSource(at("/api/events"));
  events = stream;
  stream.onmessage = (event) => {
    $("lost").hidden = true;
    $("main").hidden = false;
    render(JSON.parse(event.data));
  };
  stream.onerror = () => {
    const refused = stream.readyState === EventSource.CLOSED;
    stream.close();
    lost(refused ? "The server refuses to send events: too many pages may be open. Trying again …"
      : "The connection to the server is lost. Trying again …", 3000);
  };
}

function lost(message, wait) {
  $("lost").hidden = false;
  show("lost", message);
  $("status").dataset.level = "wait";
  $("status").querySelector("span").textContent = "not connected";
  retry = setTimeout(connect, wait);
}

// A page in the browser's back cache must not hold a stream.
addEventListener("pagehide", () => {
  clearTimeout(retry);
  events?.close();
});
addEventListener("pageshow", (event) => { if (event.persisted) connect(); });

// The theme: as the system, light, or dark.

const themes = [["", "Auto", "as the system"], ["light", "Light", "light"], ["dark", "Dark", "dark"]];

function setTheme(name) {
  const [theme, label, words] = themes.find((t) => t[0] === name) ?? themes[0];
  document.documentElement.dataset.theme = theme;
  $("theme").querySelector("span").textContent = label;
  $("theme").setAttribute("aria-label", "Theme: " + words);
}

// The browser may not allow storage.
function stored() {
  try {
    return localStorage.getItem("theme") ?? "";
  } catch {
    return "";
  }
}

$("theme").addEventListener("click", () => {
  const i = themes.findIndex((t) => t[0] === (document.documentElement.dataset.theme ?? ""));
  const next = themes[(i + 1) % themes.length][0];
  setTheme(next);
  try {
    localStorage.setItem("theme", next);
  } catch {
    // the choice applies until the page is closed
  }
});
setTheme(stored());

connect();
