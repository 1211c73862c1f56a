// Charts by Chart.js, with changes as lines.

import { loadScript } from "./config.js";
import { duration, percent } from "./format.js";
import { h, table, text } from "./ui.js";

/** Load Chart.js, once. */
export async function loadCharts() {
  await loadScript("unfold/js/chart/chart.js");
  const { font } = /** @type {any} */ (globalThis).Chart.defaults;
  Object.assign(font, { family: colour("font"), size: parseFloat(colour("size-tiny")) });
}

/** @param {string} name a custom property of the style sheet */
const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/**
 * @param {{label: string, labels: string[], series: Series[], marks?: Mark[], short?: boolean,
 *   press?: (first: number, last: number) => void, signal: AbortSignal}} options `press` gets the
 *   bars that were dragged over, or twice the one that was pressed
 * @returns {HTMLElement} empty until its script is there
 */
export function chart({ label, labels, series, marks = [], short, press, signal }) {
  const canvas = h("canvas", { role: "img", "aria-label": label });
  const box = h("div", { class: short ? "chart short" : "chart" }, canvas);
  /** @type {any} */
  let drawn = null;
  const draw = () => {
    drawn?.destroy();
    drawn = signal.aborted
      ? null
      : new /** @type {any} */ (globalThis).Chart(canvas, settings(labels, series, marks, press));
    if (drawn) box.dataset.drawn = "true";
  };
  if (press) {
    canvas.addEventListener("pointerdown", (event) => {
      if (drawn) drawn.$from = drawn.getElementsAtEventForMode(event, ...BY_TIME, true)[0]?.index;
    });
    canvas.addEventListener("pointerleave", () => drawn && (drawn.$from = undefined));
  }
  const dark = matchMedia("(prefers-color-scheme: dark)");
  loadCharts().then(draw, (error) => box.replaceChildren(error.message));
  dark.addEventListener("change", draw, { signal });
  signal.addEventListener("abort", draw);
  return h("figure", box, asTable(label, labels, series, marks, press));
}

/** Which bar is meant, wherever the pointer is above it. */
const BY_TIME = /** @type {const} */ (["index", { intersect: false }]);

/** @typedef {((first: number, last: number) => void) | undefined} Press */

/**
 * @param {string} label
 * @param {string[]} labels
 * @param {Series[]} series
 * @param {Mark[]} marks
 * @param {Press} press
 */
function asTable(label, labels, series, marks, press) {
  const details = h("details.as-table", h("summary", "Show as a table"));
  const build = () => {
    const rows = labels.map((name, index) => ({ name, index }));
    details.append(
      table(
        [
          press
            ? {
                head: "Time",
                cell: ({ name, index }) =>
                  h("button.link", { type: "button", onclick: () => press(index, index) }, name),
              }
            : text("Time", "name"),
          ...series.map((one) => ({
            head: one.label,
            number: true,
            cell: (/** @type {any} */ row) => one.show(one.values[row.index]),
          })),
          marks.length > 0 && {
            head: "Changes",
            cell: (row) => textsAt(marks, row.index).join("; "),
          },
        ],
        rows,
        { label },
      ),
    );
  };
  details.addEventListener("toggle", build, { once: true });
  return details;
}

/** @type {(marks: Mark[], index: number) => string[]} */
const textsAt = (marks, index) =>
  marks.filter((mark) => mark.index === index).map((mark) => mark.text);

/**
 * @param {string[]} labels
 * @param {Series[]} series
 * @param {Mark[]} marks
 * @param {Press} press
 */
