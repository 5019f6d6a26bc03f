const PAGE_ROWS = 50;
const MOST_GROUPS = 300;
const MOST_QUESTIONS = 30;
const NO_TEXT = "Captions and replies are not in this report: the run has no sample log (--log_samples).";
let categories = [];

function showVideos(box) {
  categories = [];
  const sections = new Map();
  for (const task of view().tasks) for (const { name, groups } of core.tasks[task].sections) {
    if (!sections.has(name)) sections.set(name, new Set());
    groups.slice(0, MOST_GROUPS).forEach((group) => sections.get(name).add(group));
  }
  for (const [section, groups] of sections) for (const group of groups) categories.push([section, group]);
  const labels = new Map();
  for (const task of view().tasks) for (const { name, kind } of core.tasks[task].labels) labels.set(name, kind);
  const hasRuns = view().tasks.some((task) => core.tasks[task].n_runs.some((n) => n > 1));
  const verdicts = [["", "All verdicts"], ...[...labels.keys()].map((name) => ["label:" + name, name]), ["kind:unscored", "unscored"]];
  if (hasRuns && labels.size) verdicts.push(["runs", "differs between judge runs"]);
  if (names().length > 1 && labels.size) verdicts.push(["captioners", "differs between captioners"]);
  const sorts = [["worst", "Worst first"], ["name", "Name"], ["longest", "Longest caption first"]];
  if (names().length > 1) sorts.splice(1, 0, ["spread", "Largest difference first"]);
  names().forEach((from, a) => names().forEach((to, b) => { if (a !== b && names().length < 7) sorts.push(["change:" + a + ":" + b, "Worse for " + to + " than for " + from]); }));
  if (hasRuns && labels.size) sorts.push(["runs", "Differing judge runs first"]);
  if (!sorts.some(([key]) => key === state.sort)) state.sort = "worst";
  const search = h("input", { type: "search", id: "search", placeholder: "Search videos, captions, questions, answers", "aria-label": "Search", autocomplete: "off", value: state.search });
  search.addEventListener("input", () => { state.search = search.value; if (search.value.trim()) readTexts(showRows); showRows(); });
  const place = categories.findIndex(([section, group]) => section === state.group[0] && group === state.group[1]);
  const change = (set) => (value) => { set(value); state.shown = PAGE_ROWS; showRows(); };
  const bar = h("div", { class: "bar", role: "search" }, search,
    choice("Category", "category", [["", "All categories"], ...categories.map(([section, group], at) => [String(at), short(group, 60) + " (" + section.replaceAll("_", " ") + ")"])], place < 0 ? "" : String(place), change((value) => { state.group = value === "" ? ["", ""] : categories[Number(value)]; })),
    choice("Verdict", "verdict", verdicts, state.verdict, change((value) => { state.verdict = value; })),
    names().length > 1 ? choice("of", "verdict-captioner", [["-1", "any captioner"], ...names().map((name, at) => [String(at), short(name, 30)])], String(state.captioner), change((value) => { state.captioner = Number(value); })) : null,
    choice("Sort", "sort", sorts, state.sort, change((value) => { state.sort = value; })),
    h("button", { type: "button", id: "clear", onclick: () => { Object.assign(state, { search: "", group: ["", ""], verdict: "", captioner: -1, shown: PAGE_ROWS }); showVideos(box); } }, "Clear filters"));
  const notes = core.notes.map((note) => h("p", { class: "soft", dir: "auto" }, note));
  box.replaceChildren(...notes, bar, h("p", { id: "found", class: "soft", role: "status" }), h("div", { class: "panel scrolls", id: "video-table", tabindex: "0", role: "region", "aria-label": "Table of videos" }));
  showRows();
}
function showRows() {
  const began = performance.now();
  const found = filteredRows();
  const all = rowsOfView();
  const nAll = all.reduce((sum, row) => sum + core.rows.n[row], 0);
  const nShown = found.reduce((sum, one) => sum + one.places.length, 0);
  byId("found").textContent = count(found.length) + " of " + plural(all.length, "caption") + ", " + count(nShown) + " of " + plural(nAll, "question");
  const metric = headline();
  const isGroup = view().tasks.length > 1;
  const heads = ["Video", ...(isGroup ? ["Task"] : []), "Questions", ...names().map((name) => short(name, 24)), ...(names().length > 1 ? ["Spread"] : [])];
  const rows = found.slice(0, state.shown).map((one) => rowElement(one, heads, metric, isGroup));
  const table = h("table", { class: "stack" }, h("thead", null, h("tr", null, heads.map((head, place) => h("th", { scope: "col", class: isGroup && place === 1 ? "text" : null, dir: "auto" }, head)))), h("tbody", null, rows));
  const more = found.length > state.shown ? h("button", { type: "button", class: "more", onclick: () => { state.shown += 2 * PAGE_ROWS; showRows(); } }, "Show more (" + count(found.length - state.shown) + ")") : null;
  byId("video-table").replaceChildren(...(found.length ? [table] : [h("p", null, "Nothing matches.")]), ...(more ? [more] : []));
  report.timings.push(performance.now() - began);
}
function rowElement({ row, places }, heads, metric, isGroup) {
  const cells = names().map((_, captioner) => {
    const value = valueOf(row, captioner, metric.name);
    if (value === null) return STATES[core.rows.state[captioner][row]] || "–";
    const fill = h("i");
    fill.style.width = 100 * shareOf(value, metric) + "%";
    const stands = STATES[core.rows.state[captioner][row]];
    return h("span", { class: "value" }, (stands ? stands + " " : "") + number(value, metric), h("span", { class: "meter", "aria-hidden": "true" }, fill));
  });
  const asked = places.length === core.rows.n[row] ? String(places.length) : places.length + " of " + core.rows.n[row];
  const button = h("button", { type: "button", class: "open", "aria-expanded": "false", dir: "auto" }, core.rows.video[row]);
  const values = [button, ...(isGroup ? [core.tasks[taskOf(row)].name] : []), asked, ...cells, ...(names().length > 1 ? [number(spreadOf(row), metric)] : [])];
  const made = h("tr", { class: "row" }, values.map((value, place) => h("td", { "data-label": heads[place], class: place === 0 || (isGroup && place === 1) ? "text" : null }, value)));
  button.addEventListener("click", async () => {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) { made.nextElementSibling.remove(); return; }
    const detail = h("td", { colspan: heads.length });
    made.after(h("tr", { class: "detail" }, detail));
    detail.append(...detailElements(row, places, await textsOf(row)));
  });
  return made;
}

