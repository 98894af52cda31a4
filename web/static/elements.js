// What the parts of the page share: elements, lists and tables.

export const $ = (id) => document.getElementById(id);
export const show = (id, value) => { const e = $(id); if (e.textContent !== value) e.textContent = value; };

export function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  e.append(...children);
  return e;
}

// The address bar may hold a user and a password, which fetch refuses in an address.
export const at = (path) => location.origin + path;

export function meter(e, part, all) {
  e.classList.toggle("full", all > 0 && part >= 0.9 * all);
  e.firstElementChild.style.width = (all > 0 ? Math.min(100, (100 * part) / all) : 0) + "%";
}

// afterClose runs what is to be done when a dialog has closed, which a click beside it does too. The
// event arrives later: if the dialog is open again by then, it shows something new, which stays.
export function afterClose(id, run) {
  const dialog = $(id);
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { if (!dialog.open) run(); });
}

// Lists. Rows keep their elements, so that focus and selection stay.

export function keyed(parent, list, keyOf, make, update) {
  const rows = new Map([...parent.children].map((row) => [row.dataset.key, row]));
  list.forEach((item, i) => {
    const key = keyOf(item);
    let row = rows.get(key);
    rows.delete(key);
    if (!row) {
      row = make(item);
      row.dataset.key = key;
    }
    if (parent.children[i] !== row) parent.insertBefore(row, parent.children[i] ?? null);
    update(row, item);
  });
  rows.forEach((row) => row.remove());
}

export const cells = (row) => (row.cellsByName ??= Object.fromEntries([...row.children].map((c) => [c.dataset.name, c])));

export function cell(row, name, value, kind = "") {
  const c = cells(row)[name];
  if (c.textContent !== value) c.textContent = value;
  const known = (c.dataset.fixed ?? "") + " " + kind;
  if (c.className !== known.trim()) c.className = known.trim();
}

export function makeRow(name, columns) {
  const row = element("tr", {}, element("th", { scope: "row", "data-name": "name", title: name }, name));
  for (const [column, fixed] of columns) {
    row.append(element("td", { "data-name": column, "data-fixed": fixed ?? "", class: fixed ?? "" }));
  }
  return row;
}

export function facts(id, list) {
  keyed($(id), list.flatMap(([term, value, kind]) => [["dt", term, term], ["dd", term, value, kind]]), ([tag, term]) => tag + term,
    ([tag]) => element(tag),
    (e, [tag, , value, kind]) => {
      if (e.textContent !== value) e.textContent = value;
      if (tag === "dd") e.className = kind ?? "";
    });
}
