const SYMBOLS = ["circle", "rect", "triangle", "diamond", "path://M0,0L10,0L5,9Z", "emptyCircle", "emptyRect", "emptyTriangle", "emptyDiamond", "pin"];
const SYMBOL_SIGNS = ["●", "■", "▲", "◆", "▼", "○", "□", "△", "◇", "⬮"];
const LINES = ["solid", "dashed", "dotted"];
const FONT = "system-ui, sans-serif";
const HIGHEST_CANVAS = 7000;
const charts = new Map();
let colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue("--" + name).trim();
  colours = { ink: read("ink"), soft: read("soft"), line: read("line"), card: read("card"), better: read("right"), worse: read("wrong") };
  colours.captioners = Array.from({ length: 10 }, (_, place) => read("captioner-" + place));
}
const colourOf = (captioner) => colours.captioners[captioner % 10];
const shortOf = (text, length = 40) => (text.length > length ? text.slice(0, length - 1) + "…" : text);
/* A name as ECharts may draw it. It reads {name|text} as a style in tooltips, and keeps the widths of texts in plain
   objects, which "__proto__" would change for the whole page: spaces of no width keep both from happening. */
const literal = (text, length = 120) => "\u200b" + shortOf(String(text).replace(/\s+/g, " "), length).replaceAll("{", "{\u200b");
const nameOf = (captioner) => captioners()[captioner].name;
const shownCaptioners = () => captioners().map((_, captioner) => captioner).filter((captioner) => !state.hidden.has(captioner));

/* A chart in the box; one that was there before gives way. */
function draw(box, label, height, option) {
  forget(box);
  box.className = "chart";
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", label);
  box.style.height = Math.round(height) + "px";
  const chart = echarts.init(box, null, { renderer: "canvas", width: box.clientWidth || 300, height: Math.round(height) });
  chart.setOption({ animation: false, textStyle: { fontFamily: FONT, color: colours.ink }, ...option });
  // The width is watched, as the window's may change; the first call tells what is known.
  let width = box.clientWidth;
  const watch = new ResizeObserver(() => {
    if (!box.clientWidth || box.clientWidth === width) return;
    width = box.clientWidth;
    chart.resize({ width });
  });
  watch.observe(box);
  charts.set(box, { chart, watch });
  return chart;
}
function forget(box) {
  const drawn = charts.get(box);
  if (!drawn) return;
  drawn.watch.disconnect();
  drawn.chart.dispose();
  charts.delete(box);
}
function tooltip(formatter) {
  return { renderMode: "richText", confine: true, backgroundColor: colours.card, borderColor: colours.line, textStyle: { color: colours.ink, fontSize: 13 }, formatter };
}
function valueAxis(more) {
  return {
    type: "value", axisLabel: { color: colours.soft, hideOverlap: true }, nameTextStyle: { color: colours.soft }, axisLine: { lineStyle: { color: colours.soft } },
    splitLine: { lineStyle: { color: colours.line, opacity: 0.6 } }, ...more,
  };
}
function nameAxis(names, width) {
  return {
    type: "category", inverse: true, data: names.map((_, place) => String(place)), axisTick: { show: false }, axisLine: { lineStyle: { color: colours.line } },
    axisLabel: { color: colours.ink, interval: 0, width, overflow: "truncate", formatter: (place) => literal(names[Number(place)], 60) },
  };
}
const namesWidth = (box) => Math.min(220, Math.round((box.clientWidth || 300) * 0.34));
/* Where a metric's scale begins. */
const lowestOf = (metric) => metric.lowest || 0;
/* The smallest round number that is not below the value. */
function roundAbove(value, highest) {
  if (!(value > 0)) return highest || 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  const found = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((step) => Number((step * unit).toPrecision(3))).find((round) => round >= value * 1.0000001) || 10 * unit;
  return highest ? Math.min(found, highest) : found;
}

