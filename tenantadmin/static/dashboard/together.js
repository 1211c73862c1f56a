// Several recommendations in one draft: one replay, published once.

import { call } from "./api.js";
import { startReplay } from "./publish.js";
import { button, checkbox, fill, h } from "./ui.js";

/**
 * @param {Context} context
 * @param {Contract.Recommendation[]} may those that can be taken: one alone has buttons of its own
 * @returns {{tick: (one: Contract.Recommendation) => Child, bar: Child}} the box of each, and what
 *   to do with those that are ticked
 */
export function takeTogether(context, may) {
  const { tenant } = context;
  /** @type {Set<string>} */
  const chosen = new Set();
  const bar = h("div.bar", { hidden: true });
  const make = async () => {
    const { draftId } = await call("POST /tenants/{tenant}/recommendations/drafts", {
      tenant,
      body: { recommendations: [...chosen] },
    });
    await startReplay(context, { draftId });
  };
  const update = () => {
    bar.hidden = !chosen.size;
    fill(
      bar,
      h("strong.grow", { role: "status" }, `${chosen.size} chosen: one draft, published once`),
      button("Replay them together", make, "primary"),
    );
  };
  const tick = (/** @type {Contract.Recommendation} */ one) => {
    if (may.length < 2 || !may.includes(one)) return null;
    const box = checkbox("chosen", false, {
      "aria-label": `Choose ${one.title}`,
      onchange: () => {
        chosen[box.checked ? "add" : "delete"](one.recommendationId);
        update();
      },
    });
    return h("label.check", box, "Choose");
  };
  return { tick, bar };
}
