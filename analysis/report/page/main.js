const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
const inner = (id) => byId(id).querySelector("div");

/* A table whose empty columns are left out; cells are texts or elements. */
function tableOf(heads, rows, nText = 1, attributes = {}) {
  const kept = heads.map((_, column) => column).filter((column) => column === 0 || rows.some((row) => row[column] !== "–" && row[column] !== "" && row[column] !== null));
  const kind = (column) => (column < nText ? "text" : null);
  const head = h("tr", null, kept.map((column) => h("th", { scope: "col", class: kind(column), dir: "auto" }, heads[column])));
  const body = rows.map((row) => h("tr", null, kept.map((column) => h("td", { class: kind(column), dir: "auto", "data-label": heads[column] }, row[column]))));
  return h("div", { class: "scrolls" }, h("table", { class: "stack", ...attributes }, h("thead", null, head), h("tbody", null, body)));
}
const rankText = (captioner, where = view()) => { const rank = lookup(where.ranking, String(captioner)); return rank ? "rank " + (rank[0] === rank[1] ? rank[0] : rank[0] + "–" + rank[1]) + " of " + Object.keys(where.ranking).length : ""; };

function showHead() {
  const runs = core.runs;
  const judges = [...new Set(runs.map((run) => run.judge).filter(Boolean))];
  const said = [plural(core.rows.video.length, "caption"), plural(core.n_questions, "question"), judges.length ? "judge " + judges.join(", ") : "", runs.length ? runs.map((run) => run.finished).sort().at(-1).slice(0, 10) : ""];
  byId("subtitle").textContent = said.filter(Boolean).join(" · ");
  byId("made-by").textContent = "Made by " + core.made_by + ".";
  const [few, many] = [core.warnings.slice(0, 3), core.warnings.slice(3)];
  byId("warnings").replaceChildren(...few.map((warning) => h("p", { class: "note", dir: "auto" }, warning)), ...(many.length ? [h("details", null, h("summary", null, plural(many.length, "more note")), many.map((warning) => h("p", { class: "note", dir: "auto" }, warning)))] : []));
}
function orderOf(where) {
  const places = names().map((_, captioner) => captioner).filter((captioner) => where.scores[captioner]);
  const best = (captioner) => { const score = scoreOf(captioner, where.headline, where); return score ? score.figure[0] : -Infinity; };
  const sign = where.metrics.find((metric) => metric.name === where.headline).higher_is_better ? 1 : -1;
  return places.sort((a, b) => sign * (best(b) - best(a)) || a - b);
}
function showCards() {
  byId("cards").replaceChildren(...core.views.map((one, place) => {
    const metric = one.metrics.find((each) => each.name === one.headline);
    const lines = orderOf(one).map((captioner, order) => {
      const dot = h("i", { class: "dot" });
      dot.style.background = "var(--c" + captioner % 10 + ")";
      const score = scoreOf(captioner, one.headline, one);
      const figure = score ? score.figure : [null, null, null];
      return h("span", { class: "line" + (order ? "" : " first") }, dot, h("span", { dir: "auto" }, names()[captioner]), h("span", { class: "big" }, number(figure[0], metric)),
        h("span", { class: "ci" }, h("span", null, figure[1] === null ? "" : "95% " + number(figure[1], metric) + " – " + number(figure[2], metric)), h("span", null, rankText(captioner, one))));
    });
    return h("button", { type: "button", class: "card", "aria-pressed": String(place === state.view), onclick: () => choose(place) }, h("span", { class: "name" }, one.name, h("span", { class: "soft" }, one.headline)), lines);
  }));
}
function choose(place) {
  state.view = place;
  Object.assign(state, { metric: view().headline, section: "", group: ["", ""], verdict: "", search: "", sort: "worst", captioner: -1, differencesBy: "overall", shown: PAGE_ROWS });
  const first = orderOf(view())[0];
  state.base = first === undefined ? 0 : first;
  showView();
}
function showView() {
  forgetCharts();
  [...byId("cards").children].forEach((card, place) => card.setAttribute("aria-pressed", String(place === state.view)));
  byId("view-bar").replaceChildren(choice("Task", "view", core.views.map((one, place) => [String(place), one.name]), String(state.view), (value) => choose(Number(value))), h("span", { class: "soft" }, view().headline + (view().headline_means ? ": " + view().headline_means : "")));
  showMetrics();
  showComparison();
  showGroups();
  showLength();
  showVideos(inner("videos"));
  showMissed();
  showJudge();
  for (const link of document.querySelectorAll("nav a")) link.hidden = byId(link.hash.slice(1)).hidden;
}
function showMetrics() {
  const metrics = view().metrics;
  const share = (of) => (of && of.of && of.n ? count(of.n) + " of " + count(of.of) : "–");
  const hasRuns = view().scores.some((scores) => scores && Object.values(scores.metrics).some((one) => one.deviation !== null));
  const heads = ["Captioner", ...metrics.map((metric) => metric.name + (metric.higher_is_better ? "" : " (lower is better)")), ...(hasRuns ? ["Deviation of judge runs"] : []), "Unscored", "Empty", "No caption", "Left out"];
  const rows = orderOf(view()).map((captioner) => {
    const scores = view().scores[captioner];
    const main = scoreOf(captioner, view().headline);
    return [names()[captioner], ...metrics.map((metric) => { const score = scoreOf(captioner, metric.name); return score ? interval(score.figure, metric) : "–"; }),
      ...(hasRuns ? [main && main.deviation !== null ? number(main.deviation, headline()) : "–"] : []), share(scores.unscored), share(scores.empty), share(scores.missing), share(scores.dropped)];
  });
  const hasIntervals = view().scores.some((scores) => scores && Object.values(scores.metrics).some((one) => one.figure[1] !== null));
  byId("metrics").replaceChildren(h("h3", null, "All metrics of " + view().name), h("div", { class: "panel" }, tableOf(heads, rows, 1, { id: "metric-table" })), ...(hasIntervals ? [h("p", { class: "soft" }, "[low, high]: 95% interval over videos.")] : []));
}

