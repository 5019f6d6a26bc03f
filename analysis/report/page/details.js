const MOST_QUESTIONS = 100;
const LONGEST_REPLY = 20000;
const NO_TEXT = "Captions and replies are not in this report: run with --log_samples.";
let opening = 0;

async function openRow(row) {
  if (row === undefined) return;
  opening += 1;
  const mine = opening;
  state.open = row;
  state.showsAll = false;
  drawRows();
  const panel = byId("details");
  const title = element("h3", core().rows.video[row], { id: "details-title", tabindex: "-1", dir: "auto" });
  panel.replaceChildren(title, element("p", "Unpacking…", { class: "soft" }));
  panel.hidden = false;
  title.focus({ preventScroll: true });
  panel.scrollIntoView({ block: "start" });
  let texts;
  try { texts = await textsOf(row); } catch (error) {
    panel.lastChild.textContent = "The texts of this video cannot be unpacked: " + error.message;
    return;
  }
  // Whoever was quicker than the unpacking has another row open.
  if (mine !== opening || state.open !== row) return;
  showDetails(panel, title, row, texts);
}
function closeRow() {
  state.open = -1;
  opening += 1;
  byId("details").hidden = true;
  byId("details").replaceChildren();
  drawRows();
}
function closeAndReturn() {
  closeRow();
  const grid = byId("video-table");
  showCursor();
  grid.focus({ preventScroll: true });
  grid.scrollIntoView({ block: "nearest" });
}
function step(by) {
  const place = state.shown.indexOf(state.open);
  const to = (place < 0 ? state.cursor : place) + by;
  if (to < 0 || to >= state.shown.length) return;
  state.cursor = to;
  showCursor();
  openRow(state.shown[to]);
}
function showDetails(panel, title, row, texts) {
  const { rows } = core();
  const place = state.shown.indexOf(row);
  const moves = element("div", undefined, { class: "bar" });
  const previous = button("Previous", () => step(-1), { id: "previous" });
  const next = button("Next", () => step(1), { id: "next" });
  previous.disabled = place === 0;
  next.disabled = place === state.shown.length - 1;
  moves.append(previous, next, button("Close", closeAndReturn, { id: "close" }));
  // The heading has the focus, which it would lose if it were taken out and put in again.
  while (panel.lastChild !== title) panel.lastChild.remove();
  panel.append(element("p", core().tasks[rows.task[row]].name + (place < 0 ? "" : " · " + count(place + 1) + " of " + count(state.shown.length)), { class: "soft" }), moves,
    framesElement(row), captionsElement(row, texts), questionsElement(row, texts));
}
function framesElement(row) {
  const frames = framesOf(row);
  if (!frames.length) return element("p", "No frames: " + (core().rows.no_frames[row] || "none of this video are in the report") + ".", { class: "note", dir: "auto" });
  const box = element("div", undefined, { class: "frames", tabindex: "0", role: "region", "aria-label": "Frames" });
  frames.forEach((source, place) => {
    // Only pictures that were written into this file.
    if (!String(source).startsWith("data:image/")) return;
    const picture = element("img", undefined, { alt: "frame " + (place + 1) + " of " + frames.length });
    picture.src = source;
    box.append(picture);
  });
  return box;
}
function captionsElement(row, texts) {
  const box = element("section", undefined, { "aria-label": "Captions" });
  const hasTexts = captioners().some((_, captioner) => typeof texts.captions[captioner] === "string");
  const bar = element("div", undefined, { class: "bar" });
  const grid = element("div", undefined, { class: "captions" });
  let baseline = ((view().pairs || [])[0] || { baseline: 0 }).baseline;
  const fillCaptions = () => grid.replaceChildren(...captioners().map((_, captioner) => captionElement(captioner, baseline, row, texts)));
  if (hasTexts && captioners().length > 2) {
    bar.append(field("Differences are marked from", select(captioners().map((captioner, place) => [String(place), captioner.name]), String(baseline), (value) => { baseline = Number(value); fillCaptions(); })));
  }
  fillCaptions();
  box.append(bar);
  if (!hasTexts && !core().has_replies) box.append(element("p", NO_TEXT, { class: "note" }));
  box.append(grid);
  return box;
}
function captionElement(captioner, baseline, row, texts) {
  const box = element("section");
  box.append(element("h4", nameOf(captioner), { class: "captioner-" + captioner % 10, dir: "auto" }));
  const stands = STATES[(core().rows.state[captioner] || [])[row] || 0];
  const value = valueOf(view().headline, captioner, row);
  const said = value === null ? [stands || "no value"] : [view().headline + " " + valueText(captioner, row, metricOf(view().headline))];
  for (const what of view().lengths || []) if (lengthOf(what, captioner, row) !== null) said.push(count(lengthOf(what, captioner, row)) + " " + what);
  box.append(element("p", said.join(" · "), { class: "soft" }));
  const text = texts.captions[captioner];
  if (typeof text !== "string") { box.append(element("p", stands ? "(" + stands + ")" : "(the caption is not in this report)", { class: "note" })); return box; }
  const shown = element("div", undefined, { class: "text caption", dir: "auto", tabindex: "0", role: "region", "aria-label": "Caption of " + nameOf(captioner) });
  if (!text.trim()) shown.textContent = "(the caption is empty)";
  else showMarked(shown, text, markedSide(captioner, baseline, texts));
  box.append(shown);
  return box;
}
/* What of a caption is to be marked: with two captioners, both sides; with more, all but the one compared with. */
function markedSide(captioner, baseline, texts) {
  const isBaseline = captioner === baseline;
  if (isBaseline && captioners().length !== 2) return null;
  const [before, after] = [texts.captions[baseline], texts.captions[isBaseline ? 1 - baseline : captioner]];
  if (typeof before !== "string" || typeof after !== "string" || !before.trim() || !after.trim()) return null;
  const marks = wordDifferences(before, after);
  return marks && { isKept: isBaseline ? marks.before : marks.after, name: isBaseline ? "del" : "ins" };
}
function showMarked(box, text, side) {
  const words = wordsOf(text);
  if (!side) { box.textContent = text; return; }
  let place = 0;
  while (place < words.length) {
    const kept = side.isKept[place];
    let end = place;
    while (end < words.length && side.isKept[end] === kept) end += 1;
    const run = words.slice(place, end).join("");
    if (kept) box.append(run);
    else {
      const mark = element(side.name);
      mark.append(element("span", "[only here: ", { class: "unseen" }), run.trimEnd(), element("span", "]", { class: "unseen" }));
      box.append(mark, run.slice(run.trimEnd().length));
    }
    place = end;
  }
}

