"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const isPairs = data.kind === "pair";
const NOT_KEPT = "This browser keeps nothing of this page: export before you close it.";
const PREFIX = "lmms-eval-captions:" + data.page;
const state = { annotator: "", rows: {}, place: 0, draft: null, seconds: 0, shownAt: 0, demanded: null, exported: 0, keeps: true };

function read(key) {
  try { return localStorage.getItem(key); } catch { state.keeps = false; return null; }
}
function write(key, text) {
  try { localStorage.setItem(key, text); } catch { state.keeps = false; }
}
const storeKey = () => PREFIX + ":" + state.annotator;
const item = () => data.items[state.place];
const rowOf = (question) => state.rows[question.id];
const grading = (question) => data.gradings[question.grading];
const choicesOf = (question) => question.choices || grading(question).choices;

const itemIds = new Set(data.items.map((question) => question.id));
function isRow(row) {
  return Boolean(row) && (row.label === null || Boolean(row.label && row.label.ratings));
}
function stored() {
  try { return JSON.parse(read(storeKey())) || {}; } catch { return {}; }
}
function take(rows) {
  // Another tab may have the page open, too: of each answer the later one counts.
  for (const [id, row] of Object.entries(rows || {})) {
    const mine = state.rows[id];
    if (itemIds.has(id) && isRow(row) && (!mine || String(mine.answered_at) < String(row.answered_at))) state.rows[id] = row;
  }
}
function keep() {
  take(stored().rows);
  write(storeKey(), JSON.stringify({ rows: state.rows, place: state.place, exported: state.exported }));
  write(PREFIX, state.annotator);
}
function showStart(isNamed) {
  byId("start").hidden = isNamed;
  for (const part of document.querySelectorAll(".named")) part.hidden = !isNamed;
}
function askName(name) {
  state.annotator = "";
  byId("annotator").value = name;
  showStart(false);
  // With a name filled in, a shortcut that comes too early is not typed behind it.
  byId(name ? "begin" : "annotator").focus();
}
function begin(name) {
  state.annotator = name;
  byId("who").textContent = name;
  showStart(true);
  const kept = stored();
  state.rows = {}; state.draft = null;
  take(kept.rows);
  state.exported = kept.exported | 0;
  go(kept.place | 0);
  if (!state.keeps) say(NOT_KEPT);
}
function say(text) { byId("message").textContent = text; }
function element(name, text, attributes) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  return made;
}
const isAnswered = (row) => Boolean(row && !row.skipped);
function nAnswered() { return data.items.filter((question) => isAnswered(rowOf(question))).length; }