function detailElements(row, places, texts) {
  const pictures = framesOf(row).filter((source) => String(source).startsWith("data:image/"));
  const frameBox = pictures.length ? h("div", { class: "frames" }, pictures.map((src, place) => h("img", { src, alt: "frame " + (place + 1) + " of " + pictures.length }))) : h("p", { class: "soft", dir: "auto" }, "No frames: " + (core.rows.no_frames[row] || "none in this report") + ".");
  const hasTexts = texts.captions.some((text) => typeof text === "string");
  return [frameBox, ...(hasTexts ? [] : [h("p", { class: "note" }, NO_TEXT)]), captionsElement(row, texts), questionsElement(row, places, texts)];
}
function captionsElement(row, texts) {
  return h("div", { class: "captions" }, names().map((name, captioner) => {
    const text = texts.captions[captioner];
    const stands = STATES[core.rows.state[captioner][row]];
    const said = [view().headline + " " + number(valueOf(row, captioner, view().headline), headline())];
    if (core.rows.words[captioner][row] !== null) said.push(plural(core.rows.words[captioner][row], "word"));
    const shown = h("div", { class: "caption", dir: "auto" });
    shown.style.borderColor = "var(--c" + captioner % 10 + ")";
    if (typeof text !== "string") shown.append(stands ? "(" + stands + ")" : "(not in this report)");
    else if (!text.trim()) shown.append("(the caption is empty)");
    else shown.append(...marked(text, captioner, texts.captions));
    return h("div", null, h("h3", { dir: "auto" }, name), h("p", { class: "soft" }, said.join(" · ")), shown);
  }));
}
/* A caption with the words marked that only it has: of two captions both, else all but the first. */
function marked(text, captioner, captions) {
  if (names().length < 2 || (captioner === 0 && names().length > 2)) return [text];
  const other = captions[captioner === 0 ? 1 : 0];
  if (typeof other !== "string" || !other.trim()) return [text];
  const words = wordsOf(text);
  const kept = commonWords(words, wordsOf(other));
  if (!kept) return [text];
  const parts = [];
  for (let from = 0; from < words.length;) {
    let to = from;
    while (to < words.length && kept[to] === kept[from]) to += 1;
    const run = words.slice(from, to).join("");
    if (kept[from]) parts.push(run);
    else parts.push(h(captioner === 0 ? "del" : "ins", null, h("span", { class: "unseen" }, "[only here: "), run.trimEnd(), h("span", { class: "unseen" }, "]")), run.slice(run.trimEnd().length));
    from = to;
  }
  return parts;
}
/* Words with the space that follows them, so that joined they are the text again. */
const wordsOf = (text) => text.match(/^\s+|\S+\s*/g) || [];
/* Which words are in the longest common subsequence; null if the texts are too long. */
function commonWords(words, others) {
  if (words.length * others.length > 16e6) return null;
  const plain = (word) => word.trim().toLowerCase().replace(/^\p{P}+|\p{P}+$/gu, "") || word.trim();
  const [a, b] = [words.map(plain), others.map(plain)];
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) for (let j = b.length - 1; j >= 0; j -= 1) {
    longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  }
  const kept = new Uint8Array(a.length);
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) { kept[i] = 1; i += 1; j += 1; } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i += 1; else j += 1;
  }
  return kept;
}

