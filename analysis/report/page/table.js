const ROW_HEIGHT = 40;
const HEAD_HEIGHT = 60;
const MOST_GROUPS = 300;
let columns = [];

/* How often each kind of verdict was given, over all judge runs. */
function verdictCounts(captioner, row) {
  const counts = new Int32Array(KINDS.length);
  const { first, n, task } = core().rows;
  const labels = core().tasks[task[row]].labels;
  for (const run of packs.verdicts[captioner]) {
    for (let question = first[row]; question < first[row] + n[row]; question += 1) {
      const kind = kindOf(run[question], labels);
      if (kind) counts[KINDS.indexOf(kind)] += 1;
    }
  }
  return counts;
}
function kindOf(code, labels) {
  if (code === UNSCORED) return "unscored";
  if (code === RATED) return "rated";
  if (code >= labels.length) return "";
  return KINDS.includes(labels[code].kind) ? labels[code].kind : "other";
}
function verdictsCell(captioner, row) {
  const cell = element("div", undefined, { class: "cell", role: "gridcell" });
  const counts = verdictCounts(captioner, row);
  const shown = KINDS.map((kind, place) => [kind, counts[place]]).filter(([, times]) => times);
  if (!shown.length) { cell.textContent = "–"; return cell; }
  const bar = element("div", undefined, { class: "verdicts", "aria-hidden": "true" });
  const numbers = element("div", undefined, { class: "counts" });
  for (const [kind, times] of shown) {
    const part = element("span", undefined, { class: "fills-" + kind });
    part.style.flexGrow = times;
    bar.append(part);
    const said = element("span", undefined, { class: "kind-" + kind });
    said.append(element("span", SIGNS[kind] + " ", { "aria-hidden": "true" }), String(times), element("span", " " + kind + ",", { class: "unseen" }));
    numbers.append(said);
  }
  cell.append(bar, numbers);
  return cell;
}
function textCell(text, isNumber, more) {
  return element("div", text, { class: "cell" + (isNumber ? " number" : "") + (more ? " " + more : ""), role: "gridcell", dir: isNumber ? "ltr" : "auto" });
}
function valueText(captioner, row, metric) {
  const value = valueOf(metric.name, captioner, row);
  const stands = (core().rows.state[captioner] || [])[row] || 0;
  return value === null ? STATES[stands] || "–" : number(value, metric) + (stands ? " " + STATES[stands] : "");
}
function differenceCell(row, metric) {
  const pair = (view().pairs || [])[0] || { baseline: 0, other: 1 };
  const before = valueOf(metric.name, pair.baseline, row);
  const after = valueOf(metric.name, pair.other, row);
  if (before === null || after === null) return textCell("–", true);
  const gain = (after - before) * (metric.higher_is_better === false ? -1 : 1);
  return textCell(signed(after - before, metric), true, gain > 0 ? "better" : gain < 0 ? "worse" : "tied");
}
function columnsOfView() {
  const metric = metricOf(view().headline);
  const { rows } = core();
  const made = [{ title: "Video", width: "13rem", cell: (row) => textCell(rows.video[row], false, "first") }];
  if (view().tasks.length > 1) made.push({ title: "Task", width: "11rem", cell: (row) => textCell(core().tasks[rows.task[row]].name) });
  made.push({ title: "Questions shown", width: "6rem", isNumber: true, cell: (row) => textCell(state.matched[row] === rows.n[row] ? String(rows.n[row]) : state.matched[row] + " of " + rows.n[row], true) });
  // What the table is sorted by at first stands where it is seen.
  if (captioners().length === 2) {
    const pair = (view().pairs || [])[0] || { baseline: 0, other: 1 };
    made.push({ title: shortOf(nameOf(pair.other), 18) + " − " + shortOf(nameOf(pair.baseline), 18), width: "7rem", isNumber: true, cell: (row) => differenceCell(row, metric) });
  }
  captioners().forEach((captioner, place) => {
    made.push({ title: shortOf(captioner.name, 24) + ": " + shortOf(metric.name, 16), width: "8rem", isNumber: true, cell: (row) => textCell(valueText(place, row, metric), true) });
    made.push({ title: shortOf(captioner.name, 30) + ": verdicts" + (runsOf(place) > 1 ? " of " + runsOf(place) + " judge runs" : ""), width: "12rem", cell: (row) => verdictsCell(place, row) });
    if (runsOf(place) > 1) made.push({ title: shortOf(captioner.name, 20) + ": differs between runs", width: "6.5rem", isNumber: true, cell: (row) => textCell(share((rows.flips[place] || [])[row]), true) });
    if ((view().lengths || []).includes("words")) made.push({ title: shortOf(captioner.name, 20) + ": words", width: "5.5rem", isNumber: true, cell: (row) => textCell(lengthText("words", place, row), true) });
  });
  return made;
}
function share(value) { return value === null || value === undefined ? "–" : (100 * value).toFixed(0) + "%"; }
function lengthText(what, captioner, row) {
  const value = lengthOf(what, captioner, row);
  return value === null ? "–" : count(value);
}

