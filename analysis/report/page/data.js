"use strict";
const byId = (id) => document.getElementById(id);
const NO_GROUP = 65535;
const RATED = 253;
const UNSCORED = 254;
const NOT_ASKED = 255;
const KINDS = ["right", "partly", "missed", "wrong", "other", "rated", "unscored"];
const SIGNS = { right: "✓", partly: "◐", missed: "○", wrong: "✗", other: "•", rated: "#", unscored: "?" };
const STATES = ["", "empty", "no caption", "not in this run"];
/* What Python wrote (core), what was unpacked of it, and what is chosen in the page. */
const packs = { core: null, groups: [], verdicts: [], frames: null, blocks: new Map() };
const state = {
  view: 0, shape: 0, metric: "", pair: 0, hidden: new Set(), x: "", y: "", brush: null,
  search: "", section: "", group: "", verdict: "", captioner: -1, sort: "",
  shown: [], matched: new Int32Array(0), cursor: 0, open: -1, showsAll: false,
};
const timings = [];

function element(name, text, attributes) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  return made;
}
function button(text, press, attributes) {
  const made = element("button", text, { type: "button", ...attributes });
  made.addEventListener("click", press);
  return made;
}
function field(text, control) {
  const label = element("label", text + " ");
  label.append(control);
  return label;
}
/* A select of [value, text] or of {title, options}; values are texts. */
function select(options, value, choose, attributes) {
  const made = element("select", undefined, attributes);
  fill(made, options, value);
  made.addEventListener("change", (event) => choose(made.value, event.timeStamp));
  return made;
}
function fill(made, options, value) {
  const option = ([key, text]) => element("option", text, { value: key });
  made.replaceChildren(...options.map((one) => {
    if (!one.options) return option(one);
    const box = element("optgroup", undefined, { label: one.title || "groups" });
    box.append(...one.options.map(option));
    return box;
  }));
  made.value = value;
  if (made.selectedIndex < 0) made.selectedIndex = 0;
}
/* Names of metrics come from elsewhere: "constructor" is no metric unless it was written. */
function lookup(table, key) { return table && Object.prototype.hasOwnProperty.call(table, key) ? table[key] : null; }
const core = () => packs.core;
const view = () => core().views[state.view];
const captioners = () => core().captioners;
/* Judge runs of a captioner: in a task, or the most of the view's tasks. */
const runsIn = (task, captioner) => core().tasks[task].n_runs[captioner];
const runsOf = (captioner) => Math.max(0, ...view().tasks.map((task) => runsIn(task, captioner)));
const hasRuns = () => captioners().some((_, captioner) => runsOf(captioner) > 1);
const nRows = () => core().rows.video.length;
const count = (number) => number.toLocaleString("en-US");
const several = (number, noun) => count(number) + " " + noun + (number === 1 ? "" : "s");
function metricOf(name) { return view().metrics.find((metric) => metric.name === name) || { name, highest: 1, higher_is_better: true }; }
/* As many digits as the tables have. */
function digits(metric) { return metric.highest > 1 ? 2 : 3; }
function number(value, metric) { return value === null || value === undefined ? "–" : value.toFixed(digits(metric)); }
function signed(value, metric) { return value === null || value === undefined ? "–" : (value > 0 ? "+" : "") + value.toFixed(digits(metric)).replace("-", "−"); }
function valueOf(metric, captioner, row) {
  const values = lookup(core().rows.values, metric);
  const value = values && values[captioner] ? values[captioner][row] : null;
  return value === undefined ? null : value;
}
function lengthOf(what, captioner, row) {
  const lengths = lookup(core().rows, what);
  const value = lengths && lengths[captioner] ? lengths[captioner][row] : null;
  return value === undefined ? null : value;
}

