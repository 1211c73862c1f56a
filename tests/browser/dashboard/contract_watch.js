// Runs in the page before its own scripts. Answers of the service become objects that report every field that is
// read and that the schema of the contract does not have: as an error of the page, which fails the test.
// While requests are under way, <html> has data-asks.
(({ contract, api }) => {
  const operations = Object.entries(contract.paths).map(([path, byMethod]) => {
    const source = path.replace(/[.]/g, "\\.").replace(/\{\w+\}/g, "[^/]+");
    return { byMethod, pattern: new RegExp(`^${source}$`), fixed: path.replace(/\{\w+\}/g, "").length };
  }).sort((x, y) => y.fixed - x.fixed);

  const resolve = (schema) => {
    while (schema && schema.$ref) schema = contract.components.schemas[schema.$ref.split("/").pop()];
    return schema ?? {};
  };
  // The schemas of a field in any of the schemas; null if anything may be there.
  const parts = (schemas) => schemas.flatMap((schema) => {
    const found = resolve(schema);
    const inner = [...(found.allOf ?? []), ...(found.oneOf ?? []), ...(found.anyOf ?? [])];
    return inner.length ? parts(inner) : [found];
  });
  const watch = (value, schemas, where) => {
    if (value === null || typeof value !== "object") return value;
    const known = parts(schemas);
    return new Proxy(value, {
      get(target, key, receiver) {
        const got = Reflect.get(target, key, receiver);
        if (typeof key === "symbol" || key === "toJSON" || key === "then") return got;
        if (Array.isArray(target)) return /^\d+$/.test(key) ? watch(got, known.map((one) => one.items ?? {}), `${where}[]`) : got;
        if (key in Object.prototype) return got;
        const fields = known.filter((one) => one.properties && key in one.properties).map((one) => one.properties[key]);
        const others = known.filter((one) => !one.properties || one.additionalProperties).map((one) => one.additionalProperties);
        if (!fields.length && !others.length) console.error(`NOT IN THE CONTRACT: ${where}.${key}`);
        return watch(got, [...fields, ...others.map((one) => (one && typeof one === "object" ? one : {}))], `${where}.${key}`);
      },
    });
  };

  // The page reads an answer, or asks again, before the browser does anything else: in between there is no look at
  // the number.
  let number = 0;
  const count = (by) => {
    number += by;
    document.documentElement.toggleAttribute("data-asks", number > 0);
  };
  const counted = (act) => async function (...given) {
    count(1);
    try {
      return await act.apply(this, given);
    } finally {
      count(-1);
    }
  };

  const methods = new WeakMap();
  const fetch = globalThis.fetch;
  globalThis.fetch = counted(async (address, options = {}) => {
    const response = await fetch(address, options);
    methods.set(response, (options.method ?? "GET").toLowerCase());
    return response;
  });
  for (const name of ["blob", "json", "text"]) Response.prototype[name] = counted(Response.prototype[name]);
  const json = Response.prototype.json;
  Response.prototype.json = async function () {
    const value = await json.call(this);
    const url = new URL(this.url);
    if (url.origin !== api) return value;
    const found = operations.find((one) => one.pattern.test(url.pathname) && one.byMethod[methods.get(this)]);
    const operation = found?.byMethod[methods.get(this)];
    const schema = operation?.responses[this.status]?.content?.["application/json"]?.schema;
    if (!schema) {
      console.error(`NOT IN THE CONTRACT: ${methods.get(this)} ${url.pathname} answers ${this.status}`);
      return value;
    }
    return watch(value, [schema], `${operation.operationId} ${this.status}`);
  };
})
