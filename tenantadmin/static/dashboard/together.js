// Several recommendations in one draft: one replay, published once.

import { call } from "./api.js";
import { startReplay } from "./publish.js";
import { button, checkbox, fill, h } from "./ui.js";

/**
 * @param {Context} context
 * @param {Contract.Recommendation[]} may those that can be taken
 * @returns {{mayChoose: boolean, tick: (one: Contract.Recommendation) => Child, bar: Child}} the
 *   box of each, and what to do with those that are ticked
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
    await startReplay(context, { draftId }, { then: "review" });
  };
  const update = () => {
    bar.hidden = !chosen.size;
    fill(
      bar,
      h(
        "span.grow",
        { role: "status" },
        h("strong", `${chosen.size} chosen`),
        ": one replay of all together, published once",
      ),
      button("Replay and publish", make, "primary"),
    );
  };
  const tick = (/** @type {Contract.Recommendation} */ one) => {
    if (!may.includes(one)) return null;
    const box = checkbox("chosen", false, {
      "aria-label": `Choose ${one.title}`,
      onchange: () => {
        chosen[box.checked ? "add" : "delete"](one.recommendationId);
        update();
      },
    });
    return h("label.check", box);
  };
  return { mayChoose: may.length > 0, tick, bar };
}
