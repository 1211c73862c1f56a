import { onPaletteKey } from "../dashboard/dom.js";
import * as f from "../dashboard/format.js";
import { openPalette } from "../dashboard/palette.js";

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

// --- The command palette ---

const finder = document.querySelector("[data-palette]");

async function find(term) {
    const answer = await fetch(`${finder.dataset.palette}?${new URLSearchParams({ s: term })}`);
    if (!answer.ok || answer.redirected) throw new Error("The search failed.");
    return (await answer.json()).results;
}

const open = () => finder && openPalette(find, {
    placeholder: "A tenant, person, account, FQDN or page, or what you want to do",
    hint: "Type the beginning of a word: of a tenant, a person, an account, an email, an FQDN or a domain; or six characters or more of an id. "
        + "Pages and acts are found too: “audit olu”, “invalidate retail”, “offboard olu”.",
});
finder?.addEventListener("click", open);
onPaletteKey(open);

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
