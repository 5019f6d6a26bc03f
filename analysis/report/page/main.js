const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : prefersDark.matches);
function showTheme() { byId("theme").setAttribute("aria-pressed", String(isDark())); }
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  showTheme();
  if (packs.core) drawCharts();
}
/* Of the blocks that are about a benchmark, those of the chosen one. */
function showBlocks() {
  const name = core().views.length ? view().name : "";
  for (const block of document.querySelectorAll(".view")) block.hidden = block.dataset.view !== name;
}
function chooseView(place) {
  state.view = place;
  state.shape = state.pair = 0;
  state.metric = state.y = view().headline;
  if (!view().metrics.some((metric) => metric.name === state.metric) && view().metrics.length) state.metric = state.y = view().metrics[0].name;
  state.x = (view().lengths || [])[0] || "";
  state.brush = null;
  showBlocks();
  showVideos();
  requestAnimationFrame(drawCharts);
}
/* Numbers in the tables above that count questions show these questions. */
function linkCells() {
  for (const cell of document.querySelectorAll("[data-questions]")) {
    const text = cell.textContent;
    if (!text.trim()) continue;
    const made = button(text, () => showQuestions(cell), { class: "plain" });
    made.append(element("span", ": show these questions", { class: "unseen" }));
    cell.replaceChildren(made);
  }
}
function showQuestions(cell) {
  const at = performance.now();
  const [section, group, kind, captioner] = JSON.parse(cell.dataset.questions);
  const block = cell.closest(".view");
  const has = (one) => one.tasks.some((task) => codeOf(core().tasks[task], section, group).code >= 0);
  const place = core().views.findIndex((one) => (block ? one.name === block.dataset.view : group && has(one)));
  if (place >= 0 && place !== state.view) { byId("view").value = String(place); chooseView(place); }
  clearFilters();
  clearBrush(at);
  [state.section, state.group] = group ? [section, group] : ["", ""];
  // The menu has "unscored" once, as a choice of its own.
  state.verdict = !kind ? "" : kind === "unscored" ? "unscored" : "kind:" + kind;
  state.captioner = captioners().length > 1 ? captioner : -1;
  showFilters();
  apply("filter", at);
  byId("videos").scrollIntoView();
  byId("video-table").focus({ preventScroll: true });
}
/* Of the header only the links and controls stay in sight, and nothing that has the focus lies under them. */
function placeHeader() {
  const header = document.querySelector("header");
  const shown = [header.querySelector("nav"), byId("controls")].filter((part) => !part.hidden);
  const hidden = Math.max(0, Math.min(...shown.map((part) => part.offsetTop)) - 4);
  header.style.top = -hidden + "px";
  const isSticky = getComputedStyle(header).position === "sticky";
  document.documentElement.style.scrollPaddingTop = (isSticky ? header.offsetHeight - hidden : 0) + 12 + "px";
}
function refuse(text) {
  const box = byId("video-browser");
  box.hidden = false;
  box.replaceChildren(element("p", text, { class: "trouble", role: "status" }));
}
async function begin() {
  showTheme();
  byId("controls").hidden = false;
  byId("view").parentElement.hidden = true;
  byId("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  prefersDark.addEventListener("change", () => { if (!document.documentElement.dataset.theme) { showTheme(); if (packs.core) drawCharts(); } });
  new ResizeObserver(placeHeader).observe(document.querySelector("header"));
  if (!byId("core")) return;
  if (typeof DecompressionStream === "undefined") { refuse("This browser is too old for the table of videos and the charts: it cannot unpack what is in this file. All other parts are shown. Any browser of 2023 or later will do."); return; }
  // The page is painted first, as unpacking takes a moment.
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
  try {
    await unpackCore();
    await unpackQuestions();
  } catch (error) {
    packs.core = null;
    refuse("The table of videos and the charts cannot be shown, as this file is damaged: " + error.message);
    return;
  }
  if (!core().views.length) return;
  readColours();
  fill(byId("view"), core().views.map((one, place) => [String(place), one.name]), "0");
  byId("view").parentElement.hidden = core().views.length < 2;
  byId("view").addEventListener("change", () => chooseView(Number(byId("view").value)));
  makeVideos();
  byId("details").addEventListener("keydown", (event) => { if (event.key === "Escape") { event.preventDefault(); closeAndReturn(); } });
  linkCells();
  state.sort = sortChoices()[captioners().length > 1 ? 1 : 0][0];
  chooseView(0);
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
}
let themeBefore;
// Paper is white, whatever the screen is.
window.addEventListener("beforeprint", () => { themeBefore = document.documentElement.dataset.theme; if (isDark()) setTheme("light"); else themeBefore = null; });
window.addEventListener("afterprint", () => {
  if (themeBefore === null) return;
  if (themeBefore === undefined) { delete document.documentElement.dataset.theme; showTheme(); if (packs.core) drawCharts(); } else setTheme(themeBefore);
});
window.report = { ready: null, state, get core() { return packs.core; }, apply, timings };
window.report.ready = begin();
