// Pieces of forms that do more than hold a value.

import { call } from "./api.js";
import { ROLES } from "./people.js";
import { staff } from "./staff.js";
import { field, go, h, input, notify, select, sentence } from "./ui.js";

/** @param {string} text names or patterns, on lines or behind commas */
export const names = (text) =>
  text
    .split(/[,\n]/)
    .map((one) => one.trim())
    .filter(Boolean);

/** A field for the comment on a change, and a function that returns what it says. */
export function commentInput(text = "") {
  const opened = staff();
  const given = input("comment", text || opened?.reason, {
    maxlength: 500,
    autocomplete: "off",
    placeholder: "Why it changes, for the history",
    required: opened !== null,
  });
  return {
    field: opened
      ? field(
          "Reason",
          given,
          "Why you do this. The tenant’s members read it in their history, staff in the audit log.",
        )
      : field("Comment", given),
    value: () => given.value.trim(),
  };
}

/** @param {string} tenant the fields of an invitation, and a function that sends it */
export function invitation(tenant) {
  const email = input("email", "", {
    type: "email",
    required: true,
    placeholder: "name@example.com",
  });
  const role = select("role", ROLES, "member");
  const message = input("message", "", { maxlength: 500, placeholder: "Optional" });
  return {
    fields: [
      field("Email", email, "The address gets a mail. It has 14 days to accept."),
      field("Role", role),
      field("Message", message),
    ],
    send: async () => {
      const to = email.value.trim();
      await call("POST /config/tenants/{tenant}/invitations", {
        tenant,
        body: {
          email: to,
          role: /** @type {Contract.MembershipRole} */ (role.value),
          message: message.value.trim(),
        },
      });
      notify(`Invited ${to}.`);
    },
  };
}

/**
 * @type
 *   {(name: string, choices: Texts | string[], value: string, label: string,
 *   save: (value: string) => any) => HTMLElement}
 *   a menu that saves what is chosen at once
 */
export function savingSelect(name, choices, value, label, save) {
  // One after the other, or the first might come last.
  let saving = Promise.resolve();
  const keep = async (/** @type {string} */ wanted) => {
    try {
      await save(wanted);
      value = wanted;
    } catch (error) {
      notify(sentence(error), "error");
      // Unless something else was chosen meanwhile, which is saved next.
      if (menu.value === wanted) menu.value = value;
    }
  };
  const menu = select(name, choices, value, {
    "aria-label": label,
    onchange: () => {
      const wanted = menu.value;
      saving = saving.then(() => keep(wanted));
    },
  });
  return menu;
}

/**
 * @type
 *   {(kind: string, submit: (form: HTMLFormElement) => any, ...children: Child[]) =>
 *   HTMLFormElement}
 */
export const form = (kind, submit, ...children) => {
  const element = /** @type {HTMLFormElement} */ (
    h(
      `form${kind}`,
      {
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          submit(element);
        },
      },
      ...children,
    )
  );
  return element;
};

/**
 * @type {(at: (chosen: any) => string, ...fields: Child[]) => HTMLFormElement} a panel of filters;
 *   `at` is the address of the page with what is chosen
 */
export const filters = (at, ...fields) =>
  form(
    ".panel",
    (given) => go(at(Object.fromEntries(new FormData(given)))),
    h("div.form.short", fields, h("div.field.end", h("button.button.primary", "Show"))),
  );

/**
 * @param {Context} context
 * @param {() => any} act what the palette led to this page for: done once
 */
export function whenAsked({ query, address, later }, act) {
  if (!query.has("new")) return;
  address(location.hash.split("?")[0]);
  later(act);
}

/** @type {Units} in seconds */
export const TIMES = [
  [1, "s"],
  [60, "min"],
  [3600, "h"],
  [86_400, "d"],
];
/** @type {Units} in bytes */
export const SIZES = [
  [1, "B"],
  [1e3, "kB"],
  [1e6, "MB"],
  [1e9, "GB"],
];

/**
 * @param {string} label
 * @param {string} name
 * @param {number | undefined} value
 * @param {Units} units
 * @param {Child} hint
 * @param {Props} [props] a number in the unit that one chooses
 */
export function withUnit(label, name, value, units, hint, props) {
  const [size] =
    [...units]
      .reverse()
      .find(([one]) => value !== undefined && value % one === 0 && (value || one === 1)) ??
    units[2];
  const amount = input(name, value === undefined ? "" : value / size, {
    ...props,
    type: "number",
    min: 0,
    step: "any",
  });
  const unit = select(
    `${name}Unit`,
    units.map(([one, text]) => [String(one), text]),
    String(size),
    { ...props, "aria-label": `${label}: unit` },
  );
  return {
    field: field(label, h("div.row", amount, unit), hint),
    value: () =>
      amount.value === "" ? undefined : Math.round(Number(amount.value) * Number(unit.value)),
  };
}
