// Single ids: what one has used of each policy, the ids of a policy, and those that are banned.
// Everything is asked for when someone looks, and nothing again by itself.

import { $, afterClose, at, cell, element, keyed, makeRow, meter, show } from "./elements.js";
import * as text from "./format.js";

// call makes a request that runs calls as the user of the page.
async function call(path, body) {
  const response = await fetch(at(path), {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

// encode returns text as bytes in base64.
function encode(words) {
  let bytes = "";
  for (const b of new TextEncoder().encode(words)) bytes += String.fromCharCode(b);
  return btoa(bytes);
}

// wellFormed reports whether text can be sent: half of a pair of surrogates would be sent as
// another character. If not, it says so at the input.
function wellFormed(input) {
  input.setCustomValidity(input.value.isWellFormed() ? "" : "This text has half a character.");
  return input.reportValidity();
}

const database = () => Number($("find-db").value || 0);

// countdown writes the time that is left of ms since a moment; what is written when it is over.
const countdown = (ms, since, over) => {
  const left = ms - (performance.now() - since);
  return ms > 0 && left > 0 ? text.duration(left) : over;
};

// The lists.

const kinds = {
  ids: { path: "/api/ids", none: "No id has used this policy, or all are forgotten.", columns: [["used", "split", "Used"], ["held", "", "Held"]] },
  overrides: { path: "/api/overrides", none: "This policy has the same numbers for all ids.", columns: [["definition", "text", "Numbers"]] },
  banned: { path: "/api/banned", none: "No id is banned.", columns: [["policy", "text", "Policy"], ["ban", "", "Ends in"], ["bans", "", "Bans in a row"]] },
};

const pageIDs = 50; // as the server: it may need several requests for them

let list = null; // what the dialog shows

function openList(kind, policy) {
  show("list-kind", policy ? "Policy" : "All policies");
  show("list-name", policy ? policy.name : "Banned ids");
  show("list-rule", policy ? policy.definition : "");
  $("list-tabs").hidden = !policy;
  $("list-match").value = "";
  startList(kind, policy, "");
  if (!$("list").open) $("list").showModal();
}

export const openPolicy = (policy) => openList("ids", policy);

function startList(kind, policy, match) {
  list = { kind, policy, match, db: database(), cursor: "" };
  $("list-find").hidden = kind === "overrides";
  for (const tab of $("list-tabs").children) tab.setAttribute("aria-pressed", tab.dataset.kind === kind);
  const titles = [["", "", "Id"], ...kinds[kind].columns];
  $("rows").tHead.replaceChildren(element("tr", {}, ...titles.map(([, fixed, title]) => element("th", { scope: "col", class: fixed }, title))));
  $("rows").tBodies[0].replaceChildren();
  loadList();
}

// loadList shows the next ids. It goes on until there is a page of them: few of many keys may match.
async function loadList() {
  const of = list, found = new Map();
  $("list-next").hidden = true;
  try {
    do {
      show("list-state", "Looking …");
      const part = await call(kinds[of.kind].path, {
        db: of.db, policy: of.policy?.name, match: of.match && encode(of.match), cursor: of.cursor,
      });
      if (of !== list) return;
      of.cursor = part.cursor;
      const since = performance.now();
      for (const id of part.ids) found.set(id.id + " " + (id.policy ?? ""), { ...id, since });
      of.rows = [...found];
      showRows();
    } while (of.cursor !== "0" && found.size < pageIDs);
  } catch (problem) {
    if (of === list) show("list-state", problem.message);
    return;
  }
  $("list-next").hidden = of.cursor === "0";
  show("list-state", found.size === 0 ? (of.match ? "No id matches." : kinds[of.kind].none)
    : `${text.count(found.size)} ${found.size === 1 ? "id" : "ids"}` + (of.cursor === "0" ? "" : ", and there may be more"));
}

function showRows() {
  keyed($("rows").tBodies[0], list.rows, ([key]) => key,
    ([, id]) => {
      const row = makeRow(id.name, kinds[list.kind].columns);
      const name = element("button", { type: "button", class: "link" }, id.name);
      const db = list.db;
      name.addEventListener("click", () => openCustomer(id.id, id.name, db));
      row.firstChild.replaceChildren(name);
      if (list.kind === "ids") {
        row.lastChild.previousSibling.append(element("span", { class: "meter" }, element("i")), element("span"));
      }
      return row;
    },
    (row, [, id]) => {
      switch (list.kind) {
        case "ids": {
          const [bar, words] = row.children[1].children;
          meter(bar, id.used, id.limit);
          words.textContent = `${text.count(id.used)} of ${text.count(id.limit)}`;
          cell(row, "held", text.count(id.held), id.held ? "" : "zero");
          break;
        }
        case "overrides":
          cell(row, "definition", id.definition);
          break;
        case "banned":
          cell(row, "policy", id.policy);
          cell(row, "ban", countdown(id.ban, id.since, "over"), "hot");
          cell(row, "bans", text.count(id.bans));
      }
    });
}

$("list-tabs").addEventListener("click", (event) => {
  const kind = event.target.dataset.kind;
  if (kind) startList(kind, list.policy, kind === "overrides" ? "" : $("list-match").value);
});
$("list-find").addEventListener("submit", (event) => {
  event.preventDefault();
  if (wellFormed($("list-match"))) startList(list.kind, list.policy, $("list-match").value);
});
$("list-next").addEventListener("click", () => {
  $("rows").tBodies[0].replaceChildren();
  loadList();
});
afterClose("list", () => { list = null; });

// One id.

let customer = null; // what the dialog shows

function openCustomer(id, name, db) {
  customer = { id, db, policies: [], since: 0 };
  show("customer-name", name);
  $("usage").tBodies[0].replaceChildren();
  loadCustomer("");
  if (!$("customer").open) $("customer").showModal();
}

// loadCustomer asks what the id has used, and says what was done before.
async function loadCustomer(done) {
  const of = customer;
  show("customer-state", done || "Looking …");
  try {
    const usage = await call("/api/usage", { db: of.db, id: of.id });
    if (of !== customer) return;
    of.since = performance.now();
    const rank = (p) => (p.ban > 0 || !p.allowed ? 2 : p.held > 0 || p.remaining < p.limit ? 1 : 0);
    of.policies = usage.policies.sort((a, b) => rank(b) - rank(a));
    show("customer-name", usage.name);
    showUsage();
    const used = of.policies.filter((p) => rank(p) > 0).length;
    show("customer-state", done || `${text.count(used)} of ${text.count(of.policies.length + usage.omitted)} policies in use`
      + (usage.omitted ? `; ${text.count(usage.omitted)} are not shown` : ""));
  } catch (problem) {
    if (of === customer) show("customer-state", problem.message);
  }
}

function showUsage() {
  const since = customer.since;
  keyed($("usage").tBodies[0], customer.policies, (p) => p.name,
    (p) => {
      const row = makeRow(p.name, [["admits"], ["limit"], ["remaining"], ["reset"], ["held"], ["ban"], ["change", "change"]]);
      const titles = $("usage").tHead.rows[0].cells; // on a phone each cell has its own
      for (let i = 1; i < row.cells.length - 1; i++) row.cells[i].dataset.title = titles[i].textContent;
      row.lastChild.append(change("Unban", "/api/unban", p.name), change("Reset", "/api/reset", p.name));
      return row;
    },
    (row, p) => {
      row.firstChild.title = p.definition;
      const [unban, reset] = row.lastChild.children;
      unban.hidden = !p.mayUnban || p.ban === 0;
      reset.hidden = !p.mayReset || (p.allowed && p.remaining === p.limit && p.held === 0 && p.ban === 0 && p.resetAfter === 0);
      if (p.problem) {
        cell(row, "admits", p.problem, "problem");
        return;
      }
      const waits = p.retryAfter < 0 ? "never" : countdown(p.retryAfter, since, "now");
      cell(row, "admits", waits === "now" || waits === "never" ? waits : "in " + waits, waits === "now" ? "leads" : "hot");
      cell(row, "limit", text.count(p.limit));
      cell(row, "remaining", text.count(p.remaining));
      cell(row, "reset", countdown(p.resetAfter, since, "unused"), p.resetAfter ? "" : "zero");
      cell(row, "held", text.count(p.held), p.held ? "" : "zero");
      cell(row, "ban", countdown(p.ban, since, p.ban ? "over" : "none"), p.ban ? "hot" : "zero");
    });
}

// change returns a button that makes a change when it is pressed twice.
function change(label, path, policy) {
  const button = element("button", { type: "button" }, label);
  const rest = () => {
    button.textContent = label;
    button.classList.remove("sure");
  };
  button.setAttribute("aria-label", `${label} ${policy}`);
  button.addEventListener("blur", rest);
  button.addEventListener("click", async () => {
    if (!button.classList.contains("sure")) {
      button.textContent = "Sure?";
      button.classList.add("sure");
      return;
    }
    rest();
    const of = customer;
    try {
      const { removed } = await call(path, { db: of.db, id: of.id, policy });
      if (of !== customer) return;
      loadCustomer(removed === 0 ? `There was nothing to change for ${policy}.`
        : label === "Reset" ? `${policy} is as if it had never been used.` : `The ban by ${policy} is lifted.`);
    } catch (problem) {
      if (of === customer) show("customer-state", problem.message);
    }
  });
  return button;
}

$("customer-again").addEventListener("click", () => loadCustomer(""));
afterClose("customer", () => { customer = null; });

// The card of the page.

// showCustomers shows the card if there are policies, and the choice of a database if others than
// the first have keys.
export function showCustomers(v) {
  $("customers").hidden = v.policies.length === 0;
  const numbers = v.keys.databases;
  $("find-in").hidden = !numbers.some((n) => n > 0);
  keyed($("find-db"), numbers.includes(0) ? numbers : [0, ...numbers], (n) => String(n),
    (n) => element("option", { value: n }, String(n)), () => {});
}

// tick updates the times that are left.
export function tick() {
  if (list?.rows && list.kind === "banned") showRows();
  if (customer) showUsage();
}

$("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const input = $("find-id");
  if (wellFormed(input)) openCustomer(encode(input.value), input.value.slice(0, 256), database());
});
for (const id of ["find-id", "list-match"]) $(id).addEventListener("input", () => $(id).setCustomValidity(""));
$("show-banned").addEventListener("click", () => openList("banned", null));
