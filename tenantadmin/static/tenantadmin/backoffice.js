import { loadScript } from "../dashboard/config.js";
import * as f from "../dashboard/format.js";

// Ace would start its worker from a blob, which the content policy forbids. The service lints instead.
window.ace?.config.setDefaultValue("session", "useWorker", false);

// --- Times, in the zone that the reader chose ---

// Django's lists and records show a time as mere text.
function markTimes(root) {
    for (const place of root.querySelectorAll("#result_list :is(th, td), .readonly")) {
        const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            const text = texts.currentNode;
            const [, day, clock] = /^\s*([\d-]{10}) ([\d:]{8}) UTC\s*$/.exec(text.data) ?? [];
            if (!day || text.parentElement.localName === "time") continue;
            const time = document.createElement("time");
            time.className = place.closest("#result_list") ? "moment ago" : "moment";
            time.dateTime = `${day}T${clock}Z`;
            text.replaceWith(time);
        }
    }
}

function showTimes(root) {
    markTimes(root);
    for (const time of root.querySelectorAll("time.moment")) {
        time.title = f.inBothZones(time.dateTime);
        time.textContent = time.classList.contains("ago") ? f.ago(time.dateTime) : f.when(time.dateTime);
    }
    // Days of a filter are of the zone in which its rows are shown.
    for (const place of document.querySelectorAll("[data-zone]")) place.value = place.textContent = f.zone();
    for (const link of document.querySelectorAll("a[href='#zone']")) {
        link.textContent = f.zone() === "UTC" ? "Times in UTC: show mine" : `Times in ${f.zone()}: show UTC`;
    }
}

document.addEventListener("DOMContentLoaded", () => showTimes(document));
document.addEventListener("htmx:load", (event) => showTimes(event.target));
document.addEventListener("click", (event) => {
    if (!event.target.closest?.("a[href='#zone']")) return;
    event.preventDefault();
    f.chooseUtc(f.zone() !== "UTC");
    showTimes(document);
});

// --- The command palette: Enter opens the first result, Escape closes, and no letter is lost ---

// django-unfold gives the field the focus some time later, when a fast typist has typed the first letters.
function openPalette() {
    const field = document.getElementById("search-input-command");
    field.closest("[x-show]").style.display = "";
    field.focus();
}

window.addEventListener("opencommand", openPalette);
window.addEventListener("load", () => window.addEventListener("keydown", (event) => {
    if (event.key === "k" && event.defaultPrevented) openPalette();
}));

document.addEventListener("keydown", (event) => {
    if (event.target.id !== "search-input-command") return;
    // django-unfold closes an empty palette alone.
    if (event.key === "Escape") {
        event.target.value = "";
        // Without it, htmx does not ask for the same words again.
        event.target.dispatchEvent(new Event("keyup"));
        // A field that was just hidden may still have the focus, and then Ctrl+K does nothing.
        event.target.blur();
    }
    opensFirst = event.key === "Enter";
    if (!opensFirst) return;
    // django-unfold opens the result that the arrows chose. Without one it fails, so it must not see the key.
    if (document.querySelector("#command-results li.active")) return;
    event.preventDefault();
    event.stopPropagation();
    openFirst(event.target);
}, true);

// The results may still be those of the first letters. Then the first of all letters opens when it comes.
let opensFirst = false;

function openFirst(field) {
    const first = document.querySelector("#command-results a");
    if (first && opensFirst && field.dataset.answered === field.value) window.location.assign(first.href);
}

document.addEventListener("htmx:afterSwap", (event) => {
    const { elt, parameters } = event.detail.requestConfig;
    if (elt.id !== "search-input-command") return;
    elt.dataset.answered = parameters.s;
    openFirst(elt);
});

// --- Tables that do not fit take the whole width, and if that is not enough, a row is a block ---

function fitTable(table) {
    const place = table.closest(".columns > *");
    const isTooWide = () => table.parentElement.scrollWidth > table.parentElement.clientWidth;
    table.classList.remove("folded");
    if (!isTooWide()) return;
    place?.classList.add("whole");
    table.classList.toggle("folded", isTooWide());
}