async function gunzip(id) {
  const text = atob(byId(id).textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}
async function unpackCore() {
  packs.core = await (await gunzip("core")).json();
}
async function unpackQuestions() {
  const n = core().n_questions;
  const held = byId("questions") ? await (await gunzip("questions")).arrayBuffer() : null;
  let place = 0;
  // Slices: the columns of 16 bits need not begin at even places, and a report without this pack has none asked.
  const take = (Kind, missing) => {
    const made = held ? new Kind(held.slice(place, place + n * Kind.BYTES_PER_ELEMENT)) : new Kind(n).fill(missing);
    place += n * Kind.BYTES_PER_ELEMENT;
    return made;
  };
  for (let section = 0; section < core().n_sections; section += 1) packs.groups.push(take(Uint16Array, NO_GROUP));
  packs.verdicts = captioners().map((captioner) => Array.from({ length: captioner.n_runs }, () => take(Uint8Array, NOT_ASKED)));
}
/* A block of texts; the last few are kept, as who reads one row reads the next. */
async function block(index) {
  if (packs.blocks.has(index)) return packs.blocks.get(index);
  const made = byId("text-" + index) ? (async () => (await gunzip("text-" + index)).json())() : Promise.resolve(null);
  packs.blocks.set(index, made);
  if (packs.blocks.size > 8) packs.blocks.delete(packs.blocks.keys().next().value);
  return made;
}
async function textsOf(row) {
  const texts = await block(Math.floor(row / core().block_rows));
  if (!texts) return { captions: [], questions: [], answers: [], said: [] };
  const place = row % core().block_rows;
  const at = (column) => (texts[column] && texts[column][place]) || [];
  return { captions: at("captions"), questions: at("questions"), answers: at("answers"), said: at("said") };
}
function framesOf(row) {
  if (!packs.frames) {
    const held = byId("frames");
    try { packs.frames = held ? JSON.parse(held.textContent) : {}; } catch { packs.frames = {}; }
  }
  const key = core().rows.frames[row];
  return key ? lookup(packs.frames, key) || [] : [];
}

/* What is searched in, of each row: its captions, and its questions with gold answers one after the other. */
const searched = { captions: [], asked: [], n: 0, isStarted: false, trouble: "" };
async function readForSearch(tell) {
  if (searched.isStarted) return;
  searched.isStarted = true;
  for (let index = 0; index * core().block_rows < nRows(); index += 1) {
    const first = index * core().block_rows;
    const texts = byId("text-" + index) ? await (await gunzip("text-" + index)).json() : null;
    const last = Math.min(first + core().block_rows, nRows());
    for (let row = first; row < last; row += 1) {
      const place = row - first;
      const captions = (texts && texts.captions && texts.captions[place]) || [];
      const questions = (texts && texts.questions && texts.questions[place]) || [];
      const answers = (texts && texts.answers && texts.answers[place]) || [];
      searched.captions.push(captions.map((text) => text || "").join("\0").toLowerCase());
      searched.asked.push(questions.map((text, question) => ((text || "") + "\x01" + (answers[question] || "")).replaceAll("\0", " ")).join("\0").toLowerCase());
    }
    searched.n = last;
    tell();
    // A chunk at a time: between two the page answers to keys.
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

/* Codes of one task that the chosen verdict means, as a table of 256 ones and zeros. */
function wantedCodes(task, wanted) {
  const codes = new Uint8Array(256);
  const what = wanted.slice(0, wanted.indexOf(":"));
  const name = wanted.slice(wanted.indexOf(":") + 1);
  task.labels.forEach((label, code) => { if (what === "label" ? label.name === name : what === "kind" && label.kind === name) codes[code] = 1; });
  if (wanted === "unscored" || wanted === "kind:unscored") codes[UNSCORED] = 1;
  return codes;
}
function codeOf(task, sectionName, groupName) {
  const section = task.sections.findIndex((one) => one.name === sectionName);
  const code = section < 0 ? -1 : task.sections[section].groups.indexOf(groupName);
  return { section, code };
}
function differsInRuns(question) {
  for (const runs of state.captioner < 0 ? packs.verdicts : [packs.verdicts[state.captioner]]) {
    let first = NOT_ASKED;
    for (const run of runs) {
      const code = run[question];
      if (code >= RATED) continue;
      if (first === NOT_ASKED) first = code;
      else if (first !== code) return true;
    }
  }
  return false;
}
/* Of each captioner the first verdict that could be read counts. */
function differsInCaptioners(question) {
  let first = NOT_ASKED;
  for (const runs of packs.verdicts) {
    const run = runs.find((one) => one[question] < RATED);
    if (!run) continue;
    if (first === NOT_ASKED) first = run[question];
    else if (first !== run[question]) return true;
  }
  return false;
}
/* Per task, a function from a question's number to whether the chosen category and verdict are its. */
function questionTests() {
  const runs = state.captioner < 0 ? packs.verdicts.flat() : packs.verdicts[state.captioner];
  return core().tasks.map((task) => {
    const { section, code } = state.section ? codeOf(task, state.section, state.group) : { section: -1, code: -1 };
    const groups = section < 0 ? null : packs.groups[section];
    const isElsewhere = Boolean(state.section) && code < 0;
    const codes = wantedCodes(task, state.verdict);
    const said = !state.verdict ? () => true
      : state.verdict === "runs" ? differsInRuns
        : state.verdict === "captioners" ? differsInCaptioners
          : (question) => { for (const run of runs) if (codes[run[question]]) return true; return false; };
    return (question) => !isElsewhere && (!groups || groups[question] === code) && said(question);
  });
}
/* Which of a row's questions the search text is about: all, a set, or none. */
function searchedIn(row, text) {
  if (!text || core().rows.video[row].toLowerCase().includes(text)) return true;
  if (row >= searched.n) return false;
  if (searched.captions[row].includes(text)) return true;
  if (!searched.asked[row].includes(text)) return false;
  const places = new Set();
  searched.asked[row].split("\0").forEach((asked, place) => { if (asked.includes(text)) places.add(place); });
  return places.size ? places : false;
}
function inBrush(row) {
  const brush = state.brush;
  // Of captioners whose dots are there to be seen.
  return shownCaptioners().some((captioner) => {
    const x = lengthOf(brush.axis, captioner, row);
    if (x === null || x < brush.x[0] || x > brush.x[1]) return false;
    if (!brush.y) return true;
    const y = valueOf(brush.metric, captioner, row);
    return y !== null && y >= brush.y[0] && y <= brush.y[1];
  });
}
/* The questions of a row that the filters mean, by their places in the row. */
function matchesOf(row, tests = questionTests()) {
  const { first, n, task } = core().rows;
  const text = state.search.trim().toLowerCase();
  const where = searchedIn(row, text);
  const places = [];
  if (where) for (let place = 0; place < n[row]; place += 1) {
    if ((where === true || where.has(place)) && tests[task[row]](first[row] + place)) places.push(place);
  }
  return places;
}
function filterRows() {
  const tests = questionTests();
  const { first, n, task } = core().rows;
  const tasks = new Set(view().tasks);
  const text = state.search.trim().toLowerCase();
  const isAboutQuestions = Boolean(state.section || state.verdict);
  const shown = [];
  const totals = { rows: 0, questions: 0, shownQuestions: 0 };
  state.matched = new Int32Array(nRows());
  for (let row = 0; row < nRows(); row += 1) {
    if (!tasks.has(task[row])) continue;
    totals.rows += 1;
    totals.questions += n[row];
    if (state.brush && !inBrush(row)) continue;
    const where = searchedIn(row, text);
    if (!where) continue;
    let matched = 0;
    if (!isAboutQuestions && where === true) matched = n[row];
    else {
      const test = tests[task[row]];
      for (let place = 0, question = first[row]; place < n[row]; place += 1, question += 1) {
        if ((where === true || where.has(place)) && test(question)) matched += 1;
      }
    }
    if (isAboutQuestions && !matched) continue;
    state.matched[row] = matched;
    totals.shownQuestions += matched;
    shown.push(row);
  }
  state.shown = shown;
  return totals;
}
/* What rows are sorted by, smallest first; NaN is last. */
function sortKeys() {
  const metric = metricOf(view().headline);
  const sign = metric.higher_is_better === false ? -1 : 1;
  const keys = new Float64Array(nRows()).fill(NaN);
  const [what, from, to] = state.sort.split(":");
  const each = (row, value) => captioners().map((_, captioner) => value(captioner, row)).filter((one) => one !== null && one !== undefined);
  for (const row of state.shown) {
    if (what === "regression") {
      const before = valueOf(metric.name, Number(from), row);
      const after = valueOf(metric.name, Number(to), row);
      if (before !== null && after !== null) keys[row] = sign * (after - before);
      continue;
    }
    const values = what === "worst" ? each(row, (captioner) => valueOf(metric.name, captioner, row))
      : what === "flips" ? each(row, (captioner) => (core().rows.flips[captioner] || [])[row])
        : each(row, (captioner) => lengthOf("words", captioner, row));
    if (!values.length) continue;
    keys[row] = what === "worst" ? sign * values.reduce((sum, one) => sum + one, 0) / values.length : -Math.max(...values);
  }
  return keys;
}
const byName = new Intl.Collator("en", { numeric: true });
let namePlaces = null;
/* Places in the order of names, once: a collator is too slow to ask at each sort. */
function placesByName() {
  if (namePlaces) return namePlaces;
  const names = core().rows.video;
  const order = names.map((_, row) => row).sort((one, other) => byName.compare(names[one], names[other]) || one - other);
  namePlaces = new Int32Array(order.length);
  order.forEach((row, place) => { namePlaces[row] = place; });
  return namePlaces;
}
function sortRows() {
  const places = placesByName();
  if (state.sort === "name") { state.shown.sort((one, other) => places[one] - places[other]); return; }
  const keys = sortKeys();
  state.shown.sort((one, other) => {
    const [a, b] = [keys[one], keys[other]];
    if (a !== b) { if (Number.isNaN(a)) return Number.isNaN(b) ? one - other : 1; if (Number.isNaN(b)) return -1; return a - b; }
    return one - other;
  });
}