/* Buttons that say what colour and shape a captioner has, and take it out of the charts. */
function legend(redraw) {
  const box = element("div", undefined, { class: "bar legend", role: "group", "aria-label": "Captioners in the charts" });
  captioners().forEach((captioner, place) => {
    const made = button("", () => {
      if (state.hidden.has(place)) state.hidden.delete(place); else state.hidden.add(place);
      drawCharts();
      if (state.brush) apply();
    }, { "aria-pressed": String(!state.hidden.has(place)), "data-captioner": place });
    made.append(element("span", SYMBOL_SIGNS[place % 10] + " ", { class: "captioner-" + place % 10, "aria-hidden": "true" }), captioner.name);
    box.append(made);
  });
  return box;
}
function chosenShape() {
  const shapes = view().shape || [];
  return shapes[Math.min(state.shape, shapes.length - 1)] || null;
}
const figuresOf = (shape, captioner) => (lookup(shape.values, state.metric) || [])[captioner] || [];
function showShape() {
  const box = byId("shape-charts");
  for (const old of box.querySelectorAll(".chart")) forget(old);
  const shapes = view().shape || [];
  box.hidden = !shapes.length && !(view().pairs || []).length;
  if (box.hidden) { box.replaceChildren(); return; }
  const bar = element("div", undefined, { class: "bar" });
  if (shapes.length > 1) bar.append(field("Section", select(shapes.map((shape, place) => [String(place), shape.section || "all"]), String(state.shape), (value) => { state.shape = Number(value); drawShape(); }, { id: "shape-section" })));
  bar.append(field("Metric", select(view().metrics.map((metric) => [metric.name, metric.name]), state.metric, (value) => { state.metric = value; drawShape(); }, { id: "shape-metric" })));
  if ((view().pairs || []).length > 1) {
    bar.append(field("Difference", select(view().pairs.map((pair, place) => [String(place), pairName(pair)]), String(state.pair), (value) => { state.pair = Number(value); drawShape(); }, { id: "shape-pair" })));
  }
  const radarSide = element("div", undefined, { id: "radar-side" });
  radarSide.append(element("h3", undefined, { id: "radar-title" }), element("div", undefined, { id: "radar" }));
  const barsSide = element("div");
  barsSide.append(element("h3", undefined, { id: "bars-title" }), element("div", undefined, { id: "bars" }));
  const sides = element("div", undefined, { class: "side-by-side" });
  sides.append(radarSide, barsSide);
  box.replaceChildren(bar, legend(), element("p", undefined, { class: "note", id: "shape-note" }), sides,
    element("h3", undefined, { id: "forest-title" }), element("p", undefined, { id: "forest-summary" }), element("p", undefined, { class: "note", id: "forest-note" }), element("div", undefined, { id: "forest" }));
  drawShape();
}
const pairName = (pair) => nameOf(pair.other) + " − " + nameOf(pair.baseline);
function drawShape() {
  const shape = chosenShape();
  const metric = metricOf(state.metric);
  if (shape) {
    const values = shownCaptioners().flatMap((captioner) => figuresOf(shape, captioner)).filter(Boolean).flatMap((figure) => [figure[0], figure[2] ?? null]).filter((value) => value !== null);
    const round = roundAbove(Math.max(0, ...values), metric.highest);
    const top = round > lowestOf(metric) ? round : metric.highest;
    byId("shape-note").textContent = "Scale from " + lowestOf(metric) + " to " + top + (top < metric.highest ? ", as no value or interval goes higher; the highest there can be is " + metric.highest : "") +
      ". Whiskers: the interval of each value. " + (metric.higher_is_better === false ? "Lower is better." : "Higher is better.");
    drawRadar(shape, metric, top);
    drawBars(shape, metric, top);
  }
  drawForest(shape, metric);
}
function titleOf(shape, metric) { return metric.name + (shape.section ? " by " + shape.section : ""); }
function drawRadar(shape, metric, top) {
  const box = byId("radar");
  const names = shape.groups;
  const isShown = shape.is_radar && names.length >= 3 && names.length <= 30;
  byId("radar-side").hidden = !isShown;
  if (!isShown) { forget(box); return; }
  byId("radar-title").textContent = titleOf(shape, metric);
  const label = "Radar of " + titleOf(shape, metric) + " for " + shownCaptioners().map(nameOf).join(", ") + "; the same numbers are in the table below.";
  const isNarrow = (box.clientWidth || 300) < 420;
  draw(box, label, isNarrow ? 320 : 440, {
    tooltip: tooltip((point) => [literal(nameOf(Number(point.name))), ...names.map((name, place) => literal(name) + ": " + number((figuresOf(shape, Number(point.name))[place] || [null])[0], metric))].slice(0, 32).join("\n")),
    radar: {
      // No more than what was measured: a radar takes the smallest scale that it is given.
      indicator: names.map((_, place) => ({ name: String(place), min: lowestOf(metric), max: top })), radius: isNarrow ? "52%" : "62%", splitNumber: 5, triggerEvent: false,
      axisName: { color: colours.ink, fontSize: isNarrow ? 10 : 12, formatter: (place) => literal(names[Number(place)], isNarrow ? 12 : 22) },
      splitLine: { lineStyle: { color: colours.line } }, splitArea: { show: false }, axisLine: { lineStyle: { color: colours.line } },
    },
    series: [{
      type: "radar",
      data: shownCaptioners().map((captioner) => ({
        name: String(captioner), value: names.map((_, place) => { const figure = figuresOf(shape, captioner)[place]; return figure && figure[0] !== null ? figure[0] : "-"; }),
        symbol: SYMBOLS[captioner % 10], symbolSize: 7, itemStyle: { color: colourOf(captioner) }, lineStyle: { color: colourOf(captioner), width: 2, type: LINES[captioner % 3] },
        areaStyle: { color: colourOf(captioner), opacity: 0.08 },
      })),
    }],
  });
}
function drawBars(shape, metric, top) {
  const box = byId("bars");
  byId("bars-title").textContent = titleOf(shape, metric) + ", with intervals";
  const names = shape.groups;
  const shown = shownCaptioners();
  if (!names.length) { forget(box); return; }
  const band = Math.max(6, Math.min(shown.length * 15 + 9, Math.floor(HIGHEST_CANVAS / names.length)));
  const thick = Math.max(2, Math.min(15, (band - 5) / Math.max(1, shown.length)));
  const width = namesWidth(box);
  const label = "Bars of " + titleOf(shape, metric) + " with intervals for " + shown.map(nameOf).join(", ") + "; the same numbers are in the table below.";
  const bars = shown.map((captioner, order) => ({
    type: "custom", name: String(captioner), clip: false, encode: { x: [0], y: 1 },
    data: names.map((_, place) => { const figure = figuresOf(shape, captioner)[place] || [null, null, null]; return [figure[0] === null ? "-" : figure[0], place, figure[1] ?? "-", figure[2] ?? "-"]; }),
    renderItem: (_, api) => drawBar(api, { order, n: shown.length, thick, colour: colourOf(captioner), metric, top }),
  }));
  draw(box, label, names.length * band + 50, {
    grid: { left: width + 12, right: 48, top: 8, bottom: 30 },
    tooltip: tooltip((point) => {
      const captioner = Number(point.seriesName);
      const figure = figuresOf(shape, captioner)[point.dataIndex] || [null];
      const asked = ((shape.n_questions || [])[captioner] || [])[point.dataIndex];
      return literal(nameOf(captioner)) + "\n" + literal(names[point.dataIndex]) + ": " + figureText(figure, metric) + (asked === undefined || asked === null ? "" : "\n" + several(asked, "question"));
    }),
    xAxis: valueAxis({ min: lowestOf(metric), max: top }), yAxis: nameAxis(names, width), series: bars,
  });
}
function figureText(figure, metric) {
  if (!figure || figure[0] === null) return "–";
  return number(figure[0], metric) + (figure[1] === null || figure[1] === undefined ? "" : " [" + number(figure[1], metric) + ", " + number(figure[2], metric) + "]");
}
function drawBar(api, look) {
  const value = api.value(0);
  if (!Number.isFinite(value)) return null;
  const [left, middle] = api.coord([lowestOf(look.metric), api.value(1)]);
  const y = middle + (look.order - (look.n - 1) / 2) * look.thick;
  const half = Math.max(1, look.thick / 2 - 1);
  const right = api.coord([value, api.value(1)])[0];
  const parts = [{ type: "rect", shape: { x: left, y: y - half, width: Math.max(1, right - left), height: 2 * half }, style: { fill: look.colour, opacity: 0.45 } },
    { type: "rect", shape: { x: right - 1.5, y: y - half, width: 3, height: 2 * half }, style: { fill: look.colour } }];
  let end = right;
  const [low, high] = [api.value(2), api.value(3)];
  if (Number.isFinite(low) && Number.isFinite(high)) {
    const from = api.coord([Math.max(lowestOf(look.metric), low), api.value(1)])[0];
    const to = api.coord([Math.min(look.top, high), api.value(1)])[0];
    end = Math.max(end, to);
    parts.push(line(from, y, to, y, colours.ink), line(from, y - half / 2, from, y + half / 2, colours.ink), line(to, y - half / 2, to, y + half / 2, colours.ink));
  }
  if (look.thick >= 9) parts.push({ type: "text", style: { x: end + 5, y, text: number(value, look.metric), fill: colours.ink, fontSize: 11, fontFamily: FONT, verticalAlign: "middle" } });
  return { type: "group", children: parts };
}
function line(x1, y1, x2, y2, colour) { return { type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: 1.2 } }; }

