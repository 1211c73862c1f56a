// The tenants of the user.

import { call, weeksOf } from "../api.js";
import { readSetup } from "../firsthour.js";
import * as f from "../format.js";
import { form } from "../forms.js";
import { forgetPerson, listedDeleted, person, tenants } from "../people.js";
import {
  a,
  acts,
  age,
  ask,
  badge,
  beside,
  button,
  empty,
  go,
  h,
  input,
  notify,
  num,
  pageHead,
  panel,
  refill,
  released,
  skeleton,
  tablePanel,
  text,
  to,
} from "../ui.js";
import { waitingInvitations } from "./invitations.js";

/** Tenants whose figures are shown. */
const MOST = 100;

/** @type {Show} */
export async function show(context) {
  const { query, signal, reload } = context;
  const [who, all, waiting] = await Promise.all([person(), tenants(), waitingInvitations(context)]);
  if (
    all.length === 1 &&
    !waiting &&
    !listedDeleted().length &&
    who.role !== "admin" &&
    !query.has("all")
  )
    return only(all[0], signal);
  const list = h("div");
  const draw = (/** @type {Contract.TenantWeek[]} */ weeks) =>
    refill(
      list,
      tablePanel(
        f.count(all.length, "tenant"),
        beside("Figures: 7 days up to the last log. Last change: of rules or configuration."),
        [
          {
            head: "Tenant",
            cell: (row) => a(to(row.id, "overview"), h("strong", row.name)),
            sort: (row) => row.name,
          },
          text("Your role", "role", (role) => badge(role, role === "owner" ? "info" : "")),
          num("Hit rate", "hitRate", f.percent),
          num("Requests", "requests"),
          num("Warehouse time", "warehouseMs", f.duration),
          text("Last log", "lastDay", (day) => (day ? f.dayShort(day) : f.NONE)),
          age("Last change", "changedAt"),
        ],
        all.map((one) => ({ ...one, ...weeks.find((week) => week.tenantId === one.id) })),
        { label: "Tenants" },
      ),
    );
  draw([]);
  const mine = all
    .filter((one) => one.role !== "granted")
    .slice(0, MOST)
    .map((one) => one.id);
  if (mine.length)
    weeksOf(mine, signal).then(
      (weeks) => released(list).then(() => draw(weeks)),
      () => {},
    );
  return h(
    "div",
    pageHead("Tenants"),
    waiting,
    all.length
      ? list
      : empty(
          "You are in no tenant yet.",
          h("p.muted", "Ask an owner to invite your address, ", h("strong", who.email), "."),
          a("#/assessments", "Try it on your own history"),
        ),
    listedDeleted().length > 0 &&
      who.role !== "guest" &&
      tablePanel(
        "Deleted",
        beside("An owner can restore a tenant for 30 days."),
        [
          text("Tenant", "name"),
          age("Deleted", "modifiedAt"),
          acts((row) => button("Restore", () => restore(row, reload), "small")),
        ],
        listedDeleted(),
        { label: "Deleted tenants" },
      ),
    who.role === "admin" && byId(),
  );
}

/**
 * @param {Tenant} tenant
 * @param {AbortSignal} signal go to the only one: to its first steps until it has a log
 */
async function only({ id }, signal) {
  const { steps } = await readSetup(id);
  if (!signal.aborted)
    location.replace(
      to(id, steps.some((step) => step.id === "first-request" && step.done) ? "overview" : "setup"),
    );
  return skeleton();
}

/** @type {(tenant: Tenant, reload: () => void) => Promise<boolean>} */
const restore = ({ id, name }, reload) =>
  ask({
    title: `Restore ${name}?`,
    action: "Restore",
    body: "Its rules, configuration, host names and members come back. The Gateway starts with an empty cache.",
    run: () => call("POST /config/tenants/{tenant}/restore", { tenant: id }),
    then: () => {
      forgetPerson();
      notify(`${name} is back.`);
      reload();
    },
  });

/** A platform admin reads any tenant, but lists only its own. */
function byId() {
  const id = input("tenant", "", {
    pattern: "[0-9a-fA-F-]{36}",
    required: true,
    placeholder: "Tenant id",
    "aria-label": "Tenant id",
  });
  return panel(
    "Any tenant",
    null,
    form(
      ".row.pad",
      () => go(to(id.value.trim().toLowerCase(), "overview")),
      id,
      h("button.button", "Open"),
    ),
  );
}
