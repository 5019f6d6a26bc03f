"use strict";
const NO_GROUP = 65535;
const RATED = 253;
const UNSCORED = 254;
const NOT_ASKED = 255;
const KINDS = ["right", "partly", "missed", "wrong", "other", "rated", "unscored"];
const SIGNS = { right: "✓", partly: "◐", missed: "○", wrong: "✗", other: "•", rated: "#", unscored: "?" };
const STATES = ["", "empty", "no caption", "not in this run"];
let core = null;
/* Of each task: codes of its questions' groups by section, and of its verdicts by captioner and run. */
const questions = [];
const state = {
  view: 0, metric: "", section: "", base: 0, differencesBy: "overall",
  search: "", group: ["", ""], verdict: "", captioner: -1, sort: "worst", shown: 50,
};

const byId = (id) => document.getElementById(id);
/* An element with attributes and children; texts are always texts, never markup. */
function h(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}
/* A labelled select of [value, text] pairs. */
function choice(label, id, options, value, choose) {
  const made = h("select", { id }, options.map(([key, text]) => h("option", { value: key }, text)));
  made.value = value;
  made.addEventListener("change", () => choose(made.value));
  return h("label", null, label, made);
}
/* Names come from elsewhere: "constructor" is a metric only if it was written. */
const lookup = (table, key) => (table && Object.hasOwn(table, key) ? table[key] : null);
const view = () => core.views[state.view];
const names = () => core.captioners;
const metricOf = (name) => view().metrics.find((metric) => metric.name === name) || view().metrics[0];
const headline = () => metricOf(view().headline);
const digitsOf = (metric) => (metric.highest > 1 ? 2 : 3);
const number = (value, metric) => (value === null || value === undefined ? "–" : value.toFixed(digitsOf(metric)));
const signed = (value, metric) => (value > 0 ? "+" : "") + value.toFixed(digitsOf(metric)).replace("-", "−");
const count = (n) => n.toLocaleString("en-US");
const plural = (n, noun) => count(n) + " " + noun + (n === 1 ? "" : "s");
const percent = (n, of) => (of ? (100 * n / of).toFixed(1) + "%" : "–");
const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
function interval(figure, metric) {
  if (!figure || figure[0] === null) return "–";
  return number(figure[0], metric) + (figure[1] === null ? "" : " [" + number(figure[1], metric) + ", " + number(figure[2], metric) + "]");
}
const scoreOf = (captioner, name, where = view()) => {
  const scores = where.scores[captioner];
  return scores ? lookup(scores.metrics, name) : null;
};
const valueOf = (row, captioner, name) => { const column = lookup(core.rows.values, name); return column ? column[captioner][row] : null; };
/* A value's share of its metric's range, for meters. */
const shareOf = (value, metric) => Math.max(0, Math.min(1, (value - metric.lowest) / (metric.highest - metric.lowest)));

async function gunzip(id) {
  const text = atob(byId(id).textContent.trim());
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}
async function unpack() {
  core = await (await gunzip("core")).json();
  const bytes = core.n_questions ? await (await gunzip("questions")).arrayBuffer() : new ArrayBuffer(0);
  let at = 0;
  const take = (Kind, n) => { const made = new Kind(bytes.slice(at, at + n * Kind.BYTES_PER_ELEMENT)); at += n * Kind.BYTES_PER_ELEMENT; return made; };
  let start = 0;
  for (const task of core.tasks) {
    const groups = task.sections.map(() => take(Uint16Array, task.n));
    const verdicts = task.n_runs.map((runs) => Array.from({ length: runs }, () => take(Uint8Array, task.n)));
    questions.push({ start, groups, verdicts });
    start += task.n;
  }
}
const blocks = new Map();
function block(index) {
  if (!blocks.has(index)) {
    blocks.set(index, byId("text-" + index) ? gunzip("text-" + index).then((packed) => packed.json()) : Promise.resolve(null));
    if (blocks.size > 8) blocks.delete(blocks.keys().next().value);
  }
  return blocks.get(index);
}
async function textsOf(row) {
  const texts = await block(Math.floor(row / core.block_rows));
  const at = (name) => (texts && texts[name][row % core.block_rows]) || [];
  return { captions: at("captions"), questions: at("questions"), answers: at("answers"), said: at("said") };
}
let frames = null;
function framesOf(row) {
  frames = frames || (byId("frames") ? JSON.parse(byId("frames").textContent) : {});
  return core.rows.frames[row] ? lookup(frames, core.rows.frames[row]) || [] : [];
}

/* Texts to search in, read once when a search begins. */
const searched = { texts: [], isRead: null };
function readTexts(done) {
  searched.isRead = searched.isRead || (async () => {
    for (let index = 0; index < core.n_blocks; index += 1) {
      const texts = await (await gunzip("text-" + index)).json();
      texts.captions.forEach((captions, row) => {
        const asked = texts.questions[row].map((text, place) => ((text || "") + " " + (texts.answers[row][place] || "")).toLowerCase());
        searched.texts.push({ captions: captions.map((text) => text || "").join("\n").toLowerCase(), asked });
      });
    }
  })();
  searched.isRead.then(done);
}

