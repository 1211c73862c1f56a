"use strict";
// What every page of the staff does: the reader's own time beside UTC, and charts.

function showLocalTimes(root) {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (!zone || zone === "UTC") return;
    const format = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "short" });
    for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
        const moment = new Date(time.dateTime);
        if (!time.dateTime.includes("T") || Number.isNaN(moment.getTime())) continue;
        time.dataset.local = "";
        time.title = `${format.format(moment)} ${zone}`;
        const local = document.createElement("span");
        local.className = "local-time";
        local.textContent = ` (${format.format(moment)} here)`;
        if (time.classList.contains("with-local")) time.after(local);
    }
}

document.addEventListener("DOMContentLoaded", () => showLocalTimes(document));
document.addEventListener("htmx:load", (event) => showLocalTimes(event.target));