function questionsElement(row, texts) {
  const box = element("section", undefined, { "aria-label": "Questions" });
  const n = core().rows.n[row];
  const matching = matchesOf(row);
  const isFiltered = matching.length && matching.length < n;
  const all = Array.from({ length: n }, (_, place) => place);
  const matches = new Set(matching);
  const chosen = isFiltered && !state.showsAll ? matching : isFiltered ? [...matching, ...all.filter((place) => !matches.has(place))] : all;
  const shown = chosen.slice(0, state.showsAll ? chosen.length : MOST_QUESTIONS);
  box.append(element("h4", isFiltered ? "Questions: " + count(matching.length) + " of " + count(n) + " match the filters" : several(n, "question")));
  if (!n) return box;
  if (!texts.questions.length && !core().has_replies) box.append(element("p", NO_TEXT, { class: "note" }));
  box.append(...shown.map((place) => questionElement(row, place, texts, isFiltered && matches.has(place))));
  if (shown.length < n) {
    box.append(button("Show all " + count(n) + " questions", () => {
      state.showsAll = true;
      const again = questionsElement(row, texts);
      box.replaceWith(again);
      // The button is gone; who pressed it reads on where it stood.
      const following = again.querySelectorAll(".question h5, .question")[shown.length];
      if (following) { following.tabIndex = -1; following.focus(); }
    }, { id: "show-all" }));
  }
  return box;
}
function questionElement(row, place, texts, matches) {
  const box = element("div", undefined, { class: "question" + (matches ? " matches" : "") });
  const title = element("p", undefined, { dir: "auto" });
  title.append(element("strong", String(place + 1) + ". " + (texts.questions[place] || "Question " + (place + 1))));
  if (matches) title.append(element("span", " (matches)", { class: "soft" }));
  box.append(title);
  const groups = groupsOf(row, place);
  if (groups.length) box.append(element("p", groups.join(" · "), { class: "soft", dir: "auto" }));
  if (texts.answers[place]) box.append(element("p", "Gold: " + texts.answers[place], { dir: "auto" }));
  const said = element("div", undefined, { class: "said" });
  said.append(...captioners().map((captioner, index) => {
    const side = element("div");
    side.append(element("p", captioner.name, { class: "soft captioner-" + index % 10, dir: "auto" }));
    const nRuns = runsIn(core().rows.task[row], index);
    for (let run = 0; run < nRuns; run += 1) side.append(judgementElement(row, place, index, run, texts));
    return side;
  }));
  box.append(said);
  return box;
}
function groupsOf(row, place) {
  const question = core().rows.first[row] + place;
  const made = [];
  core().tasks[core().rows.task[row]].sections.forEach((section, index) => {
    const code = packs.groups[index] ? packs.groups[index][question] : NO_GROUP;
    if (code !== NO_GROUP && section.groups[code] !== undefined) made.push(section.name + ": " + section.groups[code]);
  });
  return made;
}
function judgementElement(row, place, captioner, run, texts) {
  const code = packs.verdicts[captioner][run][core().rows.first[row] + place];
  const labels = core().tasks[core().rows.task[row]].labels;
  const kind = kindOf(code, labels);
  const columnsOfRun = (texts.said[captioner] || [])[run] || {};
  const at = (column) => { const value = (columnsOfRun[column] || [])[place]; return value === null || value === undefined ? "" : String(value); };
  const name = kind === "unscored" ? "unscored" : kind === "rated" ? "rated" : kind ? labels[code].name : "not asked";
  const box = element("div", undefined, { class: "judgement" });
  const line = element("p", undefined, { dir: "auto" });
  if (runsIn(core().rows.task[row], captioner) > 1) line.append(element("span", "Run " + (run + 1) + ": ", { class: "soft" }));
  line.append(element("span", (kind ? SIGNS[kind] + " " : "") + name, { class: "verdict" + (kind ? " kind-" + kind : "") }));
  if (at("words")) line.append(" " + at("words"));
  box.append(line);
  if (at("answer")) box.append(element("p", "Judge's answer: " + at("answer"), { dir: "auto" }));
  if (at("reason")) box.append(element("p", "Why: " + at("reason"), { class: "trouble", dir: "auto" }));
  if (at("reply")) box.append(replyElement(at("reply"), captioner, run));
  return box;
}
function replyElement(reply, captioner, run) {
  const box = element("details");
  box.append(element("summary", "Raw reply"));
  // Filled when opened: a hundred questions have hundreds of replies.
  box.addEventListener("toggle", () => {
    if (!box.open || box.children.length > 1) return;
    const text = element("div", reply.slice(0, LONGEST_REPLY), { class: "text reply", dir: "auto", tabindex: "0", role: "region", "aria-label": "Raw reply about " + nameOf(captioner) + ", run " + (run + 1) });
    box.append(text);
    if (reply.length > LONGEST_REPLY) {
      const more = button("Show all " + count(reply.length) + " characters", () => { text.textContent = reply; more.remove(); text.focus(); });
      box.append(more);
    }
  });
  return box;
}