function fitTables(root) {
    for (const place of root.querySelectorAll(".columns > .whole")) place.classList.remove("whole");
    for (const table of root.querySelectorAll(".page table.rows:not(.result)")) fitTable(table);
}

// What is wider than its place all the same can be scrolled by keyboard.
function letKeyboardScroll(root) {
    for (const box of root.querySelectorAll(".wide, .panel, .diff")) {
        if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
    }
}

function fit(root) {
    fitTables(root);
    letKeyboardScroll(root);
}

document.addEventListener("DOMContentLoaded", () => fit(document));
// A font that comes late has letters of another width.
document.fonts.addEventListener("loadingdone", () => fit(document));
document.addEventListener("htmx:load", (event) => fit(event.target));
// Closed details have no size.
document.addEventListener("toggle", (event) => fit(event.target), true);
let resized;
window.addEventListener("resize", () => {
    cancelAnimationFrame(resized);
    resized = requestAnimationFrame(() => fit(document));
});

// --- A part that is read again keeps the focus where the user put it ---

let focused;

function noteFocus(part) {
    focused = part.contains(document.activeElement) ? document.activeElement : null;
}

function restoreFocus(part) {
    const isIt = (one) => one.isEqualNode(focused) || (one.name && one.name === focused.name && one.value === focused.value);
    if (focused) [...part.querySelectorAll("a, button, input")].find(isIt)?.focus();
    focused = null;
}

document.addEventListener("htmx:beforeSwap", (event) => noteFocus(event.detail.target));
document.addEventListener("htmx:load", (event) => restoreFocus(event.target));

// A cell that is cut says the rest in its tooltip, and opens.
const cellOf = (event) => event.target.closest?.(".rows :is(td, th):not(thead *)");
document.addEventListener("pointerover", (event) => {
    const cell = cellOf(event);
    if (cell && cell.scrollWidth > cell.clientWidth) cell.title = cell.innerText;
});
document.addEventListener("click", (event) => {
    const cell = cellOf(event);
    if (!cell || event.target.closest("a, button, input, label")) return;
    if (cell.scrollWidth > cell.clientWidth || cell.classList.contains("open")) cell.classList.toggle("open");
});

// --- The tab of this page is in sight ---

document.addEventListener("DOMContentLoaded", () => {
    const tab = document.querySelector(".tabs [aria-current]");
    const tabs = tab?.parentElement;
    if (tabs) tabs.scrollLeft = tab.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - tab.clientWidth) / 2;
});

// --- From one change of a long diff to the next ---

function stepThrough(box) {
    const changes = [...box.querySelectorAll("tr[class]:not(.skip)")].filter((row) => !row.previousElementSibling?.matches("[class]:not(.skip)"));
    if (changes.length < 2 || box.scrollHeight <= box.clientHeight) return;
    let place = -1;
    const said = Object.assign(document.createElement("span"), { className: "subtle", textContent: `${f.count(changes.length, "change")}` });
    const go = (step) => {
        changes[place]?.classList.remove("here");
        place = (place + step + changes.length) % changes.length;
        changes[place].classList.add("here");
        box.scrollTop = changes[place].offsetTop - 60;
        said.textContent = `${place + 1} of ${f.count(changes.length, "change")}`;
    };
    const button = (text, step) => {
        const made = Object.assign(document.createElement("button"), { type: "button", className: "act", textContent: text });
        made.addEventListener("click", () => go(step));
        return made;
    };
    const tools = Object.assign(document.createElement("div"), { className: "diff-tools" });
    tools.append(button("Next change", 1), button("Previous", -1), said);
    box.before(tools);
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".diff").forEach(stepThrough));

// --- Charts ---

function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const changeLines = {
    id: "changeLines",
    afterDatasetsDraw(chart) {
        const { ctx, chartArea, scales } = chart;
        ctx.save();
        ctx.strokeStyle = color("--warn");
        ctx.setLineDash([4, 3]);
        for (const mark of chart.options.marks || []) {
            const index = chart.data.labels.indexOf(mark.at);
            if (index < 0) continue;
            const x = scales.x.getPixelForValue(index);
            ctx.beginPath();
            ctx.moveTo(x, chartArea.top);
            ctx.lineTo(x, chartArea.bottom);
            ctx.stroke();
        }
        ctx.restore();
    },
};

