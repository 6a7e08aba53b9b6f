// Decides hosts by the lists that the page shows. Nothing here is needed to read the page.
"use strict";

// policies are the lists of the page: for each, the first position of an exact name and of a name behind "*.".
function readPolicies() {
  return Array.from(document.querySelectorAll("article.hosts"), (article) => ({
    article,
    targets: Number(article.dataset.n),
    open: article.dataset.default === "allow",
    denied: readList(article.querySelector(".denied")),
    allowed: readList(article.querySelector(".allowed")),
  }));
}

function readList(ul) {
  const list = { entries: [], exact: new Map(), wild: new Map() };
  if (!ul) return list;
  list.entries = Array.from(ul.children, (li) => li.textContent.trim());
  list.entries.forEach((entry, i) => {
    const wild = entry.startsWith("*.");
    const map = wild ? list.wild : list.exact;
    const name = wild ? entry.slice(2) : entry;
    if (!map.has(name)) map.set(name, i);
  });
  return list;
}

// match returns the first entry of a list that matches a host, or null.
function match(list, host) {
  let best = list.exact.get(host.name) ?? Infinity;
  if (!host.address) {
    for (let dot = host.name.indexOf("."); dot >= 0; dot = host.name.indexOf(".", dot + 1)) {
      best = Math.min(best, list.wild.get(host.name.slice(dot + 1)) ?? Infinity);
    }
  }
  return best === Infinity ? null : list.entries[best];
}

// decide answers as halo egress test does: denied, else allowed, else the default.
function decide(policy, host) {
  let entry = match(policy.denied, host);
  if (entry !== null) return { allow: false, rule: "denied " + entry };
  entry = match(policy.allowed, host);
  if (entry !== null) return { allow: true, rule: "allowed " + entry };
  return { allow: policy.open, rule: "default " + (policy.open ? "allow" : "deny") };
}

// parseHost reads a host name or URL; a text that is neither, or that only halo can read with certainty, gives {why}.
function parseHost(text) {
  if (!text || /[^\x21-\x7e]|[\\*%]/.test(text)) return { why: "blanks, wildcards, escapes and letters outside ASCII are no part of a host name; write it in its xn-- form" };
  const url = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text);
  let s = (url ? text.slice(url[0].length) : text).split(/[/?#]/, 1)[0];
  if (s.includes("@")) return { why: "leave out what stands before @" };
  if (url) s = s.replace(/:$/, "");
  const bracket = /^\[([^\]]*)\](?::(\d{1,5}))?$/.exec(s);
  if (bracket || s.split(":").length > 2) {
    const address = bracket ? bracket[1] : s;
    return isIPv6(address) && (bracket || !url) ? { name: address.toLowerCase(), address: true } : { why: "not an IPv6 address" };
  }
  const port = /:(.*)$/.exec(s);
  if (port) {
    if (!/^\d{1,5}$/.test(port[1])) return { why: `${JSON.stringify(port[1])} is not a port` };
    s = s.slice(0, port.index);
  }
  s = s.replace(/\.$/, "").toLowerCase();
  const labels = s.split(".");
  if (s.length > 253 || !labels.every((l) => /^[a-z0-9_-]{1,63}$/.test(l) && !l.startsWith("-") && !l.endsWith("-"))) return { why: "not a host name" };
  if (/^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1))) {
    const quad = labels.length === 4 && labels.every((l) => /^(0|[1-9]\d{0,2})$/.test(l) && Number(l) < 256);
    return quad ? { name: s, address: true } : { why: "it ends in a number, which programs read as an IP address" };
  }
  return { name: s, address: false };
}

function isIPv6(s) {
  if (!/^[0-9a-f:.]+$/i.test(s) || !s.includes(":")) return false;
  try {
    new URL(`http://[${s}]/`);
    return true;
  } catch {
    return false;
  }
}

function element(tag, text, name) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (name) e.className = name;
  return e;
}

