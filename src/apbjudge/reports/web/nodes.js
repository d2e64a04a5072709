// Texts and nodes: what every page is made of. Texts of the data are never read as markup, and
// invisible characters are shown by their number.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});

  const SHORT = 1600; // characters of a text that are shown at once

  // Control, direction and other unseen characters; the joiners stay, scripts need them.
  const UNSEEN = /[^\P{C}\n\t\u200c\u200d]|[\u2028\u2029]/gu;
  const numbered = (c) => `\\u{${c.codePointAt(0).toString(16)}}`;
  const text = (value) => String(isPlain(value) ? JSON.stringify(value) : value)
    .replaceAll("\r\n", "\n").replace(UNSEEN, numbered);

  // node("p.note.proven", {title: "…"}, "text", child, null, [more]): attributes stand first if at
  // all, and an object anywhere else is data that should have been a text: it is shown as JSON.
  const node = (kind, ...parts) => {
    const [tag, ...classes] = kind.split(".");
    const made = document.createElement(tag);
    if (classes.length) made.className = classes.join(" ");
    if (isPlain(parts[0])) setAll(made, parts.shift());
    for (const part of parts.flat(Infinity)) add(made, part);
    return made;
  };

  const isPlain = (part) => part && Object.getPrototypeOf(part) === Object.prototype;

  const add = (made, part) => {
    if (part === null || part === undefined || part === false) return;
    made.append(part instanceof Node ? part : text(isPlain(part) ? JSON.stringify(part) : part));
  };

  // No address but a picture's, no style, no handler.
  const ATTRIBUTES = new Set((
    "alt autocomplete checked cols dir disabled for hidden id inputmode lang loading max " +
    "maxlength min name open pattern placeholder required role rows scope spellcheck src step " +
    "tabindex title type value").split(" "));
  const isAllowed = (name) => ATTRIBUTES.has(name) || /^(aria|data)-[a-z-]+$/.test(name);

  const setAll = (made, attributes) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (!isAllowed(name)) throw new TypeError(`no attribute ${name}`);
      if (value !== null && value !== undefined && value !== false) {
        made.setAttribute(name, value === true ? "" : text(value));
      }
    }
  };

  // Says words aloud in a live region. The same words again are heard again only if the text
  // changes: a blank at their end makes it.
  const tell = (region, words) => {
    region.textContent = words && region.textContent === words ? `${words}\u00a0` : words;
  };

  const when = (holds, make) => (holds ? make() : null);
  // Names are looked up among our own only, never among what every object has.
  const named = (names, key) => (Object.hasOwn(names, key) ? names[key] : undefined);
  const hidden = (words) => node("span.unseen", words);
  const heading = (level, ...parts) => node(`h${Math.min(level, 6)}`, ...parts);
  const count = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
  const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

  // A disclosure whose inside is made when it is first opened.
  const details = (summary, make, open = false) => {
    const made = node("details", node("summary", summary));
    const fill = () => made.childElementCount === 1 && [make()].flat(Infinity).forEach((part) => add(made, part));
    made.addEventListener("toggle", () => made.open && fill());
    if (open) {
      fill();
      made.open = true;
    }
    return made;
  };

  // Running text with its line breaks; the end of a long one is behind a disclosure.
  const words = (value, kind = "p.words", most = SHORT) => {
    const all = String(value);
    if (all.length <= 1.25 * most) return node(kind, { dir: "auto" }, all);
    const rest = all.length - most;
    return node("div.long",
      node(kind, { dir: "auto" }, `${all.slice(0, most)}…`),
      details(`the other ${count(rest, "character", "characters")}`,
        () => node(kind, { dir: "auto" }, `…${all.slice(most)}`)));
  };

  // What the tested model says of a step, with a word that tells whose it is.
  const aside = (label, value) => when(value, () =>
    node("div.aside", node("span.muted", `${label}: `), words(value, "span.words")));

  const code = (value) => node("pre.code", { dir: "auto", tabindex: 0 }, pretty(value));
  const facts = (pairs) => {
    const said = pairs.filter(([, value]) => value !== null && value !== undefined);
    if (!said.length) return null;
    return node("dl.facts", said.map(([name, value]) => node("div", node("dt", name),
      node("dd", { dir: "auto" }, value))));
  };
  const section = (level, kind, title, ...parts) => {
    const inside = parts.flat().filter(Boolean);
    return inside.length ? node(`section.${kind}`, heading(level, title), inside) : null;
  };

  Object.assign(apb, { details, node, tell, text, words });
  apb.parts = {
    aside, code, count, details, facts, heading, hidden, named, node, pretty, section, SHORT, text,
    when, words,
  };
})();