const isOverall = (row) => !row.section || !row.group || (row.section === "overall" && row.group === "all");
function drawForest(shape, metric) {
  const box = byId("forest");
  const pair = (view().pairs || [])[state.pair];
  const known = !pair ? [] : pair.rows.filter((row) => row.metric === state.metric && row.difference !== null);
  const ofSection = known.filter((row) => shape && row.section === shape.section);
  // Of a group whose tasks are groups of questions, differences go by these.
  const rows = known.filter((row) => isOverall(row) || !ofSection.length || ofSection.includes(row));
  rows.sort((one, other) => Number(isOverall(other)) - Number(isOverall(one)));
  const isShown = Boolean(pair);
  for (const id of ["forest-title", "forest-summary", "forest-note"]) byId(id).hidden = !isShown;
  box.hidden = !isShown || !rows.length;
  if (!isShown) { forget(box); return; }
  byId("forest-title").textContent = "Differences in " + metric.name + ": " + pairName(pair);
  const summary = [lookup(pair.found, metric.name), pair.summary].filter(Boolean).join(" ");
  byId("forest-summary").textContent = summary;
  byId("forest-note").textContent = !rows.length ? "No differences of this metric are known." :
    "A point is the difference over the same questions, its line the interval. ▲ green: better; ▼ red: worse; ● grey: tied; ○ grey: unknown.";
  if (!rows.length) { forget(box); return; }
  const names = rows.map((row) => (isOverall(row) ? "Overall" : row.group));
  const ends = rows.flatMap((row) => [row.difference, row.low, row.high]).filter((value) => value !== null && value !== undefined);
  const reach = roundAbove(Math.max(...ends.map(Math.abs), 0), metric.highest - lowestOf(metric));
  const width = namesWidth(box);
  const isWide = (box.clientWidth || 300) > 640;
  draw(box, "Forest plot: " + byId("forest-title").textContent + ". " + summary, Math.min(HIGHEST_CANVAS, rows.length * 24) + 50, {
    grid: { left: width + 12, right: isWide ? 170 : 56, top: 8, bottom: 30 },
    tooltip: tooltip((point) => differenceText(rows[point.dataIndex], names[point.dataIndex], metric)),
    xAxis: valueAxis({ min: -reach, max: reach }), yAxis: nameAxis(names, width),
    series: [{
      type: "custom", clip: false, encode: { x: [0], y: 1 },
      data: rows.map((row, place) => [row.difference, place]),
      renderItem: (point, api) => drawDifference(rows[point.dataIndexInside], api, metric, isWide, point.coordSys),
      markLine: { silent: true, symbol: "none", animation: false, label: { show: false }, lineStyle: { color: colours.ink, type: "solid", width: 1 }, data: [{ xAxis: 0 }] },
    }],
  });
}
function differenceText(row, name, metric) {
  const interval = row.low === null || row.low === undefined ? "no interval" : "[" + signed(row.low, metric) + ", " + signed(row.high, metric) + "]";
  return literal(name) + "\n" + signed(row.difference, metric) + " " + interval + (row.p === null || row.p === undefined ? "" : "\np " + (row.p < 0.001 ? "< 0.001" : "= " + row.p.toFixed(3))) + "\n" + row.outcome;
}
function drawDifference(row, api, metric, isWide, frame) {
  const [x, y] = api.coord([api.value(0), api.value(1)]);
  const colour = row.outcome === "better" ? colours.better : row.outcome === "worse" ? colours.worse : colours.soft;
  const parts = [];
  const hasInterval = row.low !== null && row.low !== undefined && row.high !== null && row.high !== undefined;
  if (hasInterval) {
    const from = api.coord([row.low, api.value(1)])[0];
    const to = api.coord([row.high, api.value(1)])[0];
    parts.push({ type: "line", shape: { x1: from, y1: y, x2: to, y2: y }, style: { stroke: colour, lineWidth: isOverall(row) ? 3 : 2 } }, line(from, y - 4, from, y + 4, colour), line(to, y - 4, to, y + 4, colour));
  }
  const size = isOverall(row) ? 8 : 6;
  if (row.outcome === "better") parts.push({ type: "polygon", shape: { points: [[x - size, y + size], [x + size, y + size], [x, y - size]] }, style: { fill: colour } });
  else if (row.outcome === "worse") parts.push({ type: "polygon", shape: { points: [[x - size, y - size], [x + size, y - size], [x, y + size]] }, style: { fill: colour } });
  else parts.push({ type: "circle", shape: { cx: x, cy: y, r: size - 1 }, style: row.outcome === "tied" ? { fill: colour } : { fill: colours.card, stroke: colour, lineWidth: 2 } });
  const said = signed(row.difference, metric) + (isWide && hasInterval ? " [" + signed(row.low, metric) + ", " + signed(row.high, metric) + "]" : "");
  parts.push({ type: "text", style: { x: frame.x + frame.width + 8, y, text: said, fill: colours.ink, fontSize: 12, fontFamily: FONT, verticalAlign: "middle" } });
  return { type: "group", children: parts };
}