// table makes a table like the others of the page. A cell is a text or an element.
function table(caption, heads, rows) {
  const wrap = element("div", undefined, "wrap");
  const t = element("table", undefined, "stack");
  t.setAttribute("role", "table");
  t.append(element("caption", caption));
  const row = (group, cells, tag) => {
    const tr = element("tr");
    tr.setAttribute("role", "row");
    cells.forEach((cell, i) => {
      const c = element(tag || (i ? "td" : "th"));
      c.setAttribute("role", tag ? "columnheader" : i ? "cell" : "rowheader");
      if (tag || !i) c.scope = tag ? "col" : "row";
      if (!tag && i) c.dataset.l = heads[i];
      c.append(cell);
      tr.append(c);
    });
    group.append(tr);
  };
  const [head, body] = [t.createTHead(), t.createTBody()];
  head.setAttribute("role", "rowgroup");
  body.setAttribute("role", "rowgroup");
  row(head, heads, "th");
  for (const r of rows) row(body, r);
  wrap.append(t);
  return wrap;
}

const most = 100;

// answer shows what becomes of a host in every policy, and which entries contain the text.
function answer(policies, text) {
  const line = document.getElementById("answer");
  const hits = document.getElementById("hits");
  const found = document.getElementById("found");
  hits.replaceChildren();
  found.hidden = text === "";
  line.textContent = "";
  if (text === "") return;
  const host = parseHost(text);
  if (host.why) {
    line.textContent = `No host: ${host.why}.`;
  } else {
    const count = { true: 0, false: 0 };
    const rows = policies.map((p) => {
      const d = decide(p, host);
      count[d.allow] += p.targets;
      const link = element("a", p.article.querySelector("h3").textContent);
      link.href = "#" + p.article.id;
      const who = element("span");
      who.append(link, " for ", whoText(p.article));
      return [element("span", d.allow ? "allowed" : "denied", d.allow ? "allow" : "deny"), d.rule, who];
    });
    line.textContent = `${host.name}: allowed for ${count.true} and denied for ${count.false} of ${count.true + count.false} targets.`;
    hits.append(table(`What becomes of ${host.name}`, ["Answer", "Rule", "Targets"], rows.slice(0, most)));
    if (rows.length > most) hits.append(element("p", `And ${rows.length - most} more sets of host rules.`));
  }
  const part = text.toLowerCase();
  const entries = new Map();
  for (const p of policies) {
    for (const list of ["allowed", "denied"]) {
      for (const entry of new Set(p[list].entries)) {
        if (!entry.includes(part)) continue;
        const seen = entries.get(entry) || { allowed: 0, denied: 0 };
        seen[list] += p.targets;
        entries.set(entry, seen);
      }
    }
  }
  if (entries.size === 0) return;
  const rows = Array.from(entries, ([entry, n]) => [entry, String(n.allowed), String(n.denied)]);
  hits.append(element("h3", `Rules that contain ${text}`), table(`Rules that contain ${text}`, ["Rule", "Allowed for targets", "Denied for targets"], rows.slice(0, most)));
  if (rows.length > most) hits.append(element("p", `And ${rows.length - most} more.`));
}

// whoText is the line that says whom a policy is for, without what is folded away.
function whoText(article) {
  const who = article.querySelector(".who");
  const summary = who.querySelector("summary");
  return summary ? summary.textContent : who.textContent.replace(/^For /, "");
}

// What is past when the page is read is marked; the page itself knows no time.
function markPast(now) {
  for (const t of document.querySelectorAll("time[datetime]")) {
    const day = /^\d{4}-\d{2}-\d{2}$/.test(t.dateTime);
    const end = Date.parse(t.dateTime) + (day ? 86400000 : 0);
    if (end <= now) t.append(" ", element("strong", "(past)", "bad"));
  }
}

function start() {
  markPast(Date.now());
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => (d.open = true)));
  const form = document.querySelector("form.search");
  const input = document.getElementById("host");
  let policies;
  const run = () => answer((policies ??= readPolicies()), input.value.trim());
  form.hidden = false;
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    run();
  });
  input.addEventListener("input", run);
  if (input.value) run();
}

start();