async function drawChart(canvas) {
    await loadScript("unfold/js/chart/chart.js");
    const data = JSON.parse(document.getElementById(canvas.dataset.chart).textContent);
    const grid = color("--line");
    const text = color("--muted");
    // Counts are whole. Other numbers of a result are not.
    const write = (value) => Number.isInteger(value) ? f.number(value) : value;
    Chart.defaults.font.family = "Inter, sans-serif";
    new Chart(canvas, {
        type: "bar",
        data: {
            labels: data.labels,
            datasets: [
                ...(data.line ? [{ type: "line", label: data.line.label, data: data.line.values, yAxisID: "rate", borderColor: color("--rate"), borderWidth: 2, pointRadius: 0, spanGaps: true }] : []),
                ...data.bars.map((bar) => ({ label: bar.label, data: bar.values, backgroundColor: color(`--${bar.color}`), stack: "requests" })),
            ],
        },
        options: {
            animation: false,
            maintainAspectRatio: false,
            marks: data.marks,
            interaction: { mode: "index", intersect: false },
            // A click on a day with a change opens the change's difference.
            onClick(event, _items, chart) {
                const index = chart.scales.x.getValueForPixel(event.x);
                const mark = data.marks.find((one) => one.at === data.labels[index]);
                if (mark) window.location.assign(mark.href);
            },
            plugins: {
                legend: { labels: { color: text, boxWidth: 12 } },
                tooltip: { callbacks: {
                    label: ({ dataset, raw }) => `${dataset.label}: ${dataset.yAxisID === "rate" ? f.percent(raw === null ? null : raw / 100) : write(raw)}`,
                    footer: (items) => data.marks.filter((one) => one.at === items[0].label).map((one) => one.text),
                } },
            },
            scales: {
                x: { stacked: true, grid: { display: false }, ticks: { color: text, ...data.labels.length > 15 ? { maxRotation: 0, autoSkipPadding: 12 } : { autoSkip: false } } },
                y: { stacked: true, beginAtZero: true, grid: { color: grid }, ticks: { color: text, callback: write } },
                ...data.line && { rate: { position: "right", min: 0, max: 100, grid: { display: false }, ticks: { color: text, callback: (value) => `${value}%` } } },
            },
        },
        plugins: [changeLines],
    });
}

function drawCharts(root) {
    for (const canvas of root.querySelectorAll("canvas[data-chart]:not([data-drawn])")) {
        canvas.dataset.drawn = "";
        drawChart(canvas).catch(() => sayFailed(canvas.parentElement));
    }
}

document.addEventListener("DOMContentLoaded", () => drawCharts(document));
document.addEventListener("htmx:load", (event) => drawCharts(event.target));

// --- What could not be loaded ---

function sayFailed(place) {
    place.querySelector(":scope > .not-loaded")?.remove();
    const note = document.createElement("p");
    note.className = "problem not-loaded";
    note.role = "alert";
    note.textContent = "This could not be loaded. Try again, or load the page again.";
    place.prepend(note);
}

for (const name of ["htmx:responseError", "htmx:sendError"]) {
    document.addEventListener(name, (event) => sayFailed(event.detail.target));
}

// --- What acts on chosen rows needs a choice ---

function watchChoice(form) {
    const button = form.querySelector("[data-needs-choice]");
    const look = () => { button.disabled = !form.querySelector("input[type=checkbox]:checked"); };
    form.addEventListener("change", look);
    // A browser may show the page again as it was left.
    window.addEventListener("pageshow", look);
    look();
}

document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-needs-choice]")) watchChoice(button.form);
});

// --- Copying ---

document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const label = button.textContent;
    try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
    } catch {
        button.textContent = "Select and copy it";
    }
    setTimeout(() => { button.textContent = label; }, 2000);
});
