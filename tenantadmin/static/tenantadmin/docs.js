// A sign-in may lead here: its tokens must not stay in the address and the history.
if (/[?#&](access|refresh)_token=/.test(location.search + location.hash)) {
  history.replaceState(null, "", location.pathname);
}

// Swagger UI is dark by a class.
const dark = matchMedia("(prefers-color-scheme: dark)");
const useScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", useScheme);
useScheme();

// Swagger UI filters groups by their name alone. Here each word is looked for in the operations too.
window.operationFilter = () => ({
  fn: {
    opsFilter(groups, phrase) {
      const words = phrase.toLowerCase().split(/\s+/);
      const isMeant = (operation, tag) => {
        const said = ["operationId", "summary"].map((name) => operation.getIn(["operation", name]));
        const text = [tag, operation.get("method"), operation.get("path"), ...said].join(" ").toLowerCase();
        return words.every((word) => text.includes(word));
      };
      return groups
        .map((group, tag) => group.update("operations", (all) => all.filter((it) => isMeant(it, tag))))
        .filter((group) => group.get("operations").size > 0);
    },
  },
});

window.whenDocsAreShown = () => {
  document.querySelector(".operation-filter-input").placeholder = "Find operations: markers, replay, put rules";
};

const post = (body) => ({ method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });

/** What the examples send, by the name of the button. */
const EXAMPLES = {
  tenants: () => ["/config/tenants/manifest"],
  rules: (tenant) => [`/config/tenants/${tenant}/rules`],
  verdict: (tenant) => [`/tenants/${tenant}/verdict`],
  query: (tenant) => [`/tenants/${tenant}/query`, post({ sql: "SELECT cacheStatus, count(*) AS entries FROM proxy_logs GROUP BY ALL ORDER BY entries DESC" })],
};

let access = "";
let tenant = "";

async function send(path, options = {}) {
  const headers = { ...options.headers, ...(access && { Authorization: `Bearer ${access}` }) };
  const answer = await fetch(path, { ...options, headers });
  const body = await answer.json();
  if (!answer.ok) throw new Error(`${answer.status}: ${body.message ?? body.error ?? "failed"}`);
  return body;
}

async function useToken(form) {
  const said = form.querySelector("output");
  try {
    access = "";
    const body = new URLSearchParams({ grant_type: "pat_exchange", pat: form.elements.pat.value.trim() });
    const minted = await send("/oauth/token", { method: "POST", body });
    access = minted.access_token;
    // Made by the script of Swagger UI. "Try it out" sends the token from now on.
    ui.preauthorizeApiKey("bearerAuth", access);
    const items = (await send("/config/tenants/manifest"))._links.items;
    tenant = items[0]?.name ?? "";
    const names = items.map((it) => it.tenantName).join(", ") || "no tenant";
    said.textContent = `In use for ${Math.round(minted.expires_in / 60)} minutes. It reaches ${names}.`;
  } catch (error) {
    said.textContent = `This token was refused (${error.message}).`;
  }
  for (const button of document.querySelectorAll("[data-run]")) {
    button.disabled = !access || (!tenant && button.dataset.run !== "tenants");
  }
}

async function run(button) {
  const place = document.getElementById("answer");
  const [path, options] = EXAMPLES[button.dataset.run](tenant);
  place.hidden = false;
  place.textContent = "…";
  try {
    const body = await send(path, options);
    place.textContent = `${options?.method ?? "GET"} ${path}\n\n${JSON.stringify(body, null, 2).slice(0, 4000)}`;
  } catch (error) {
    place.textContent = `${path} answered ${error.message}`;
  }
}

document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("own-token");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    useToken(form);
  });
  for (const button of document.querySelectorAll("[data-run]")) button.addEventListener("click", () => run(button));
});