function questionsElement(row, places, texts) {
  const n = core.rows.n[row];
  const matches = new Set(places);
  const isFiltered = places.length < n;
  const order = isFiltered ? [...places, ...Array.from({ length: n }, (_, place) => place).filter((place) => !matches.has(place))] : places;
  const box = h("div", null, h("h3", null, isFiltered ? count(places.length) + " of " + plural(n, "question") + " match the filters" : plural(n, "question")));
  const show = (from, to) => box.append(...order.slice(from, to).map((place) => questionElement(row, place, texts, isFiltered && matches.has(place))));
  const first = isFiltered ? Math.min(places.length, MOST_QUESTIONS) : MOST_QUESTIONS;
  show(0, first);
  if (order.length > first) {
    const more = h("button", { type: "button", class: "more", onclick: () => { more.remove(); show(first, order.length); } }, "Show all " + count(n) + " questions");
    box.append(more);
  }
  return box;
}
function questionElement(row, place, texts, isMatch) {
  const task = taskOf(row);
  const question = core.rows.first[row] - questions[task].start + place;
  const groups = core.tasks[task].sections.map((section, at) => section.groups[questions[task].groups[at][question]]).filter((group) => group !== undefined);
  const sides = names().map((name, captioner) => h("span", null, h("span", { class: "soft", dir: "auto" }, name + " "), ...questions[task].verdicts[captioner].map((run) => verdictElement(task, run[question]))));
  const replies = [];
  names().forEach((name, captioner) => questions[task].verdicts[captioner].forEach((run, at) => {
    const said = (texts.said[captioner] || [])[at] || {};
    const part = (column) => (said[column] || [])[place];
    const lines = [part("answer") ? "Judge's answer: " + part("answer") : "", part("words") || "", part("reason") ? "Unscored: " + part("reason") : ""].filter(Boolean);
    if (lines.length || part("reply")) {
      const label = name + (questions[task].verdicts[captioner].length > 1 ? ", run " + (at + 1) : "") + ": " + (run[question] === NOT_ASKED ? "not asked" : codeName(task, run[question]));
      replies.push(h("div", null, h("p", { class: "soft", dir: "auto" }, label), ...lines.map((line) => h("p", { dir: "auto" }, line)), part("reply") ? h("div", { class: "reply", dir: "auto" }, part("reply")) : null));
    }
  }));
  const details = replies.length ? h("details", null, h("summary", null, "Judge's replies"), replies) : null;
  return h("div", { class: "question" + (isMatch ? " match" : "") },
    h("div", { dir: "auto" }, h("b", null, String(place + 1) + ". " + (texts.questions[place] || "Question " + (place + 1)))),
    texts.answers[place] ? h("div", { dir: "auto" }, "Answer: " + texts.answers[place]) : null,
    groups.length ? h("div", { class: "soft", dir: "auto" }, groups.join(" · ")) : null,
    h("div", { class: "said" }, sides), details);
}
function verdictElement(task, code) {
  if (code === NOT_ASKED) return h("span", { class: "unscored" }, "not asked ");
  const kind = kindOf(task, code);
  return h("span", { class: kind }, SIGNS[kind] + " " + codeName(task, code) + " ");
}