function makeTable() {
  const grid = element("div", undefined, { class: "grid", id: "video-table", role: "grid", tabindex: "0", "aria-label": "Videos; Enter opens one", "aria-readonly": "true" });
  const head = element("div", undefined, { class: "head", role: "rowgroup" });
  head.append(element("div", undefined, { class: "row", role: "row", "aria-rowindex": "1" }));
  grid.append(head, element("div", undefined, { class: "body", role: "rowgroup" }));
  grid.addEventListener("scroll", () => requestAnimationFrame(drawRows), { passive: true });
  grid.addEventListener("keydown", moveInTable);
  grid.addEventListener("click", (event) => {
    const row = event.target.closest(".body .row");
    if (row) { state.cursor = Number(row.dataset.place); drawRows(); openRow(state.shown[state.cursor]); }
  });
  new ResizeObserver(() => drawRows()).observe(grid);
  return grid;
}
function drawHead() {
  columns = columnsOfView();
  const grid = byId("video-table");
  grid.style.setProperty("--columns", columns.map((column) => column.width).join(" "));
  grid.setAttribute("aria-colcount", columns.length);
  grid.querySelector(".head .row").replaceChildren(...columns.map((column, place) =>
    element("div", column.title, { class: "cell" + (place ? "" : " first") + (column.isNumber ? " number" : ""), role: "columnheader", title: column.title })));
}
function drawRows() {
  const grid = byId("video-table");
  const body = grid.querySelector(".body");
  const total = state.shown.length;
  grid.classList.toggle("is-short", total < 9);
  grid.setAttribute("aria-rowcount", total + 1);
  body.style.height = Math.max(1, total) * ROW_HEIGHT + "px";
  // The body is as wide as its rows, or the head would end where they go on.
  body.style.width = Math.max(grid.querySelector(".head").scrollWidth, 0) + "px";
  const first = Math.max(0, Math.floor(grid.scrollTop / ROW_HEIGHT) - 3);
  const last = Math.min(total, first + Math.ceil(Math.max(grid.clientHeight, 10 * ROW_HEIGHT) / ROW_HEIGHT) + 6);
  const made = [];
  for (let place = first; place < last; place += 1) made.push(rowElement(place));
  if (!total) made.push(emptyRow());
  body.replaceChildren(...made);
  if (total && state.cursor >= first && state.cursor < last) grid.setAttribute("aria-activedescendant", "row-" + state.cursor);
  else grid.removeAttribute("aria-activedescendant");
}
function emptyRow() {
  const made = element("div", undefined, { class: "row", role: "row", "aria-rowindex": "2" });
  made.append(textCell("Nothing matches."));
  return made;
}
function rowElement(place) {
  const row = state.shown[place];
  const made = element("div", undefined, {
    class: "row" + (place === state.cursor ? " at" : ""), role: "row", id: "row-" + place, "aria-rowindex": place + 2, "data-place": place, "aria-selected": String(row === state.open),
  });
  made.style.top = place * ROW_HEIGHT + "px";
  made.append(...columns.map((column) => column.cell(row)));
  return made;
}
function showCursor() {
  const grid = byId("video-table");
  const top = state.cursor * ROW_HEIGHT;
  const room = Math.max(ROW_HEIGHT, grid.clientHeight - HEAD_HEIGHT - 18);
  if (top < grid.scrollTop) grid.scrollTop = top;
  else if (top + ROW_HEIGHT > grid.scrollTop + room) grid.scrollTop = top + ROW_HEIGHT - room;
  drawRows();
}
function moveInTable(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const last = state.shown.length - 1;
  const page = Math.max(1, Math.floor((byId("video-table").clientHeight - HEAD_HEIGHT) / ROW_HEIGHT) - 1);
  const to = { ArrowUp: state.cursor - 1, ArrowDown: state.cursor + 1, PageUp: state.cursor - page, PageDown: state.cursor + page, Home: 0, End: last }[event.key];
  if (event.key === "Enter" && last >= 0) openRow(state.shown[state.cursor]);
  else if (to !== undefined) { state.cursor = Math.max(0, Math.min(last, to)); showCursor(); }
  else return;
  event.preventDefault();
}

