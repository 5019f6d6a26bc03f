const FONT = 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const SYMBOLS = ["circle", "rect", "triangle", "diamond", "roundRect", "pin", "arrow"];
const charts = new Map();
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const captionerColour = (captioner) => colour("--c" + captioner % 10);
const DOWNLOAD = "path://M4 16v3h16v-3h-2v1H6v-1zM11 4h2v7h3l-4 5-4-5h3z";

function legend() {
  const entries = names().map((name, captioner) => {
    const dot = h("i", { class: "dot" });
    dot.style.background = "var(--c" + captioner % 10 + ")";
    return h("span", { dir: "auto" }, dot, name);
  });
  return h("div", { class: "legend" }, entries);
}
function chartBox(id, label, height) {
  const box = h("div", { id, class: "chart", role: "img", "aria-label": label });
  box.style.height = height + "px";
  return box;
}
/* Draws a chart that is saved as PNG or SVG by its toolbox. */
function draw(box, option) {
  const chart = echarts.init(box, null, { renderer: "canvas" });
  const text = { color: colour("--ink"), fontFamily: FONT, fontSize: 12 };
  const whole = {
    animation: false, backgroundColor: "transparent", textStyle: text, ...option,
    tooltip: { renderMode: "richText", confine: true, backgroundColor: colour("--card"), borderColor: colour("--line"), textStyle: text, ...option.tooltip },
    toolbox: {
      right: 0, top: 0, padding: 2, itemSize: 15, iconStyle: { borderColor: colour("--soft") },
      feature: {
        saveAsImage: { title: "PNG", pixelRatio: 2, backgroundColor: colour("--card"), name: box.id },
        mySvg: { show: true, title: "SVG", icon: DOWNLOAD, onclick: () => saveSvg(box, whole) },
      },
    },
  };
  chart.setOption(whole);
  charts.set(box, chart);
}
function saveSvg(box, option) {
  const drawn = echarts.init(null, null, { renderer: "svg", ssr: true, width: box.clientWidth, height: box.clientHeight });
  drawn.setOption({ ...option, toolbox: undefined, backgroundColor: colour("--card") });
  const link = h("a", { href: URL.createObjectURL(new Blob([drawn.renderToSVGString()], { type: "image/svg+xml" })), download: box.id + ".svg" });
  drawn.dispose();
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
function forgetCharts() {
  for (const chart of charts.values()) chart.dispose();
  charts.clear();
}
addEventListener("resize", () => { for (const chart of charts.values()) chart.resize(); });
const axisLines = () => ({ axisLine: { lineStyle: { color: colour("--line") } }, splitLine: { lineStyle: { color: colour("--line"), opacity: 0.6 } }, axisLabel: { color: colour("--soft") }, axisTick: { show: false } });
function nameAxis(labels, width) {
  return { type: "category", data: labels, inverse: true, ...axisLines(), splitLine: { show: false }, axisLabel: { color: colour("--ink"), width, overflow: "truncate", interval: 0 } };
}
const labelWidth = (box) => Math.min(190, Math.max(90, (box.clientWidth || 600) * 0.28));

/* Points with their intervals as lines, one series per captioner. */
function pointSeries(points, look) {
  return {
    type: "custom", name: look.name, encode: { x: 0, y: 1 }, z: look.z || 2,
    data: points.map((point) => [point.figure[0], point.place, point.figure[1], point.figure[2], point.isFaint ? 1 : 0]),
    renderItem: (_, api) => {
      const [x, middle] = api.coord([api.value(0), api.value(1)]);
      const y = middle + look.shift;
      const style = { stroke: look.colour, fill: look.colour, opacity: api.value(4) ? 0.5 : 1 };
      const parts = [];
      if (Number.isFinite(api.value(2)) && Number.isFinite(api.value(3))) {
        const [low, high] = [api.coord([api.value(2), 0])[0], api.coord([api.value(3), 0])[0]];
        parts.push({ type: "line", shape: { x1: low, y1: y, x2: high, y2: y }, style: { ...style, lineWidth: 3, lineCap: "round" } });
      }
      parts.push({ type: "circle", shape: { cx: x, cy: y, r: 5 }, style });
      return { type: "group", children: parts };
    },
  };
}
/* Differences to the chosen captioner. */
function drawForest(box, rows, metric) {
  const width = labelWidth(box);
  const isWide = (box.clientWidth || 600) > 640;
  const ends = rows.flatMap((row) => row.figure).filter((value) => value !== null);
  const reach = 1.1 * Math.max(...ends.map(Math.abs), 1e-6);
  draw(box, {
    grid: { left: width + 12, right: isWide ? 190 : 16, top: 30, bottom: 44 },
    tooltip: { formatter: (point) => rows[point.data[1]].label + "\n" + differenceText(rows[point.data[1]], metric) },
    xAxis: { type: "value", min: -reach, max: reach, ...axisLines(), name: "← worse   ·   better →", nameLocation: "middle", nameGap: 26, nameTextStyle: { color: colour("--soft") }, inverse: !metric.higher_is_better, axisLabel: { color: colour("--soft"), formatter: (value) => (Math.abs(value) > reach * 0.999 ? "" : String(Number(value.toPrecision(3)))) } },
    yAxis: nameAxis(rows.map((row) => row.label), width),
    series: [
      ...names().map((name, captioner) => pointSeries(
        rows.map((row, place) => ({ ...row, place, isFaint: row.outcome === "tied" || row.outcome === "unknown" })).filter((row) => row.captioner === captioner),
        { name, colour: captionerColour(captioner), shift: 0 })),
      {
        type: "custom", silent: true, data: rows.map((row, place) => [0, place]),
        renderItem: (point, api) => {
          const [x, y] = api.coord([0, api.value(1)]);
          const { coordSys } = point;
          const children = [{ type: "line", shape: { x1: x, y1: coordSys.y, x2: x, y2: coordSys.y + coordSys.height }, style: { stroke: colour("--soft"), lineWidth: 1 } }];
          if (isWide) children.push({ type: "text", style: { x: coordSys.x + coordSys.width + 10, y, text: differenceText(rows[api.value(1)], metric).split("\n")[0], fill: colour("--ink"), fontFamily: FONT, fontSize: 12, verticalAlign: "middle" } });
          return { type: "group", children };
        },
      },
    ],
  });
}
function differenceText(row, metric) {
  const [value, low, high] = row.figure;
  const ends = low === null ? "" : " [" + signed(low, metric) + ", " + signed(high, metric) + "]";
  const p = row.p === null ? "no interval" : row.p < 0.001 ? "p < 0.001" : "p = " + row.p.toFixed(3);
  return signed(value, metric) + ends + "\n" + p + ", " + row.outcome;
}
/* A metric in each group of a section. */
function drawGroups(box, section, metric) {
  const width = labelWidth(box);
  const figures = section.figures[metric.name] || [];
  const shown = names().map((_, captioner) => captioner).filter((captioner) => (figures[captioner] || []).some(Boolean));
  const ends = shown.flatMap((captioner) => figures[captioner].filter(Boolean).flat()).filter((value) => value !== null);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const room = 0.04 * (high - low || 1);
  const step = Math.min(12, 26 / Math.max(1, shown.length));
  draw(box, {
    grid: { left: width + 12, right: 24, top: 30, bottom: 30 },
    tooltip: { formatter: (point) => point.seriesName + "\n" + section.groups[point.data[1]] + ": " + interval(figures[names().indexOf(point.seriesName)][point.data[1]], metric) + "\n" + (section.n_questions[point.data[1]] ? plural(section.n_questions[point.data[1]], "question") : "") },
    xAxis: { type: "value", scale: true, min: low - room, max: high + room, ...axisLines(), axisLabel: { color: colour("--soft"), showMinLabel: false, showMaxLabel: false } },
    yAxis: { ...nameAxis(section.groups, width), splitLine: { show: true, lineStyle: { color: colour("--line"), opacity: 0.5 } } },
    series: shown.map((captioner, order) => pointSeries(
      figures[captioner].map((figure, place) => ({ figure, place })).filter((point) => point.figure),
      { name: names()[captioner], colour: captionerColour(captioner), shift: (order - (shown.length - 1) / 2) * step })),
  });
}
/* Score over length, a point per caption. */
function drawLength(box, what, metric) {
  const rows = rowsOfView();
  const points = names().map((_, captioner) => rows.map((row) => [core.rows[what][captioner][row], valueOf(row, captioner, metric.name), row]).filter(([x, y]) => x !== null && y !== null));
  const n = points.reduce((sum, one) => sum + one.length, 0);
  draw(box, {
    grid: { left: 56, right: 24, top: 36, bottom: 48 },
    tooltip: { formatter: (point) => point.seriesName + "\n" + core.rows.video[point.data[2]] + "\n" + point.data[0] + " " + what + ", " + metric.name + " " + number(point.data[1], metric) },
    xAxis: { type: "value", name: what, nameLocation: "middle", nameGap: 30, min: 0, ...axisLines() },
    yAxis: { type: "value", name: metric.name, min: metric.lowest, ...axisLines(), nameTextStyle: { color: colour("--soft"), align: "left" } },
    series: points.map((data, captioner) => ({
      type: "scatter", name: names()[captioner], data, symbol: SYMBOLS[captioner % SYMBOLS.length], symbolSize: n > 4000 ? 4 : n > 500 ? 6 : 8,
      itemStyle: { color: captionerColour(captioner), opacity: n > 2000 ? 0.4 : 0.7 },
    })),
  });
  return points;
}
/* Ranks from 1; equal values share the mean of theirs. */
function ranks(values) {
  const order = values.map((_, place) => place).sort((a, b) => values[a] - values[b]);
  const made = new Float64Array(values.length);
  for (let from = 0; from < order.length;) {
    let to = from + 1;
    while (to < order.length && values[order[to]] === values[order[from]]) to += 1;
    for (let place = from; place < to; place += 1) made[order[place]] = (from + to + 1) / 2;
    from = to;
  }
  return made;
}
/* Spearman's rank correlation; null if one side never changes. */
function spearman(points) {
  const [a, b] = [ranks(points.map((point) => point[0])), ranks(points.map((point) => point[1]))];
  const mean = (points.length + 1) / 2;
  let [both, left, right] = [0, 0, 0];
  a.forEach((rank, place) => { both += (rank - mean) * (b[place] - mean); left += (rank - mean) ** 2; right += (b[place] - mean) ** 2; });
  return points.length > 2 && left && right ? both / Math.sqrt(left * right) : null;
}