const taskOf = (row) => core.rows.task[row];
function kindOf(task, code) {
  if (code === UNSCORED) return "unscored";
  if (code === RATED) return "rated";
  const label = core.tasks[task].labels[code];
  return label ? label.kind : "";
}
const codeName = (task, code) => (code < RATED ? core.tasks[task].labels[code].name : kindOf(task, code));
/* Codes of a captioner's judge runs on a question. */
function codesOf(task, captioner, question) {
  return questions[task].verdicts[captioner].map((run) => run[question]).filter((code) => code !== NOT_ASKED);
}
const differs = (codes) => new Set(codes.filter((code) => code < RATED)).size > 1;
const rowsOfView = () => { const tasks = new Set(view().tasks); return core.rows.task.map((task, row) => (tasks.has(task) ? row : -1)).filter((row) => row >= 0); };

/* A test of questions of a task by the chosen category and verdict. */
function questionTest(task) {
  const [section, group] = state.group;
  const place = section ? core.tasks[task].sections.findIndex((one) => one.name === section) : -1;
  const code = place < 0 ? -1 : core.tasks[task].sections[place].groups.indexOf(group);
  const sides = state.captioner < 0 ? names().map((_, captioner) => captioner) : [state.captioner];
  const [what, wanted] = state.verdict.split(/:(.*)/s);
  const isMeant = (one) => (what === "label" ? codeName(task, one) === wanted : kindOf(task, one) === wanted);
  return (question) => {
    if (section && (code < 0 || questions[task].groups[place][question] !== code)) return false;
    if (!state.verdict) return true;
    if (what === "runs") return sides.some((captioner) => differs(codesOf(task, captioner, question)));
    if (what === "captioners") return differs(sides.map((captioner) => codesOf(task, captioner, question)[0]).filter((one) => one !== undefined));
    return sides.some((captioner) => codesOf(task, captioner, question).some(isMeant));
  };
}
/* The questions of a row that the filters mean, by their places in the row; null if the row is out. */
function matchesOf(row, tests) {
  const text = state.search.trim().toLowerCase();
  const found = text && !core.rows.video[row].toLowerCase().includes(text) ? searched.texts[row] : null;
  const inQuestions = found && !found.captions.includes(text);
  if (text && !found && !core.rows.video[row].toLowerCase().includes(text)) return null;
  const first = core.rows.first[row] - questions[taskOf(row)].start;
  const places = [];
  for (let place = 0; place < core.rows.n[row]; place += 1) {
    if ((!inQuestions || found.asked[place].includes(text)) && tests[taskOf(row)](first + place)) places.push(place);
  }
  const isAbout = state.group[0] || state.verdict || inQuestions;
  return isAbout && !places.length ? null : places;
}
function filteredRows() {
  const tests = core.tasks.map((_, task) => questionTest(task));
  const found = rowsOfView().map((row) => ({ row, places: matchesOf(row, tests) })).filter((one) => one.places);
  return sorted(found);
}
function sorted(found) {
  const metric = headline();
  const sign = metric.higher_is_better ? 1 : -1;
  const values = (row) => names().map((_, captioner) => valueOf(row, captioner, metric.name)).filter((value) => value !== null);
  const [what, from, to] = state.sort.split(":");
  const keys = {
    worst: (row) => sign * values(row).reduce((sum, value) => sum + value, 0) / values(row).length,
    spread: (row) => -spreadOf(row),
    change: (row) => sign * (valueOf(row, Number(to), metric.name) - valueOf(row, Number(from), metric.name)),
    longest: (row) => -Math.max(...names().map((_, captioner) => core.rows.words[captioner][row] || 0)),
    runs: (row) => -differingOf(row),
  };
  const byName = new Intl.Collator("en", { numeric: true }).compare;
  if (what === "name") return found.sort((a, b) => byName(core.rows.video[a.row], core.rows.video[b.row]) || a.row - b.row);
  found.forEach((one) => { const key = keys[what](one.row); one.key = Number.isNaN(key) ? Infinity : key; });
  return found.sort((a, b) => a.key - b.key || a.row - b.row);
}
function spreadOf(row) {
  const values = names().map((_, captioner) => valueOf(row, captioner, view().headline)).filter((value) => value !== null);
  return values.length > 1 ? Math.max(...values) - Math.min(...values) : 0;
}
/* Share of a row's questions whose verdict differs between judge runs, of the captioner with most. */
function differingOf(row) {
  const task = taskOf(row);
  const first = core.rows.first[row] - questions[task].start;
  const shares = names().map((_, captioner) => {
    let n = 0;
    for (let place = 0; place < core.rows.n[row]; place += 1) n += differs(codesOf(task, captioner, first + place)) ? 1 : 0;
    return n / Math.max(1, core.rows.n[row]);
  });
  return Math.max(...shares);
}
/* Verdicts of the view by group: section to group to, for each captioner, how often each kind. */
function kindsByGroup(section) {
  const counts = new Map();
  for (const task of view().tasks) {
    const place = core.tasks[task].sections.findIndex((one) => one.name === section);
    if (place < 0) continue;
    const kinds = Array.from({ length: 256 }, (_, code) => KINDS.indexOf(kindOf(task, code)));
    questions[task].verdicts.forEach((runs, captioner) => runs.forEach((run) => {
      for (let question = 0; question < run.length; question += 1) {
        const kind = kinds[run[question]];
        const group = questions[task].groups[place][question];
        if (kind < 0 || group === NO_GROUP) continue;
        const name = core.tasks[task].sections[place].groups[group];
        if (!counts.has(name)) counts.set(name, names().map(() => new Uint32Array(KINDS.length)));
        counts.get(name)[captioner][kind] += 1;
      }
    }));
  }
  return counts;
}