/* Filters, sorts and shows the table; says how long it took since the event at the given time. */
function apply(what = "filter", at = performance.now(), staysThere = false) {
  if (!byId("video-table")) return;
  const totals = filterRows();
  sortRows();
  state.cursor = staysThere ? Math.min(state.cursor, Math.max(0, state.shown.length - 1)) : 0;
  if (!staysThere) byId("video-table").scrollTop = 0;
  drawRows();
  byId("found").textContent = count(state.shown.length) + " of " + several(totals.rows, "caption") + ", " + count(totals.shownQuestions) + " of " + several(totals.questions, "question") + searchNote();
  showBrushNote();
  timings.push({ what, ms: performance.now() - at });
}
function searchNote() {
  if (searched.trouble) return ". " + searched.trouble;
  if (!state.search.trim() || !searched.isStarted || searched.n >= nRows()) return "";
  return "; searching in captions of " + count(searched.n) + " of " + several(nRows(), "video");
}
function showBrushNote() {
  const brush = state.brush;
  byId("brush-note").hidden = !brush;
  if (!brush) return;
  const upTo = Number.isFinite(brush.x[1]) ? " to " + Math.round(brush.x[1]) : " and more";
  const metric = metricOf(brush.metric);
  byId("brush-note").firstChild.textContent = "Only captions of " + Math.round(brush.x[0]) + upTo + " " + brush.axis + (brush.y ? " and " + metric.name + " from " + number(brush.y[0], metric) + " to " + number(brush.y[1], metric) : "") + ". ";
}
function sortChoices() {
  const made = [["worst", "worst first"]];
  const pairs = [];
  for (const pair of view().pairs || []) pairs.push([pair.baseline, pair.other]);
  captioners().forEach((_, from) => captioners().forEach((__, to) => {
    if (from !== to && !pairs.some(([one, other]) => one === from && other === to)) pairs.push([from, to]);
  }));
  for (const [from, to] of pairs) made.push(["regression:" + from + ":" + to, "regression from " + nameOf(from) + " to " + nameOf(to)]);
  if (hasRuns()) made.push(["flips", "disagreement between judge runs"]);
  made.push(["name", "name"]);
  if ((view().lengths || []).includes("words")) made.push(["longest", "longest"]);
  return made;
}
/* Sections of the view's tasks with their groups, each once, in the order of the tasks. */
function categoriesOfView() {
  const sections = new Map();
  for (const index of view().tasks) for (const section of core().tasks[index].sections) {
    if (!sections.has(section.name)) sections.set(section.name, new Set());
    for (const group of section.groups) sections.get(section.name).add(group);
  }
  return sections;
}
/* Names may hold anything: what a choice stands for is found by its place. */
let categories = [];
function categoryChoices() {
  categories = [];
  const made = [["", "all"]];
  for (const [section, groups] of categoriesOfView()) {
    const shown = [...groups].slice(0, MOST_GROUPS);
    const options = shown.map((group) => { categories.push([section, group]); return [String(categories.length - 1), shortOf(group, 80)]; });
    const nMore = groups.size - shown.length;
    made.push({ title: section + (nMore ? ", the largest (" + count(nMore) + " more)" : ""), options });
  }
  return made;
}
function verdictChoices() {
  const labels = new Map();
  for (const index of view().tasks) for (const label of core().tasks[index].labels) labels.set(label.name, label.kind);
  const kinds = [...new Set(labels.values())];
  const made = [["", "all"]];
  if (labels.size) made.push({ title: "verdict", options: [...labels.keys()].map((name) => ["label:" + name, name]) });
  if (kinds.length) made.push({ title: "kind of verdict", options: kinds.map((kind) => ["kind:" + kind, SIGNS[kind] + " " + kind]) });
  made.push(["unscored", "unscored"]);
  // Of numbers it is not known here which count as the same.
  if (labels.size && hasRuns()) made.push(["runs", "differs between judge runs"]);
  if (labels.size && captioners().length > 1) made.push(["captioners", "differs between captioners"]);
  return made;
}
function makeFilters() {
  const bar = element("div", undefined, { class: "bar", role: "search", "aria-label": "Filters of the table of videos" });
  const search = element("input", undefined, { type: "search", id: "search", autocomplete: "off", spellcheck: "false" });
  search.addEventListener("focus", startSearch);
  search.addEventListener("input", (event) => { state.search = search.value; startSearch(); apply("search", event.timeStamp); });
  const chooseCategory = (value, at) => { [state.section, state.group] = value === "" ? ["", ""] : categories[Number(value)]; apply("filter", at); };
  bar.append(field("Search in names, captions, questions, answers", search),
    field("Category", select([], "", chooseCategory, { id: "category" })),
    field("Verdict", select([], "", (value, at) => { state.verdict = value; apply("filter", at); }, { id: "verdict" })));
  if (captioners().length > 1) {
    bar.append(field("of", select([["-1", "any captioner"], ...captioners().map((captioner, place) => [String(place), captioner.name])], "-1",
      (value, at) => { state.captioner = Number(value); apply("filter", at); }, { id: "verdict-captioner" })));
  }
  bar.append(field("Sort", select([], "", (value, at) => { state.sort = value; apply("sort", at); }, { id: "sort" })),
    button("Clear filters", (event) => {
      clearFilters();
      if (state.brush) clearBrush(event.timeStamp); else apply("filter", event.timeStamp);
    }, { id: "clear-filters" }));
  return bar;
}
function startSearch() {
  let told = performance.now();
  const tell = () => {
    if (!state.search.trim()) return;
    // Not at each chunk: the table would jump under the reader's hands.
    if (searched.n < nRows() && performance.now() - told < 400) return;
    told = performance.now();
    apply("search", performance.now(), true);
  };
  readForSearch(tell).catch((error) => { searched.trouble = "Captions cannot be searched: " + error.message; apply("search"); });
}
function clearFilters() {
  state.search = state.section = state.group = state.verdict = "";
  state.captioner = -1;
  showFilters();
}
/* The controls say what the state is. */
function showFilters() {
  byId("search").value = state.search;
  const place = categories.findIndex(([section, group]) => section === state.section && group === state.group);
  byId("category").value = state.section && place >= 0 ? String(place) : "";
  byId("verdict").value = state.verdict;
  if (byId("verdict").selectedIndex < 0) byId("verdict").selectedIndex = 0;
  if (byId("verdict-captioner")) byId("verdict-captioner").value = String(state.captioner);
}
function fillFilters() {
  fill(byId("category"), categoryChoices(), "");
  fill(byId("verdict"), verdictChoices(), "");
  const sorts = sortChoices();
  if (!sorts.some(([value]) => value === state.sort)) state.sort = sorts[captioners().length > 1 ? 1 : 0][0];
  fill(byId("sort"), sorts, state.sort);
}
function showVideos() {
  state.section = state.group = state.verdict = "";
  fillFilters();
  showFilters();
  drawHead();
  if (state.open >= 0) closeRow();
  apply();
}
function makeVideos() {
  const box = byId("video-browser");
  box.hidden = false;
  const brush = element("p", undefined, { id: "brush-note", class: "note" });
  brush.append(element("span"), button("Clear brush", (event) => clearBrush(event.timeStamp), { class: "plain" }));
  const details = element("section", undefined, { id: "details", "aria-labelledby": "details-title" });
  details.hidden = true;
  box.replaceChildren(makeFilters(), element("p", undefined, { role: "status", id: "found" }), brush,
    element("p", "Verdicts: ✓ right, ◐ partly, ○ missed, ✗ wrong, • other, # rated, ? unscored.", { class: "note" }), makeTable(), details);
}