function labelText(label, question) {
  if (!label) return "an unreadable reply";
  const named = choicesOf(question).find((choice) => choice.name === label.choice);
  const words = label.choice === null ? [] : [named ? named.text : label.choice];
  for (const [name, value] of Object.entries(label.ratings)) words.push(name + " " + value);
  return words.join(", ");
}
function showProgress() {
  const rows = Object.values(state.rows);
  const skipped = rows.filter((row) => row.skipped).length;
  byId("progress").max = data.items.length;
  byId("progress").value = rows.length;
  const open = rows.length - state.exported;
  byId("count").textContent = nAnswered() + " of " + data.items.length + " answered" +
    (skipped ? ", " + skipped + " skipped" : "") + (open > 0 ? ", " + open + " not exported" : "");
}
function showFrames(question, open) {
  const frames = data.frames[question.frames] || [];
  const box = byId("frames");
  box.replaceChildren();
  box.hidden = !frames.length || !open;
  if (!box.hidden) frames.forEach((source, place) => {
    const picture = element("img", undefined, { alt: "frame " + (place + 1) + " of " + frames.length });
    picture.src = source;
    box.append(picture);
  });
  byId("no-frames").textContent = !frames.length ? "No frames: " + question.no_frames + "."
    : open ? "" : "Frames are shown after the answer, which is to come from the caption alone.";
}
function showCaptions(question) {
  byId("captions").replaceChildren(...question.captions.map((place, index) => {
    const section = element("section");
    const title = isPairs ? (index ? "Right caption" : "Left caption") : "Caption";
    section.append(element("h2", title));
    const text = data.captions[place];
    section.append(element("div", text.trim() ? text : "(the caption is empty)", { class: "text caption", dir: "auto", tabindex: "0", role: "region", "aria-label": title }));
    return section;
  }));
}
function showChoices(question) {
  const label = current();
  const box = byId("choices");
  if (box.dataset.item === question.id) {
    // In place, so that the one that was pressed keeps the focus.
    choicesOf(question).forEach((choice, place) => box.children[place].setAttribute("aria-pressed", String(label.choice === choice.name)));
    return;
  }
  box.dataset.item = question.id;
  box.replaceChildren(...choicesOf(question).map((choice) => {
    const button = element("button", choice.text + " ", { type: "button", "aria-pressed": String(label.choice === choice.name), "data-key": choice.key });
    button.append(element("kbd", choice.key));
    button.addEventListener("click", () => choose(choice.name));
    return button;
  }));
}
function showRatings(question) {
  const form = byId("ratings");
  const label = current();
  form.replaceChildren(...grading(question).ratings.map((rating) => {
    const box = element("label", rating.text + (rating.is_optional ? " (optional)" : "") + " ");
    const input = element("input", undefined, { type: "number", min: rating.low, max: rating.high, step: "any", name: rating.name, inputmode: "decimal" });
    if (label.ratings[rating.name] !== undefined) input.value = label.ratings[rating.name];
    input.addEventListener("input", () => rate(rating, input));
    box.append(input);
    return box;
  }));
}
function current() {
  if (state.draft) return state.draft;
  const row = rowOf(item());
  return row && row.label ? row.label : { choice: null, ratings: {} };
}
function draft() {
  const label = current();
  state.draft = { choice: label.choice, ratings: { ...label.ratings } };
  return state.draft;
}
function showJudge(question) {
  const row = rowOf(question);
  const shows = !isPairs && data.reveal !== "never" && Boolean(row) && (data.reveal === "after" || row.judge_seen || state.demanded === question.id);
  if (shows && !row.judge_seen) { row.judge_seen = true; keep(); }
  byId("judge").hidden = !shows;
  byId("verdict").textContent = shows ? question.judge.map((label) => labelText(label, question)).join("\n") : "";
  byId("reveal").hidden = isPairs || data.reveal !== "demand" || shows;
  byId("reveal").disabled = !row;
}
function show() {
  const question = item();
  const row = rowOf(question);
  const open = grading(question).shows_answer || Boolean(row);
  // Whoever has seen the answer is no longer asked blindly.
  if (row && !grading(question).shows_answer) row.judge_seen = true;
  byId("where").textContent = (state.place + 1) + " of " + data.items.length + " · " + question.task + " · " + question.video_id;
  showFrames(question, open);
  showCaptions(question);
  byId("references").hidden = !question.references.length;
  byId("references").querySelector("ul").replaceChildren(...question.references.map((text) => element("li", text, { dir: "auto" })));
  byId("asked").hidden = !question.question;
  byId("question").textContent = question.question;
  byId("answer-title").hidden = byId("answer").hidden = !question.answer || !open;
  byId("answer").textContent = open ? question.answer : "";
  byId("asks").textContent = grading(question).asks;
  showChoices(question);
  showRatings(question);
  showJudge(question);
  showProgress();
  byId("previous").disabled = state.place === 0;
}
function visible() { return document.visibilityState === "visible"; }
function tick() {
  if (state.shownAt) state.seconds += (performance.now() - state.shownAt) / 1000;
  state.shownAt = visible() ? performance.now() : 0;
}
function go(place) {
  const isLost = state.draft !== null && !keepDraft();
  state.place = Math.min(Math.max(0, place), data.items.length - 1);
  state.draft = null; state.seconds = 0; state.shownAt = 0;
  tick(); say(isLost ? "The previous answer was not complete and is not kept." : ""); show();
  keep();
  byId("main").focus();
  window.scrollTo(0, 0);
}
function missing(question, label) {
  if (choicesOf(question).length && label.choice === null) return "Choose an answer first, or say that you cannot tell.";
  for (const rating of grading(question).ratings) {
    const value = label.ratings[rating.name];
    if (value === undefined && !rating.is_optional) return "Give a number for “" + rating.name + "” first.";
    if (value !== undefined && !(value >= rating.low && value <= rating.high)) {
      return "“" + rating.name + "” goes from " + rating.low + " to " + rating.high + ".";
    }
  }
  return "";
}
function keepDraft() { return state.draft !== null && !missing(item(), state.draft) && save(state.draft, false); }
function isSame(label, other) {
  const names = new Set([...Object.keys(label.ratings), ...Object.keys(other.ratings)]);
  return label.choice === other.choice && [...names].every((name) => label.ratings[name] === other.ratings[name]);
}
function save(label, skipped) {
  const question = item();
  const before = rowOf(question);
  const isChanged = Boolean(before) && !(before.label && !skipped && isSame(before.label, label));
  tick();
  state.rows[question.id] = {
    ...data.about, ...question.row, item: question.id, page: data.page, kind: data.kind, label: skipped ? null : label, skipped,
    judge: question.judge, annotator: state.annotator, seconds: Math.round((state.seconds + (before ? before.seconds : 0)) * 10) / 10,
    judge_seen: Boolean(before && before.judge_seen),
    changed_after_reveal: Boolean(before && (before.changed_after_reveal || (before.judge_seen && isChanged))), answered_at: new Date().toISOString(),
  };
  state.seconds = 0; state.draft = null;
  state.exported = Math.min(state.exported, Object.keys(state.rows).length - 1);
  keep(); say(state.keeps ? "" : NOT_KEPT);
  show();
  return true;
}
function choose(name) {
  const label = draft();
  label.choice = name;
  if (!grading(item()).ratings.length) save(label, false);
  else showChoices(item());
}
function rate(rating, input) {
  const label = draft();
  if (input.value === "") delete label.ratings[rating.name];
  else label.ratings[rating.name] = Number(input.value);
}
function next() {
  const question = item();
  const isNew = state.draft !== null || !rowOf(question);
  if (isNew) {
    const problem = missing(question, current());
    if (problem) { say(problem); return; }
    if (!save(current(), false)) return;
    if (!byId("judge").hidden) return;
  }
  advance();
}
function advance() {
  const places = data.items.map((_, step) => (state.place + 1 + step) % data.items.length);
  const open = places.find((place) => !rowOf(data.items[place]));
  if (open === undefined) { go(state.place); say("All " + data.items.length + " are done. Export them now."); }
  else go(open);
}
function skip() { if (save(null, true)) advance(); }
function exportRows() {
  keepDraft();
  const rows = data.items.map(rowOf).filter(Boolean);
  if (!rows.length) { say("There is nothing to export yet."); return; }
  const text = rows.map((row) => JSON.stringify(row) + "\n").join("");
  const link = element("a", undefined, { download: "labels-" + data.page + "-" + state.annotator.replace(/[^\p{L}\p{N}]+/gu, "-") + ".jsonl" });
  link.href = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  state.exported = rows.length;
  keep(); showProgress();
  say(rows.length + " answers exported.");
}
async function importRows(file) {
  const rows = [];
  let left = 0;
  for (const line of (await file.text()).split("\n")) {
    if (!line.trim()) continue;
    let row = null;
    try { row = JSON.parse(line); } catch { row = null; }
    if (isRow(row) && row.page === data.page && itemIds.has(row.item) && row.annotator) rows.push(row); else left += 1;
  }
  if (!state.annotator) {
    if (!rows.length) { say("This file has no answers of this page."); return; }
    begin(String(rows[0].annotator));
  }
  let taken = 0;
  for (const row of rows) {
    if (String(row.annotator) !== state.annotator) left += 1;
    else { take({ [row.item]: row }); taken += 1; }
  }
  state.exported = taken === Object.keys(state.rows).length ? taken : state.exported;
  go(state.place);
  say(taken + " answers imported" + (left ? ", " + left + " lines left out: they are of another page or person, or broken" : "") + ".");
}
function isTyping(target) { return target.tagName === "INPUT" && target.type !== "file"; }
document.addEventListener("keydown", (event) => {
  if (!state.annotator || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const field = event.target;
  if (event.key === "Enter" && field.form === byId("ratings") && isTyping(field)) {
    const fields = [...byId("ratings").elements];
    const following = fields[fields.indexOf(field) + 1];
    if (following) following.focus(); else { byId("main").focus(); next(); }
    event.preventDefault();
    return;
  }
  if (isTyping(field)) return;
  // A key that is held down answers one question, not those after it.
  if (event.repeat && (event.key === "Enter" || event.key.length === 1)) { event.preventDefault(); return; }
  if (event.key === "Enter") { if (field.tagName !== "BUTTON" || field.id === "next") { event.preventDefault(); next(); } return; }
  const key = event.key.toLowerCase();
  const choice = choicesOf(item()).find((known) => known.key === key);
  const rating = grading(item()).ratings.find((known) => known.is_optional && known.high <= 9);
  const needed = [...byId("ratings").elements].find((input) => input.value === "" && !rating);
  if (choice) choose(choice.name);
  else if (rating && /^\d$/.test(event.key) && Number(event.key) <= rating.high) { draft().ratings[rating.name] = Number(event.key); showRatings(item()); }
  else if (needed && /^\d$/.test(event.key)) { needed.focus(); return; }
  else if (event.key === "ArrowLeft") go(state.place - 1);
  else if (event.key === "ArrowRight") go(state.place + 1);
  else if (key === "s") skip();
  else if (key === "x") exportRows();
  else if (key === "r" && !byId("reveal").hidden) reveal();
  else return;
  event.preventDefault();
});
function reveal() {
  if (rowOf(item())) { state.demanded = item().id; showJudge(item()); }
}
byId("next").addEventListener("click", next);
byId("previous").addEventListener("click", () => go(state.place - 1));
byId("skip").addEventListener("click", skip);
byId("reveal").addEventListener("click", reveal);
byId("export").addEventListener("click", exportRows);
byId("import").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", (event) => { if (event.target.files[0]) importRows(event.target.files[0]); event.target.value = ""; });
byId("start").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = byId("annotator").value.trim();
  if (name) begin(name);
  else { say("Type your name first: every answer carries it."); byId("annotator").focus(); }
});
byId("rename").addEventListener("click", () => { keepDraft(); say(""); askName(state.annotator); });
byId("ratings").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("visibilitychange", tick);
window.addEventListener("beforeunload", (event) => {
  if (!state.keeps && Object.keys(state.rows).length > state.exported) event.preventDefault();
});
window.addEventListener("storage", (event) => {
  if (!state.annotator || event.key !== storeKey()) return;
  take(stored().rows);
  if (state.draft === null) show(); else showProgress();
});
const remembered = read(PREFIX);
if (remembered) begin(remembered); else askName("");