/* Ranks from 1; equal values share the mean of theirs. */
function ranks(values) {
  const order = values.map((_, place) => place).sort((one, other) => values[one] - values[other]);
  const made = new Float64Array(values.length);
  for (let from = 0; from < order.length;) {
    let to = from + 1;
    while (to < order.length && values[order[to]] === values[order[from]]) to += 1;
    for (let place = from; place < to; place += 1) made[order[place]] = (from + to + 1) / 2;
    from = to;
  }
  return made;
}
/* Spearman's correlation, or null where one side never changes. */
function spearman(xs, ys) {
  const [a, b] = [ranks(xs), ranks(ys)];
  const mean = (xs.length + 1) / 2;
  let [both, left, right] = [0, 0, 0];
  for (let place = 0; place < a.length; place += 1) {
    both += (a[place] - mean) * (b[place] - mean);
    left += (a[place] - mean) ** 2;
    right += (b[place] - mean) ** 2;
  }
  return left && right ? both / Math.sqrt(left * right) : null;
}
function dotsOf(captioner) {
  const tasks = new Set(view().tasks);
  const { task } = core().rows;
  const dots = [];
  for (let row = 0; row < nRows(); row += 1) {
    if (!tasks.has(task[row])) continue;
    const x = lengthOf(state.x, captioner, row);
    const y = valueOf(state.y, captioner, row);
    if (x !== null && y !== null) dots.push([x, y, row]);
  }
  return dots;
}
function showLength() {
  const box = byId("length-charts");
  for (const old of box.querySelectorAll(".chart")) forget(old);
  box.hidden = !(view().lengths || []).length;
  if (box.hidden) { box.replaceChildren(); return; }
  const bar = element("div", undefined, { class: "bar" });
  const choose = (key) => (value, at) => { state[key] = value; clearBrush(at); drawLength(); };
  bar.append(field("Length in", select(view().lengths.map((what) => [what, what]), state.x, choose("x"), { id: "length-x" })),
    field("Metric", select(view().metrics.map((metric) => [metric.name, metric.name]), state.y, choose("y"), { id: "length-y" })));
  const ends = ["from", "to"].map((end) => {
    const input = element("input", undefined, { type: "number", min: 0, step: "any", id: "length-" + end, inputmode: "numeric" });
    input.addEventListener("input", (event) => brushFromInputs(event.timeStamp));
    return field("Length " + end, input);
  });
  bar.append(...ends, button("Clear brush", (event) => { clearBrush(event.timeStamp); }, { id: "clear-brush" }));
  box.replaceChildren(bar, legend(), element("p", "Draw a box in the chart, or give the length from and to, to see these videos in the table below.", { class: "note" }),
    element("p", undefined, { id: "length-note" }), element("div", undefined, { id: "scatter" }));
  drawLength();
}
function drawLength() {
  const metric = metricOf(state.y);
  const dots = captioners().map((_, captioner) => dotsOf(captioner));
  const total = dots.reduce((sum, one) => sum + one.length, 0);
  const found = dots.map((one, captioner) => {
    const correlation = one.length > 2 ? spearman(one.map((dot) => dot[0]), one.map((dot) => dot[1])) : null;
    return nameOf(captioner) + " " + (correlation === null ? "none" : correlation.toFixed(2).replace("-", "−")) + " (" + several(one.length, "dot") + ")";
  });
  byId("length-note").textContent = several(total, "dot") + ", one per caption. Spearman correlation of " + state.x + " with " + metric.name + ": " + found.join("; ") + ".";
  const box = byId("scatter");
  const size = total > 4000 ? 4 : total > 500 ? 6 : 8;
  const chart = draw(box, "Scatter of " + metric.name + " over " + state.x + ". " + byId("length-note").textContent, 420, {
    grid: { left: 56, right: 24, top: 28, bottom: 48 },
    tooltip: tooltip((point) => literal(nameOf(Number(point.seriesName))) + "\n" + literal(core().rows.video[point.value[2]]) + "\n" + point.value[0] + " " + state.x + ", " + literal(metric.name, 40) + " " + number(point.value[1], metric)),
    xAxis: valueAxis({ name: state.x, nameLocation: "middle", nameGap: 28, min: 0 }), yAxis: valueAxis({ name: literal(metric.name, 40), min: lowestOf(metric), max: metric.highest && metric.highest <= 100 ? metric.highest : undefined, nameTextStyle: { color: colours.soft, align: "left" } }),
    // The brush brings buttons with it, which the mouse alone could press.
    toolbox: { show: false },
    brush: {
      xAxisIndex: 0, brushMode: "single", transformable: false, brushStyle: { borderWidth: 1, color: "rgba(120,140,170,0.2)", borderColor: colours.ink },
      throttleType: "debounce", throttleDelay: 60, outOfBrush: { colorAlpha: 0.12 },
    },
    series: shownCaptioners().map((captioner) => ({
      type: "scatter", name: String(captioner), data: dots[captioner], symbol: SYMBOLS[captioner % 10], symbolSize: size,
      itemStyle: { color: colourOf(captioner), opacity: total > 4000 ? 0.45 : 0.75 },
    })),
  });
  chart.dispatchAction({ type: "takeGlobalCursor", key: "brush", brushOption: { brushType: "rect", brushMode: "single" } });
  chart.on("brushEnd", (brushed) => {
    const area = brushed.areas[0];
    const isEmpty = !area || area.range[0][1] - area.range[0][0] < 3 || area.range[1][1] - area.range[1][0] < 3;
    if (isEmpty) { clearBrush(performance.now()); showBrush(); return; }
    setBrush({ axis: state.x, metric: state.y, x: area.coordRange[0], y: area.coordRange[1] }, performance.now());
    byId("length-from").value = Math.round(area.coordRange[0][0]);
    byId("length-to").value = Math.round(area.coordRange[0][1]);
  });
  showBrush();
}
function showBrush() {
  const drawn = byId("scatter") && charts.get(byId("scatter"));
  if (!drawn) return;
  const brush = state.brush;
  const metric = metricOf(state.y);
  const top = metric.highest || 1e9;
  const areas = brush ? [{ brushType: "rect", xAxisIndex: 0, yAxisIndex: 0, coordRange: [brush.x.map((end) => Math.max(0, Math.min(end, 1e7))), brush.y || [lowestOf(metric), top]] }] : [];
  drawn.chart.dispatchAction({ type: "brush", areas });
}
function setBrush(brush, at) {
  state.brush = brush;
  apply("filter", at);
}
function clearBrush(at) {
  for (const id of ["length-from", "length-to"]) if (byId(id)) byId(id).value = "";
  if (!state.brush) return;
  setBrush(null, at);
  showBrush();
}
function brushFromInputs(at) {
  const [from, to] = ["length-from", "length-to"].map((id) => byId(id).value);
  const isSet = from !== "" || to !== "";
  const ends = [from === "" ? 0 : Number(from), to === "" ? Infinity : Number(to)];
  // Whichever was typed first, the smaller is where it begins; a box that was drawn keeps its scores.
  setBrush(isSet ? { axis: state.x, metric: state.y, x: [Math.min(...ends), Math.max(...ends)], y: state.brush ? state.brush.y : null } : null, at);
  showBrush();
}
/* All charts afresh: another view, other colours. */
function drawCharts() {
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.captioner : undefined;
  const place = focused === undefined ? "" : document.activeElement.closest("#length-charts") ? "length-charts" : "shape-charts";
  readColours();
  showShape();
  showLength();
  if (state.brush && byId("length-from")) {
    byId("length-from").value = state.brush.x[0] ? Math.round(state.brush.x[0]) : "";
    byId("length-to").value = Number.isFinite(state.brush.x[1]) ? Math.round(state.brush.x[1]) : "";
  }
  const again = place && byId(place).querySelector('[data-captioner="' + focused + '"]');
  if (again) again.focus();
}