function settings(labels, series, marks, press) {
  const [ink, grid] = [colour("muted"), colour("line")];
  const ticks = { color: ink, maxRotation: 0, autoSkipPadding: 14 };
  const right = series.find((one) => one.axis === "right");
  const left = series.find((one) => one.axis !== "right");
  return {
    data: {
      labels,
      datasets: series.map((one) => ({
        type: one.kind ?? "bar",
        label: one.label,
        data: one.values,
        yAxisID: one.axis ?? "left",
        stack: one.stack,
        backgroundColor: colour(one.colour),
        borderColor: colour(one.colour),
        order: one.kind === "line" ? 0 : 1,
        borderWidth: one.kind === "line" ? 2 : 0,
        // A line has no length between a value and none.
        pointRadius: one.values.map((_, index) =>
          [index - 1, index + 1].every((next) => one.values[next] == null) ? 2.5 : 0,
        ),
        pointHitRadius: 8,
        borderRadius: one.stack ? 0 : 2,
        categoryPercentage: 0.86,
      })),
    },
    options: {
      maintainAspectRatio: false,
      animation: false,
      interaction: { mode: BY_TIME[0], ...BY_TIME[1] },
      // Chart.js goes on with the event afterwards, so the chart must not be gone yet.
      onClick: (
        /** @type {any} */ _,
        /** @type {{index: number}[]} */ hits,
        /** @type {any} */ drawn,
      ) => {
        if (!press || !hits.length) return;
        const ends = [drawn.$from ?? hits[0].index, hits[0].index];
        drawn.$from = undefined;
        setTimeout(press, 0, Math.min(...ends), Math.max(...ends));
      },
      scales: {
        x: { stacked: true, grid: { display: false }, border: { color: grid }, ticks },
        left: {
          stacked: series.some((one) => one.stack),
          beginAtZero: true,
          position: "left",
          border: { display: false },
          grid: { color: grid },
          ticks: {
            ...ticks,
            maxTicksLimit: 6,
            callback:
              left &&
              ((
                /** @type {number} */ value,
                /** @type {number} */ _,
                /** @type {{value: number}[]} */ all,
              ) =>
                left.show === duration
                  ? inUnitOf(all[all.length - 1].value, value)
                  : left.show(value)),
          },
          beforeBuildTicks: (/** @type {any} */ axis) => {
            if (left?.show === duration) axis.options.ticks.stepSize = stepOf(axis.max);
          },
        },
        ...(right && {
          right: {
            position: "right",
            border: { display: false },
            grid: { display: false },
            ...(right.show === percent
              ? {
                  min: 0,
                  max: 1,
                  ticks: {
                    ...ticks,
                    stepSize: 0.25,
                    callback: (/** @type {number} */ value) => `${value * 100}%`,
                  },
                }
              : { beginAtZero: true, ticks: { ...ticks, maxTicksLimit: 6, callback: right.show } }),
          },
        }),
      },
      plugins: {
        legend: { align: "end", labels: { color: ink, boxWidth: 10, boxHeight: 10, padding: 14 } },
        tooltip: {
          callbacks: {
            label: (/** @type {any} */ item) =>
              ` ${item.dataset.label}: ${series[item.datasetIndex].show(item.raw)}`,
            footer: (/** @type {any[]} */ items) => textsAt(marks, items[0]?.dataIndex),
          },
        },
      },
    },
    plugins: [markLines(marks), markDrag],
  };
}

/** @param {number} top milliseconds, which Chart.js would divide into 5.6 h and the like */
function stepOf(top) {
  const unit = [864e5, 36e5, 6e4, 1e3].find((it) => top >= it);
  return (
    unit && unit * ([0.5, 1, 2, 3, 4, 6, 10, 20, 50].find((it) => top <= 5 * it * unit) ?? 100)
  );
}

const markDrag = {
  id: "drag",
  /** @param {any} chart */
  beforeDatasetsDraw(chart) {
    const to = chart.getActiveElements()[0]?.index;
    if (chart.$from === undefined || to === undefined) return;
    const { ctx, chartArea: area, scales } = chart;
    const [left, right] = [chart.$from, to].sort((one, two) => one - two);
    const half = area.width / chart.data.labels.length / 2;
    const [start, end] = [
      scales.x.getPixelForValue(left) - half,
      scales.x.getPixelForValue(right) + half,
    ];
    ctx.save();
    ctx.fillStyle = colour("line");
    ctx.fillRect(start, area.top, end - start, area.height);
    ctx.restore();
  },
};

/** @param {Mark[]} marks */
function markLines(marks) {
  return {
    id: "marks",
    /** @param {any} _ */
    afterDatasetsDraw({ ctx, chartArea: area, scales: { x } }) {
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colour("accent");
      ctx.setLineDash([3, 3]);
      for (const index of new Set(marks.map((mark) => mark.index))) {
        const at = Math.round(x.getPixelForValue(index)) + 0.5;
        ctx.beginPath();
        ctx.moveTo(at, area.top);
        ctx.lineTo(at, area.bottom);
        ctx.stroke();
        ctx.beginPath();
        ctx.arc(at, area.top, 3.5, 0, 7);
        ctx.fill();
      }
      ctx.restore();
    },
  };
}

/**
 * @param {number} top the last tick
 * @param {number} value milliseconds, in one unit for the whole axis
 */
function inUnitOf(top, value) {
  const [size, unit] = /** @type {[number, string][]} */ ([
    [36e5, "h"],
    [6e4, "min"],
    [1e3, "s"],
  ]).find(([it]) => top >= it) ?? [1, "ms"];
  return `${Math.round((10 * value) / size) / 10} ${unit}`;
}
