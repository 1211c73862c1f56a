// What pages are built of.

export { fill, h, refill, released } from "./dom.js";
export { go, to } from "./router.js";
export * from "./widgets/basics.js";
export * from "./widgets/dialog.js";
export * from "./widgets/fields.js";
export * from "./widgets/links.js";
export * from "./widgets/notices.js";
export * from "./widgets/table.js";