/* Differences to the chosen captioner, of the chosen metric and section. */
function differences() {
  const metric = metricOf(state.metric);
  return view().differences.filter((row) => row.metric === metric.name && row.section === state.differencesBy && (row.captioner === state.base || row.baseline === state.base)).map((row) => {
    const isTurned = row.captioner === state.base;
    const [value, low, high] = row.figure;
    const other = isTurned ? row.baseline : row.captioner;
    const outcome = isTurned ? { better: "worse", worse: "better" }[row.outcome] || row.outcome : row.outcome;
    const label = row.section === "overall" ? names()[other] : names().length > 2 ? row.group + " · " + names()[other] : row.group;
    return { ...row, captioner: other, outcome, label, figure: isTurned ? [-value, high === null ? null : -high, low === null ? null : -low] : row.figure };
  });
}
function showComparison() {
  const box = inner("comparison");
  byId("comparison").hidden = names().length < 2;
  const said = view().answer.map((sentence) => h("p", { dir: "auto" }, sentence));
  if (!view().differences.length) { box.replaceChildren(h("div", { class: "answer" }, ...said)); return; }
  const sections = [...new Set(view().differences.map((row) => row.section))];
  if (!sections.includes(state.differencesBy)) [state.differencesBy] = sections;
  const again = (set) => (value) => { set(value); showComparison(); };
  const rows = differences();
  const metric = metricOf(state.metric);
  const label = "Differences in " + metric.name + " to " + names()[state.base];
  const forest = chartBox("forest", label + ". " + rows.map((row) => row.label + ": " + differenceText(row, metric).replace("\n", ", ")).join("; "), 84 + 30 * rows.length);
  const bar = h("div", { class: "bar" },
    choice("Compared with", "base", names().map((name, place) => [String(place), short(name, 40)]), String(state.base), again((value) => { state.base = Number(value); })),
    choice("Metric", "comparison-metric", view().metrics.map((one) => [one.name, one.name]), metric.name, again((value) => { state.metric = value; })),
    sections.length > 1 ? choice("By", "differences-by", sections.map((name) => [name, name === "overall" ? "all questions" : name.replaceAll("_", " ")]), state.differencesBy, again((value) => { state.differencesBy = value; })) : null);
  box.replaceChildren(h("div", { class: "answer" }, ...said), bar, h("div", { class: "panel" }, h("h3", { dir: "auto" }, label), forest, h("p", { class: "soft" }, "Lines are simultaneous 95% intervals; faint ones are not significant.")));
  drawForest(forest, rows, metric);
}
function showGroups() {
  const box = inner("groups");
  const sections = view().sections.filter((section) => section.groups.length > 1);
  byId("groups").hidden = !sections.length;
  if (!sections.length) { box.replaceChildren(); return; }
  const section = sections.find((one) => one.name === state.section) || sections[0];
  const metric = metricOf(state.metric);
  const again = (set) => (value) => { set(value); showGroups(); };
  const bar = h("div", { class: "bar" },
    choice("By", "section", sections.map((one) => [one.name, one.name.replaceAll("_", " ")]), section.name, again((value) => { state.section = value; })),
    choice("Metric", "group-metric", view().metrics.map((one) => [one.name, one.name]), metric.name, again((value) => { state.metric = value; })));
  const chart = chartBox("group-chart", metric.name + " by " + section.name.replaceAll("_", " ") + "; the numbers are in the table below", 68 + Math.max(28, 12 * names().length + 10) * section.groups.length);
  const figures = section.figures[metric.name] || [];
  const rows = section.groups.map((group, place) => [group, ...names().map((_, captioner) => interval((figures[captioner] || [])[place], metric)), section.n_questions[place] ? count(section.n_questions[place]) : "–"]);
  const more = section.n_more ? [h("p", { class: "soft" }, plural(section.n_more, "smaller group") + " in the breakdown file.")] : [];
  box.replaceChildren(bar, h("div", { class: "panel" }, legend(), chart, ...more), h("details", null, h("summary", null, "Numbers"), h("div", { class: "panel" }, tableOf([section.name.replaceAll("_", " "), ...names(), "Questions"], rows))));
  drawGroups(chart, section, metric);
}
function showLength() {
  const box = inner("length");
  const rowsShown = rowsOfView();
  const lengths = ["words", "tokens"].filter((what) => core.rows[what].some((column) => rowsShown.some((row) => column[row] !== null)));
  byId("length").hidden = !lengths.length;
  if (!lengths.length) { box.replaceChildren(); return; }
  const what = lengths.includes(state.length) ? state.length : lengths[0];
  const metric = metricOf(state.metric);
  const again = (set) => (value) => { set(value); showLength(); };
  const bar = h("div", { class: "bar" },
    lengths.length > 1 ? choice("Length in", "length-in", lengths.map((one) => [one, one]), what, again((value) => { state.length = value; })) : null,
    choice("Metric", "length-metric", view().metrics.map((one) => [one.name, one.name]), metric.name, again((value) => { state.metric = value; })));
  const chart = chartBox("length-chart", metric.name + " of each caption over its length", 380);
  const table = h("div");
  box.replaceChildren(bar, h("div", { class: "panel" }, legend(), chart), table);
  const points = drawLength(chart, what, metric);
  const rows = points.map((of, captioner) => {
    const correlation = spearman(of);
    return [names()[captioner], count(of.length), of.length ? (of.reduce((sum, point) => sum + point[0], 0) / of.length).toFixed(1) : "–", correlation === null ? "–" : correlation.toFixed(2).replace("-", "−")];
  });
  table.replaceChildren(h("div", { class: "panel" }, tableOf(["Captioner", "Captions", "Mean " + what, "Spearman correlation with " + metric.name], rows, 1, { id: "length-table" })));
}
function showMissed() {
  const box = inner("missed");
  byId("missed").hidden = !view().has_misses;
  if (!view().has_misses) { box.replaceChildren(); return; }
  const tables = [];
  const sections = [...new Set(view().tasks.flatMap((task) => core.tasks[task].sections.map((section) => section.name)))];
  const kinds = [["missed", view().tells_wrong ? "Not covered" : "Not answered rightly"], ...(view().tells_wrong ? [["wrong", "Answered wrongly"]] : [])];
  for (const section of sections) {
    const counts = kindsByGroup(section);
    if (counts.size < 2) continue;
    for (const [kind, title] of kinds) {
      const at = KINDS.indexOf(kind);
      const total = (of) => of.reduce((sum, one) => sum + one[at], 0);
      const groups = [...counts].filter(([, of]) => total(of)).sort((a, b) => total(b[1]) - total(a[1])).slice(0, 15);
      const rows = groups.map(([group, of]) => [group, ...of.map((one, captioner) => {
        const all = one.reduce((sum, n) => sum + n, 0);
        const show = () => { state.group = [section, group]; state.verdict = "kind:" + kind; state.captioner = captioner; state.shown = PAGE_ROWS; showVideos(inner("videos")); byId("videos").scrollIntoView(); };
        return all ? h("button", { type: "button", class: "open", onclick: show }, count(one[at]) + " (" + percent(one[at], all) + ")") : "–";
      })]);
      if (rows.length) tables.push(h("details", { open: tables.length ? null : "" }, h("summary", null, title + ", by " + section.replaceAll("_", " ")), h("div", { class: "panel" }, tableOf([section.replaceAll("_", " "), ...names()], rows))));
    }
  }
  box.replaceChildren(h("p", { class: "soft" }, "Verdicts of all judge runs, most frequent first. Click a number to see its questions."), ...tables);
}
function showJudge() {
  const runs = core.runs.map((run) => [run.captioner, run.model || "–", run.judge || "–", run.finished.replace("T", " ").slice(0, 16) || "–", run.calls === null ? "–" : count(run.calls), run.cached === null ? "–" : count(run.cached), run.cost || "–", run.retried || "–", run.file]);
  const differing = names().map((_, captioner) => {
    let [n, of] = [0, 0];
    for (const task of view().tasks) {
      if (questions[task].verdicts[captioner].length < 2) continue;
      for (let question = 0; question < core.tasks[task].n; question += 1) { const codes = codesOf(task, captioner, question).filter((code) => code < RATED); if (codes.length > 1) { of += 1; n += differs(codes) ? 1 : 0; } }
    }
    return of ? count(n) + " of " + count(of) + " (" + percent(n, of) + ")" : "–";
  });
  const reasons = view().scores.flatMap((scores, captioner) => Object.entries(scores ? scores.reasons : {}).map(([reason, n]) => [names()[captioner], reason, count(n)]));
  const health = names().map((name, captioner) => { const scores = view().scores[captioner]; const of = scores && scores.unscored; return [name, of ? count(of.n) + " of " + count(of.of) + " (" + percent(of.n, of.of) + ")" : "–", differing[captioner]]; });
  const signatures = view().signatures.map((signature, captioner) => [names()[captioner], signature]).filter(([, signature]) => signature);
  inner("judge").replaceChildren(
    h("div", { class: "panel" }, tableOf(["Captioner", "Model", "Judge", "Finished", "Calls", "From cache", "Cost", "Failed attempts", "Results"], runs, 3, { id: "run-table" })),
    h("h3", null, view().name), h("div", { class: "panel" }, tableOf(["Captioner", "Unscored", "Verdicts that differ between judge runs"], health, 1, { id: "health-table" })),
    ...(reasons.length ? [h("div", { class: "panel" }, tableOf(["Captioner", "Why questions are unscored", "Questions"], reasons, 2, { id: "reason-table" }))] : []),
    h("details", null, h("summary", null, "Signatures: everything that affects these scores"), signatures.map(([name, signature]) => h("p", { dir: "auto" }, name + ": ", h("code", null, signature)))));
}
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").setAttribute("aria-pressed", String(isDark()));
  showView();
}
const report = { timings: [], ready: null };
report.ready = (async () => {
  await unpack();
  showHead();
  byId("theme").setAttribute("aria-pressed", String(isDark()));
  byId("theme").addEventListener("click", () => { if (core.views.length) setTheme(isDark() ? "light" : "dark"); });
  if (!core.views.length) { for (const section of document.querySelectorAll("main section")) section.hidden = true; return; }
  showCards();
  choose(0);
})();
window.report = report;
