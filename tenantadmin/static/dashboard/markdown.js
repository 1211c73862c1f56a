// The part of Markdown that terms and digests use: headings, lists, paragraphs, tables as text,
// **bold**, `code`.

import { h } from "./dom.js";

/** @param {string} text */
function inline(text) {
  return text.split(/(\*\*[^*]+\*\*|`[^`]+`)/).map((part) => {
    if (part.startsWith("**")) return h("strong", part.slice(2, -2));
    if (part.startsWith("`")) return h("code", part.slice(1, -1));
    return part;
  });
}

/** @param {string} text @returns {HTMLElement[]} */
export function markdown(text) {
  return text
    .split(/\n\s*\n/)
    .filter((block) => block.trim())
    .map((block) => {
      const lines = block.trim().split("\n");
      const heading = /^(#{1,6})\s+(.*)$/.exec(lines[0]);
      if (heading) {
        const head = h(`h${Math.min(6, heading[1].length + 1)}`, null, inline(heading[2]));
        return lines.length > 1 ? h("div", head, markdown(lines.slice(1).join("\n"))) : head;
      }
      const item = /^(?:[-*]|(\d+)\.)\s+/;
      if (item.test(lines[0])) {
        const items = lines.reduce((all, line) => {
          if (item.test(line)) all.push(line.replace(item, ""));
          else all[all.length - 1] += ` ${line.trim()}`;
          return all;
        }, /** @type {string[]} */ ([]));
        return h(
          /^\d/.test(lines[0]) ? "ol" : "ul",
          null,
          items.map((entry) => h("li", inline(entry))),
        );
      }
      return h("p", inline(lines.join(" ")));
    });
}
