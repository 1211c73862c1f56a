// Types that modules share. Browsers do not load them.

// What elements are made of (dom.js).
type Leaf = Node | string | number | null | undefined | false;
type Child = Leaf | Child[];
type Named<N extends string> = N extends keyof HTMLElementTagNameMap
  ? HTMLElementTagNameMap[N]
  : HTMLElement;
type Made<T extends string> = T extends `${infer N}.${string}` ? Named<N> : Named<T>;
type Texts = Record<string, string>;
type Props = Record<string, any>;

// Pages (router.js).
type Show = (context: Context) => Node | Promise<Node>;
type Route = { pattern: string; load: () => Promise<{ show: Show }>; title: string };
type Context = {
  params: Texts;
  query: URLSearchParams;
  tenant: string;
  signal: AbortSignal;
  title: (text: string) => void;
  guard: (isDirty: () => boolean) => void;
  later: (act: () => any, pause?: number) => void;
  reload: () => void;
  address: (href: string) => void;
  isShown: () => boolean;
  go: (href: string) => void;
  until: (isDone: () => Promise<boolean>) => void;
};

// Tables and dialogs (ui.js). `hidden`: of the heading. `then` of a dialog follows when it ran;
// `beside`: its button.
type Column = {
  head: string;
  cell: (row: any) => Child;
  number?: boolean;
  class?: string;
  hidden?: boolean;
  sort?: (row: any) => string | number | bigint | null;
};
type TableOptions = { label?: string; none?: Child; limit?: number; sorted?: number };
type Question = {
  title: string;
  body: Child;
  action: string;
  danger?: boolean;
  run: () => any;
  then?: () => any;
  wide?: boolean;
  cancel?: string;
  beside?: Child;
  missing?: () => string | false;
};

// Rules by their names (rulenames.js).
type Rules = Awaited<ReturnType<typeof import("./rulenames.js").readRules>>;

// Charts (charts.js).
type Series = {
  label: string;
  values: (number | null)[];
  colour: string;
  kind?: "bar" | "line";
  axis?: "left" | "right";
  stack?: string;
  show: (value: number | null) => string;
};
type Mark = { index: number; text: string };

// The editor (editor.js).
type Annotation = { line: number; severity: string; message: string };
type Word = { value: string; meta: string };
type Editor = {
  element: HTMLElement;
  value: () => string;
  set: (text: string) => void;
  annotate: (notes: Annotation[]) => void;
  goTo: (line: number, last?: number) => void;
  insert: (text: string) => void;
};

// Differences (diff.js).
type NamedRule = { id: string; name?: string };
type Difference = {
  added: NamedRule[];
  removed: NamedRule[];
  changed: (NamedRule & { inWords?: Contract.ChangeInWords[] })[];
  reordered?: boolean;
};

// Requests and sessions (request.js, session.js). `replace` makes another token after `refused` was
// answered with 401.
type Options = {
  ifMatch?: string;
  reason?: string;
  accept?: string;
  signal?: AbortSignal;
  anonymous?: boolean;
};
type TokenSource = {
  token: () => Promise<string>;
  replace: (refused: string) => void | Promise<void>;
};
type Pat = { id: number; token: string; access: string; expiresAt: number; scopes: string };
// What staff look at (staff.js). `until`: the end of their access to the log; empty without.
type Staff = { tenant: string; name: string; reason: string; until: string };
type Session = {
  access: string;
  refresh: string;
  expiresAt: number;
  pats: Record<string, Pat>;
  staff?: Staff;
};
// A request that needs a new proof first.
type Interrupted = { operation: any; input: any; options: { ifMatch?: string } };

// People (people.js). `roles`: by tenant.
type Tenant = { id: string; name: string; role: string; modifiedAt: string };
type Person = { email: string; name: string; role: string; roles: Map<string, string> };
type Right = "write" | "cache" | "users" | "people" | "owner" | "member" | "statements";

// The first steps (firsthour.js), and what a program asks for (connect.js).
type StepId = Contract.SetupStep["id"];
type Target = {
  kind: string;
  host: string;
  port: number;
  user: string;
  database: string;
  schema: string;
  path: string;
  house: string;
};

// Where the palette leads (palette.js): name, address, and other words or what it is.
type Offer = [string, string, string];

// Values to show (format.js). A time is ISO 8601, or milliseconds since 1970.
type Value = number | null | undefined;
type Units = [number, string][];
type Time = string | number | null | undefined;
